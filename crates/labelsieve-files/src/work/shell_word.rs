//! Quoting arguments of command lines that users copy into a shell.

use std::ffi::OsStr;

/// A path or another argument as one word of a POSIX shell, quoted if necessary.
pub fn shell_word(text: impl AsRef<OsStr>) -> String {
    let text = text.as_ref().to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=@%:,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_paths_become_one_word() {
        assert_eq!(shell_word("a/b-1.pth"), "a/b-1.pth");
        assert_eq!(shell_word("my net's.pth"), r"'my net'\''s.pth'");
        assert_eq!(shell_word(""), "''");
    }
}
