//! Runs `labelsieve` itself: cargo builds only a package's own programs for its tests, so this test program stands in for it.

use std::path::Path;
use std::process::Command;

/// Holds the command line while this program is `labelsieve`.
const LINE: &str = "LABELSIEVE_BENCH_TEST_LINE";

/// Runs `labelsieve LINE` in `folder`, which must succeed.
#[track_caller]
pub fn product(folder: &Path, line: &str) {
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.current_dir(folder).env(LINE, line);
    command.args(["product::stands_in_for_the_product", "--exact", "--ignored", "--nocapture"]);
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "`labelsieve {line}`: {output:?}");
}

#[test]
#[ignore = "not a test: `product` starts it"]
fn stands_in_for_the_product() {
    let Ok(line) = std::env::var(LINE) else { return };
    let arguments = ["labelsieve"].into_iter().chain(line.split_whitespace());
    let code = labelsieve_cli::run(arguments.map(Into::into));
    std::process::exit(code.into());
}
