//! Links from the report to the files of pictures: relative, so that both can move together.

use std::path::{Component, Path, PathBuf};

/// Makes relative addresses for a page in one folder.
#[derive(Debug)]
pub(crate) struct Links {
    /// The folder of the page, without symbolic links; none if it does not exist.
    page: Option<PathBuf>,
}

impl Links {
    /// Links of a page that will be written to `page`.
    pub(crate) fn from_page(page: &Path) -> Links {
        let folder = page.parent().filter(|parent| !parent.as_os_str().is_empty());
        Links { page: folder.unwrap_or(Path::new(".")).canonicalize().ok() }
    }

    /// The address of an existing folder, with a slash at its end; none if no relative path leads there.
    pub(crate) fn to_folder(&self, folder: &Path) -> Option<String> {
        let from = self.page.as_ref()?;
        let to = folder.canonicalize().ok()?;
        let n_common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
        // On Windows another drive has another prefix, and `..` does not lead from one to the other.
        let is_way = |part: &Component<'_>| matches!(part, Component::Normal(_));
        let up = from.components().skip(n_common);
        let down = to.components().skip(n_common);
        if !up.clone().all(|part| is_way(&part)) {
            return None;
        }
        let start = match up.count() {
            0 => "./".to_owned(), // so that no name can be taken for `javascript:`
            n => "../".repeat(n),
        };
        let address = start + &encode_parts(down)?;
        Some(if address.ends_with('/') { address } else { address + "/" })
    }
}

/// A path below a folder for the end of an address: its parts percent-encoded. None for a path that leaves its folder.
pub(crate) fn encode(below: &Path) -> Option<String> {
    encode_parts(below.components())
}

fn encode_parts<'a>(parts: impl Iterator<Item = Component<'a>>) -> Option<String> {
    let mut encoded = Vec::new();
    for part in parts {
        let Component::Normal(name) = part else { return None };
        let mut text = String::new();
        for &byte in name.as_encoded_bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                text.push(char::from(byte));
            } else {
                text += &format!("%{byte:02X}");
            }
        }
        encoded.push(text);
    }
    Some(encoded.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_leads_from_the_page_to_the_folder() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for folder in ["a/b", "a/my photos", "javascript:x"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        let from =
            |page: &str, folder: &str| Links::from_page(&root.join(page)).to_folder(&root.join(folder));
        assert_eq!(from("a/r.html", "a/my photos").unwrap(), "./my%20photos/");
        assert_eq!(from("a/b/r.html", "a/my photos").unwrap(), "../my%20photos/");
        assert_eq!(from("a/b/r.html", "javascript:x").unwrap(), "../../javascript%3Ax/");
        assert_eq!(from("r.html", "javascript:x").unwrap(), "./javascript%3Ax/");
        assert_eq!(from("a/r.html", "a").unwrap(), "./");
        assert_eq!(from("a/b/r.html", "a").unwrap(), "../");
        assert_eq!(from("a/r.html", "none"), None);
    }

    #[test]
    fn hostile_names_become_harmless_addresses() {
        let encoded = |path: &str| encode(Path::new(path));
        assert_eq!(encoded("javascript:alert(1).jpg").unwrap(), "javascript%3Aalert%281%29.jpg");
        assert_eq!(encoded("a\"b'c<d>.png").unwrap(), "a%22b%27c%3Cd%3E.png");
        assert_eq!(encoded("owl/50%#1?.png\n").unwrap(), "owl/50%25%231%3F.png%0A");
        assert_eq!(encoded("\u{202e}gpj.exe").unwrap(), "%E2%80%AEgpj.exe");
        assert_eq!(encoded("../secret"), None);
        assert_eq!(encoded("/etc/passwd"), None);
    }
}
