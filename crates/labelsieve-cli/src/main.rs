//! The `labelsieve` command.
fn main() {}
