//! Panics: silent where they are caught, a report with its place where one ends the work.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::PanicHookInfo;
use std::sync::{Mutex, PoisonError};

/// How many panics are remembered. Decoders panic on some damaged files, on many threads at once.
const REMEMBERED: usize = 64;

/// The message of the standard library when a thread of a scope has panicked, after that thread's own panic.
const IN_SCOPE: &str = "a scoped thread panicked";

/// The message of each panic, and its place.
static SEEN: Mutex<VecDeque<(String, String)>> = Mutex::new(VecDeque::new());

/// Remembers where panics happen instead of printing them: most are caught where a decoder is called, and their report is
/// not for users.
pub fn install() {
    std::panic::set_hook(Box::new(remember));
}

/// The message of an uncaught panic, its place, and the version.
pub fn describe(panic: &(dyn Any + Send)) -> String {
    let text = text_of(panic);
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut latest = seen.iter().rev();
    let found = match text.as_str() {
        IN_SCOPE => latest.find(|(said, _)| said != IN_SCOPE),
        text => latest.find(|(said, _)| said == text),
    };
    let (text, place) = found.cloned().unwrap_or((text, "an unknown place".to_owned()));
    format!("internal error: {text}, at {place} (labelsieve {})", env!("CARGO_PKG_VERSION"))
}

fn remember(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map_or("an unknown place".to_owned(), ToString::to_string);
    let text = text_of(panic.payload());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if seen.len() == REMEMBERED {
        seen.pop_front();
    }
    seen.push_back((text, place));
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn a_panic_is_described_with_its_place_and_version_however_many_were_caught() {
        install();
        let line = line!() + 1;
        let fatal = catch_unwind(|| panic!("row {} of 3", 7)).unwrap_err();
        for _ in 0..10 {
            catch_unwind(|| panic!("a decoder")).unwrap_err();
        }
        let scoped = catch_unwind(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| panic!("in a thread"));
            });
        });
        let scoped = describe(scoped.unwrap_err().as_ref());
        let _ = std::panic::take_hook();
        let place = format!("panics.rs:{line}:");
        let said = describe(fatal.as_ref());
        assert!(said.starts_with("internal error: row 7 of 3, at ") && said.contains(&place), "{said}");
        assert!(said.ends_with(&format!("(labelsieve {})", env!("CARGO_PKG_VERSION"))), "{said}");
        assert!(scoped.starts_with("internal error: in a thread, at "), "{scoped}");
    }
}
