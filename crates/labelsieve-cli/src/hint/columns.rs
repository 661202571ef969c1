//! Columns that are not there: which option names them, and which one was perhaps meant.

use std::path::Path;

use labelsieve_files::ColumnRole;
use labelsieve_files::work::near_name::nearest;

use super::kinds::embed_first;

/// A table that lacks a column.
pub struct Missing<'a> {
    pub path: &'a Path,
    pub role: ColumnRole,
    /// The name that was asked for.
    pub asked: Option<&'a str>,
    /// The columns there are.
    pub present: &'a [String],
}

impl Missing<'_> {
    pub fn hint(&self) -> String {
        let has = |name: &str| self.present.iter().any(|column| column == name);
        let holds_images = ["image", "img", "jpg"].into_iter().any(has);
        match (self.role, self.asked) {
            (ColumnRole::Embedding, None) if holds_images => embed_first(self.path),
            (ColumnRole::Embedding, None) => {
                self.looks_like().unwrap_or_else(|| choose(ColumnRole::Embedding, None))
            }
            (ColumnRole::Image, None) if has("embedding") => {
                "it looks like features; pass the images themselves".to_owned()
            }
            (ColumnRole::Fixed, Some(asked)) => self.rename(asked),
            (ColumnRole::Fixed, None) => {
                self.looks_like().unwrap_or_else(|| "name its columns so".to_owned())
            }
            (role, asked) => choose(role, asked.and_then(|asked| self.meant(asked))),
        }
    }

    fn meant(&self, asked: &str) -> Option<&str> {
        nearest(asked, self.present.iter().map(String::as_str))
    }

    /// For a column whose name no option can change.
    fn rename(&self, asked: &str) -> String {
        match (self.looks_like(), self.meant(asked)) {
            (Some(other), _) => other,
            (None, Some(meant)) => format!("rename the column `{meant}` to `{asked}`"),
            (None, None) => format!("the file needs a column `{asked}`"),
        }
    }

    /// The kind of Labelsieve file this is instead, by the columns that only it has.
    fn looks_like(&self) -> Option<String> {
        let has = |names: &[&str]| names.iter().all(|name| self.present.iter().any(|column| column == name));
        let (what, source) = match () {
            () if has(&["relevance", "is_clean"]) => ("relevance", "score"),
            () if has(&["matched_name", "field"]) => ("candidates", "match"),
            () if has(&["rank", "score"]) => ("predictions", "predict"),
            () if has(&["embedding"]) => ("features", "embed"),
            () => return None,
        };
        Some(format!("the file looks like {what} from `labelsieve {source}`"))
    }
}

fn choose(role: ColumnRole, meant: Option<&str>) -> String {
    let option = match role {
        ColumnRole::Embedding => "--embedding-column",
        ColumnRole::Label => "--label-column",
        ColumnRole::Image => "--image-column",
        ColumnRole::Text => "--text-column",
        ColumnRole::Filter => "--where",
        ColumnRole::Kept => "--keep",
        ColumnRole::Url => "--url-column",
        ColumnRole::Id | ColumnRole::Fixed => "--id-column",
    };
    match meant {
        Some(meant) if role == ColumnRole::Filter => format!("did you mean `{option} {meant}=…`?"),
        Some(meant) => format!("did you mean `{option} {meant}`?"),
        None => format!("choose one of these columns with {option}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(role: ColumnRole, asked: Option<&str>, present: &[&str]) -> String {
        let present: Vec<String> = present.iter().map(ToString::to_string).collect();
        Missing { path: Path::new("a.parquet"), role, asked, present: &present }.hint()
    }

    #[test]
    fn the_option_and_the_near_name_are_said() {
        let columns = ["id", "labels", "vectors"];
        assert_eq!(hint(ColumnRole::Label, Some("label"), &columns), "did you mean `--label-column labels`?");
        assert_eq!(hint(ColumnRole::Filter, Some("lables"), &columns), "did you mean `--where labels=…`?");
        let choose = "choose one of these columns with --embedding-column";
        assert_eq!(hint(ColumnRole::Embedding, None, &columns), choose);
        assert_eq!(hint(ColumnRole::Fixed, Some("label"), &columns), "rename the column `labels` to `label`");
    }

    #[test]
    fn another_file_of_ours_is_recognised() {
        let found = hint(ColumnRole::Fixed, Some("relevance"), &["id", "class", "matched_name", "field"]);
        assert_eq!(found, "the file looks like candidates from `labelsieve match`");
        assert!(hint(ColumnRole::Embedding, None, &["id", "image"]).contains("labelsieve embed --model"));
    }
}
