//! Many texts in one allocation.

use std::fmt;
use std::ops::Index;

/// A list of texts in one buffer: eight bytes of overhead each, where a `Vec<String>` takes about fifty. Files of candidates
/// have millions of rows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Texts {
    letters: String,
    /// Where each text ends.
    ends: Vec<usize>,
}

impl Texts {
    /// Adds a text.
    pub fn push(&mut self, text: &str) {
        self.letters.push_str(text);
        self.ends.push(self.letters.len());
    }

    /// The number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All texts in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|i| &self[i])
    }

    /// The bytes of all texts together.
    pub fn n_bytes(&self) -> usize {
        self.letters.len()
    }
}

impl Index<usize> for Texts {
    type Output = str;

    fn index(&self, i: usize) -> &str {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.letters[start..self.ends[i]]
    }
}

impl<S: AsRef<str>> FromIterator<S> for Texts {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Texts {
        let mut all = Texts::default();
        texts.into_iter().for_each(|text| all.push(text.as_ref()));
        all
    }
}

impl<S: AsRef<str>, const N: usize> PartialEq<[S; N]> for Texts {
    fn eq(&self, other: &[S; N]) -> bool {
        self.iter().eq(other.iter().map(AsRef::as_ref))
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_one_by_one() {
        let texts: Texts = ["owl", "", "Käuzchen"].into_iter().collect();
        assert_eq!((texts.len(), &texts[0], &texts[1], &texts[2]), (3, "owl", "", "Käuzchen"));
        assert_eq!(texts, ["owl", "", "Käuzchen"]);
        assert_eq!(format!("{texts:?}"), r#"["owl", "", "Käuzchen"]"#);
        assert!(Texts::default().is_empty());
    }
}
