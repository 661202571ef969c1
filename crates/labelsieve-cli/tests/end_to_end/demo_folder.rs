//! The folder of the demo: it deletes no files of others, and may have any name.

use std::path::Path;
use std::process::Command;

use crate::common::{Finished, listing, refuses, shell};
use crate::json::check_answer;

fn write(folder: &Path, name: &str, contents: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("disk space");
    std::fs::write(path, contents).expect("disk space");
}

#[test]
fn a_folder_with_somebodys_files_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for name in ["images/test/a.png", "images/clean/b.png", "images/pool/c.png", "classes.toml"] {
        write(folder, name, "mine");
    }
    write(folder, "other/DEMO.txt", "my notes on the demo");
    for dir in [".", "images", "other"] {
        let message = format!("`{dir}` is not empty and was not made by a demo");
        refuses(
            folder,
            &format!("demo --dir {dir}"),
            &[&message, "hint: choose a new or empty folder with --dir"],
        );
    }
    assert_eq!(std::fs::read_to_string(folder.join("classes.toml")).expect("it exists"), "mine");
}

#[test]
fn the_folder_may_have_any_name_and_its_commands_can_be_pasted() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // All that could go wrong at once; the demo is too slow for a name each.
    let name = "-it's \"my\" größte [dir] $HOME";
    std::fs::create_dir(folder.join(name)).expect("disk space");
    let mut demo = Command::new(env!("CARGO_BIN_EXE_labelsieve"));
    let demo = demo.current_dir(folder).args(["demo", "--json", &format!("--dir={name}")]);
    let demo = Finished::from(demo.output().expect("it starts")).ok();
    check_answer(&demo, "demo");
    let commands: Vec<&str> =
        demo.err.lines().filter_map(|line| line.strip_prefix("$ labelsieve ")).collect();
    assert_eq!(commands.len(), 8, "{}", demo.err);
    let evaluate = commands.iter().find(|line| line.starts_with("evaluate ")).expect("a command");
    assert!(shell(folder, &format!("$LABELSIEVE {evaluate}")).ok().out.contains("all"));
    let report = commands.last().expect("a command").replace("report.html", "again.html");
    shell(folder, &format!("$LABELSIEVE {report}")).ok();
    assert!(listing(folder).contains(&format!("{name}/again.html")));
    assert_eq!(std::fs::read_dir(folder).expect("a folder").count(), 1, "all is in one folder");
}
