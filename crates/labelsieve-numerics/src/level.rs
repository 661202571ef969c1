//! The vector instructions that the kernels use; the only place that detects them.
//!
//! Kernels take a [`Level`] as an argument, so that one process can run and compare all levels of its machine. Callers pass
//! [`Level::current`]: the best level of the machine, unless the environment asks for a lower one.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::{Error, Result};

/// Instructions that **this machine has**: the constructors return no other level. The `unsafe` code of the kernels relies on
/// that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(Instructions);

/// The instruction sets behind a [`Level`], slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Instructions {
    /// The baseline of the architecture, with ordinary loops vectorised by the compiler.
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

    /// The level that every machine has.
    pub const PLAIN: Level = Level(Instructions::Plain);

    /// All levels of this machine, slowest first.
    pub fn available() -> Vec<Level> {
        Instructions::ALL.into_iter().filter(|instructions| instructions.are_here()).map(Level).collect()
    }

    /// The fastest level of this machine.
    pub fn best() -> Level {
        Level::available().pop().unwrap_or(Level::PLAIN)
    }

    /// The level of this process: the one the environment asked for when this was first called, or the best. An invalid
    /// request is ignored here; front ends report it first ([`Level::from_environment`]).
    #[inline]
    pub fn current() -> Level {
        match CURRENT.load(Ordering::Relaxed) {
            0 => look_up(),
            current => Level(number(current)),
        }
    }

    /// The level that [`Level::VARIABLE`] asks for; the best one if it is not set. An error if the level is unknown or this
    /// machine does not support it.
    pub fn from_environment() -> Result<Level> {
        match std::env::var_os(Level::VARIABLE) {
            Some(name) if !name.is_empty() => Level::named(&name.to_string_lossy()),
            _ => Ok(Level::best()),
        }
    }

    fn named(name: &str) -> Result<Level> {
        let available = Level::available();
        available.iter().find(|level| level.0.name() == name).copied().ok_or_else(|| Error::Level {
            available: available.iter().map(|level| level.0.name()).collect::<Vec<_>>().join(", "),
            found: name.to_owned(),
        })
    }

    /// Makes this the level of the process, for tests and benchmarks that compare levels.
    #[doc(hidden)]
    pub fn make_current(self) {
        CURRENT.store(self.0 as u8, Ordering::Relaxed);
    }

    /// The instructions, for choosing a kernel.
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
        for name in ["avx3", "AVX2", " plain", "best"] {
            let message = Level::named(name).unwrap_err().to_string();
            assert!(
                message.starts_with("LABELSIEVE_CPU: expected a level that this machine has (plain"),
                "{message}"
            );
            assert!(message.ends_with(&format!("found `{name}`")), "{message}");
        }
    }

    #[test]
    fn a_level_of_better_machines_is_refused() {
        for instructions in Instructions::ALL {
            assert_eq!(Level::named(instructions.name()).is_ok(), instructions.are_here());
        }
    }
}
