//! The sample: lines of JSON, packed.

use std::collections::BTreeMap;
use std::io::Read;

use bzip2::read::BzDecoder;
use serde::Deserialize;

use crate::{IconError, Result};

/// The role of an icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// A clean example of its class.
    Clean,
    /// A candidate: before scoring, only its name is known to contain a word.
    Pool,
    /// Held out for evaluation.
    Test,
    /// An example of a base class, to train a network on.
    Base,
    /// An example of a base class, to test that network on.
    BaseTest,
}

/// One icon.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Icon {
    /// `set:name`, as Iconify calls it.
    pub id: String,
    /// The name its author gave it, as words: the text that is matched.
    pub title: String,
    /// Its role.
    pub part: Part,
    /// The class it shows; none in the pool, where that is the question.
    pub class: Option<String>,
    /// For each class whose word is in the title: whether the icon shows it, as seen in the drawing. Empty for base classes.
    #[serde(default)]
    pub truth: BTreeMap<String, bool>,
    /// The drawing, a whole SVG document.
    pub svg: String,
}

/// The icons of the 32 words, in order of their ids.
pub fn icons() -> Result<Vec<Icon>> {
    read_icons(include_bytes!("../data/icons.jsonl.bz2"))
}

/// Reads icons, one JSON object a line, packed with bzip2. `data/base.jsonl.bz2`, the base classes, is such a file too.
pub fn read_icons(packed: &[u8]) -> Result<Vec<Icon>> {
    let mut text = String::new();
    BzDecoder::new(packed).read_to_string(&mut text).map_err(IconError::Packed)?;
    let read = |(i, line)| {
        serde_json::from_str(line)
            .map_err(|error| IconError::Line { line: i + 1, message: error.to_string() })
    };
    text.lines().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap, HashSet};
    use std::io::Write;

    use bzip2::Compression;
    use bzip2::write::BzEncoder;

    use super::*;
    use crate::{ATTRIBUTION, CLASSES, draw};

    fn of_part(icons: &[Icon], part: Part) -> impl Iterator<Item = &Icon> {
        icons.iter().filter(move |icon| icon.part == part)
    }

    fn base() -> Vec<Icon> {
        read_icons(include_bytes!("../data/base.jsonl.bz2")).unwrap()
    }

    fn pack(text: &str) -> Vec<u8> {
        let mut encoder = BzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn every_class_has_clean_and_test_examples_and_a_mixed_pool() {
        let icons = icons().unwrap();
        let names: Vec<_> = CLASSES.lines().filter_map(|line| line.strip_prefix("id = ")).collect();
        assert!(names.len() >= 24);
        for name in names.iter().map(|name| name.trim_matches('"')) {
            let of_class = |part| of_part(&icons, part).filter(|i| i.class.as_deref() == Some(name)).count();
            let n_clean = of_class(Part::Clean);
            let n_test = of_class(Part::Test);
            assert!((5..=10).contains(&n_clean) && n_test >= 5, "{name}: {n_clean} clean, {n_test} test");
            let truths: Vec<bool> =
                of_part(&icons, Part::Pool).filter_map(|i| i.truth.get(name).copied()).collect();
            let relevant = truths.iter().filter(|&&t| t).count() as f64 / truths.len() as f64;
            assert!((30..=130).contains(&truths.len()), "{name}: {} candidates", truths.len());
            assert!((0.1..0.8).contains(&relevant), "{name}: {relevant:.2} relevant");
        }
    }

    #[test]
    fn the_truth_names_the_class_outside_the_pool_and_only_there() {
        for icon in icons().unwrap() {
            let shown: Vec<_> =
                icon.truth.iter().filter(|(_, shown)| **shown).map(|(name, _)| name).collect();
            match icon.part {
                Part::Pool => assert!(icon.class.is_none() && !icon.truth.is_empty(), "{}", icon.id),
                _ => assert_eq!(shown, [icon.class.as_ref().unwrap()], "{}", icon.id),
            }
        }
    }

    #[test]
    fn no_drawing_occurs_twice() {
        let novel = icons().unwrap();
        let base = base();
        let mut drawings = HashMap::new();
        for icon in novel.iter().chain(&base) {
            if let Some(other) = drawings.insert(&icon.svg, &icon.id) {
                panic!("{} is drawn like {other}", icon.id);
            }
        }
    }

    #[test]
    fn base_classes_share_no_word_with_the_novel_ones() {
        let novel: HashSet<_> =
            icons().unwrap().into_iter().flat_map(|icon| icon.truth.into_keys()).collect();
        for icon in base() {
            assert!(matches!(icon.part, Part::Base | Part::BaseTest));
            let word = icon.title.split(' ').find(|word| novel.contains(*word));
            assert_eq!(word, None, "{}", icon.id);
        }
    }

    #[test]
    fn every_icon_can_be_drawn_and_leaves_ink() {
        for icon in icons().unwrap().iter().chain(&base()) {
            let picture = draw(&icon.svg, 24).unwrap_or_else(|error| panic!("{}: {error}", icon.id));
            assert!(picture.rgb.iter().any(|&byte| byte != 255), "{} is blank", icon.id);
        }
    }

    #[test]
    fn every_set_is_attributed() {
        let novel = icons().unwrap();
        let base = base();
        let sets: BTreeSet<_> =
            novel.iter().chain(&base).map(|icon| icon.id.split(':').next().unwrap()).collect();
        for set in sets {
            assert!(ATTRIBUTION.contains(&format!("(`{set}`)")), "{set}");
        }
    }

    #[test]
    fn a_broken_line_is_named() {
        let good = r#"{"id":"a:b","title":"b","part":"base","class":"b","svg":"<svg/>"}"#;
        let error = read_icons(&pack(&format!("{good}\n{{\"id\": 3}}\n"))).unwrap_err().to_string();
        assert!(error.starts_with("line 2 of the icons: "), "{error}");
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        let packed = pack("{}\n");
        assert!(matches!(read_icons(&packed[..packed.len() / 2]), Err(IconError::Packed(_))));
    }
}
