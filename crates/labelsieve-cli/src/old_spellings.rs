//! Commands that were once spelled otherwise, and still may be.

use std::ffi::OsString;

/// The arguments as they are spelled today, and what to tell whoever used an old spelling.
pub fn replace(mut arguments: Vec<OsString>) -> (Vec<OsString>, Option<&'static str>) {
    let Some(train) = arguments.iter().position(|argument| argument == "train") else {
        return (arguments, None);
    };
    let is_separate = |pair: &[OsString]| pair[0] == "--classifier" && pair[1] == "finetune";
    let separate = arguments.windows(2).position(is_separate).map(|at| at..at + 2);
    let joined = || arguments.iter().position(|argument| argument == "--classifier=finetune");
    match separate.or_else(|| joined().map(|at| at..at + 1)).filter(|found| found.start > train) {
        None => (arguments, None),
        Some(found) => {
            arguments.drain(found);
            arguments[train] = "finetune".into();
            (arguments, Some("`labelsieve train --classifier finetune` is `labelsieve finetune` now"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str) {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let (replaced, note) = replace(words(old));
        assert_eq!(replaced, words(new));
        assert_eq!(note.is_some(), old != new);
    }

    #[test]
    fn fine_tuning_was_a_kind_of_training() {
        check("labelsieve train --classifier finetune -o a", "labelsieve finetune -o a");
        check("labelsieve -q train -o a --classifier=finetune", "labelsieve -q finetune -o a");
        check("labelsieve train --classifier cosine", "labelsieve train --classifier cosine");
        check("labelsieve --classifier finetune train", "labelsieve --classifier finetune train");
        check("labelsieve embed", "labelsieve embed");
    }
}
