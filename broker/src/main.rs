//! The `skerry` command.
fn main() {}
