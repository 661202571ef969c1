//! Which vector instructions the kernels use: looked up here, and nowhere else.
//!
//! Kernels take a [`Level`] as an argument, so that one process can run all that its machine has and compare them. Whoever
//! starts the work takes [`Level::current`]: the best of the machine, unless the environment asks for less.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::{Error, Result};

/// Instructions that **this machine has**: there is no other way to get hold of a level than to ask for those. Kernels rely
/// on it when they enter code for instructions that not every machine has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(Instructions);

/// What a [`Level`] stands for, slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Instructions {
    /// Whatever the compiler makes of ordinary loops, with what every machine of its kind has.
    Plain = 1,
    /// x86-64 with AVX2 and fused multiply-add (x86-64-v3: Intel since 2013, AMD since 2015).
    Avx2,
    /// x86-64 with AVX-512 F, BW, CD, DQ and VL (x86-64-v4).
    Avx512,
    /// arm64, which always has NEON with fused multiply-add.
    Neon,
}

impl Instructions {
    const ALL: [Instructions; 4] =
        [Instructions::Plain, Instructions::Avx2, Instructions::Avx512, Instructions::Neon];

    fn name(self) -> &'static str {
        match self {
            Instructions::Plain => "plain",
            Instructions::Avx2 => "avx2",
            Instructions::Avx512 => "avx512",
            Instructions::Neon => "neon",
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn are_here(self) -> bool {
        let avx2 = || {
            is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt")
        };
        let avx512 = || {
            is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
        };
        match self {
            Instructions::Plain => true,
            Instructions::Avx2 => avx2(),
            Instructions::Avx512 => avx2() && avx512(),
            Instructions::Neon => false,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn are_here(self) -> bool {
        self == Instructions::Plain || cfg!(target_arch = "aarch64") && self == Instructions::Neon
    }
}

/// The level of this process as a number of [`Instructions`]; 0 until it is first asked for.
static CURRENT: AtomicU8 = AtomicU8::new(0);

impl Level {
    /// The environment variable that lowers the level.
    pub const VARIABLE: &'static str = "LABELSIEVE_CPU";

    /// What every machine has.
    pub const PLAIN: Level = Level(Instructions::Plain);

    /// All levels of this machine, slowest first.
    pub fn available() -> Vec<Level> {
        Instructions::ALL.into_iter().filter(|instructions| instructions.are_here()).map(Level).collect()
    }

    /// The fastest level of this machine.
    pub fn best() -> Level {
        Level::available().pop().unwrap_or(Level::PLAIN)
    }

    /// The level of this process: what the environment asked for when this was first called, or the best there is. A
    /// front end should have refused a bad wish before ([`Level::from_environment`]); here it counts as none.
    #[inline]
    pub fn current() -> Level {
        match CURRENT.load(Ordering::Relaxed) {
            0 => look_up(),
            current => Level(number(current)),
        }
    }

    /// What [`Level::VARIABLE`] asks for; the best level where it is not set. An error if it is unknown or more than this
    /// machine has.
    pub fn from_environment() -> Result<Level> {
        match std::env::var_os(Level::VARIABLE) {
            Some(wish) if !wish.is_empty() => Level::named(&wish.to_string_lossy()),
            _ => Ok(Level::best()),
        }
    }

    fn named(wish: &str) -> Result<Level> {
        let available = Level::available();
        available.iter().find(|level| level.0.name() == wish).copied().ok_or_else(|| Error::Level {
            available: available.iter().map(|level| level.0.name()).collect::<Vec<_>>().join(", "),
            found: wish.to_owned(),
        })
    }

    /// Makes this the level of the process from here on: for tests and measurements that compare levels.
    #[doc(hidden)]
    pub fn make_current(self) {
        CURRENT.store(self.0 as u8, Ordering::Relaxed);
    }

    /// The instructions, to choose a kernel by.
    #[inline(always)]
    pub fn instructions(self) -> Instructions {
        self.0
    }

    /// Whether this level also multiplies 16-bit integers in pairs and adds them up in one instruction (VNNI), which not every
    /// machine with AVX2 or AVX-512 can.
    #[cfg(target_arch = "x86_64")]
    pub fn adds_products(self) -> bool {
        match self.0 {
            Instructions::Avx512 => is_x86_feature_detected!("avx512vnni"),
            Instructions::Avx2 => is_x86_feature_detected!("avxvnni"),
            Instructions::Plain | Instructions::Neon => false,
        }
    }

    /// Whether this level also multiplies 16-bit integers in pairs and adds them up in one instruction, as x86-64 with VNNI does.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn adds_products(self) -> bool {
        false
    }
}

#[cold]
fn look_up() -> Level {
    let level = Level::from_environment().unwrap_or_else(|_| Level::best());
    level.make_current();
    level
}

fn number(current: u8) -> Instructions {
    match current {
        4 => Instructions::Neon,
        3 => Instructions::Avx512,
        2 => Instructions::Avx2,
        _ => Instructions::Plain,
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl fmt::Debug for Level {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_the_plain_level_and_its_levels_can_be_asked_for_by_name() {
        let available = Level::available();
        assert_eq!(available[0], Level::PLAIN);
        assert!(available.is_sorted());
        assert_eq!(Level::best(), *available.last().unwrap());
        for level in available {
            assert_eq!(Level::named(&level.to_string()), Ok(level));
        }
    }

    /// `.ci/run` reads which levels there are from this line.
    #[test]
    fn the_levels_of_this_machine_are_printed() {
        let names: Vec<String> = Level::available().iter().map(Level::to_string).collect();
        println!("levels: {}", names.join(" "));
    }

    #[test]
    fn an_unknown_level_is_refused_with_those_there_are() {
        for wish in ["avx3", "AVX2", " plain", "best"] {
            let message = Level::named(wish).unwrap_err().to_string();
            assert!(
                message.starts_with("LABELSIEVE_CPU: expected a level that this machine has (plain"),
                "{message}"
            );
            assert!(message.ends_with(&format!("found `{wish}`")), "{message}");
        }
    }

    #[test]
    fn a_level_of_better_machines_is_refused() {
        for instructions in Instructions::ALL {
            assert_eq!(Level::named(instructions.name()).is_ok(), instructions.are_here());
        }
    }
}
