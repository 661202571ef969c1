//! Class names as examples: rows from a text tower, used along with rows from an image tower.

use std::borrow::Cow;

use crate::{ExampleTable, Ids, Labels, Matrix, Result};

/// The prefix of the ids of such examples. The class name follows.
const PREFIX: &str = "text:";

/// The id of the text of a class.
pub fn text_id(class: &str) -> String {
    format!("{PREFIX}{class}")
}

/// Whether a clean example is the text of a class rather than an image.
pub fn is_text_id(id: &str) -> bool {
    id.starts_with(PREFIX)
}

impl ExampleTable {
    /// The same rows with ids made of their classes instead of those in the file. Rows without classes keep their ids.
    pub fn as_class_texts(mut self) -> ExampleTable {
        if let Some(labels) = &self.labels {
            self.ids = Ids::Given((0..labels.len()).map(|row| text_id(labels.get(row))).collect());
        }
        self
    }

    /// These examples followed by `texts`, which have the same width.
    pub fn with_texts(self, texts: ExampleTable) -> Result<ExampleTable> {
        let ids = match (self.ids, texts.ids) {
            (Ids::Given(mut ids), texts) => {
                ids.extend((0..texts.len()).map(|row| texts.get(row).into_owned()));
                Ids::Given(ids)
            }
            (Ids::RowNumbers(numbers) | Ids::WithTexts { numbers, .. }, texts) => {
                let texts = (0..texts.len()).map(|row| texts.get(row)).map(Cow::into_owned);
                Ids::WithTexts { numbers, texts: texts.collect() }
            }
        };
        let labels = self.labels.zip(texts.labels).map(|(photos, texts)| {
            let of =
                |labels: &Labels| (0..labels.len()).map(|row| labels.get(row).to_owned()).collect::<Vec<_>>();
            of(&photos).iter().chain(&of(&texts)).collect()
        });
        Ok(ExampleTable {
            features: Matrix::stack(&self.path, vec![self.features, texts.features])?,
            path: self.path,
            labels,
            ids,
            network: self.network.or(texts.network),
            ids_table: self.ids_table,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn table(ids: Option<&[&str]>, labels: &[&str], values: Vec<f32>) -> ExampleTable {
        let path = Path::new("x.npz");
        let ids = ids.map(|ids| ids.iter().map(|id| (*id).to_owned()).collect());
        ExampleTable::new(path, Matrix::in_memory(path, 2, values), Some(labels.iter().collect()), ids)
            .unwrap()
    }

    #[test]
    fn texts_stand_behind_photos_under_the_names_of_their_classes() {
        let texts = || table(Some(&["a", "b"]), &["owl", "cat"], vec![1.0, 2.0, 3.0, 4.0]).as_class_texts();
        assert_eq!(texts().ids, Ids::Given(vec!["text:owl".into(), "text:cat".into()]));
        let photos = table(Some(&["1.jpg"]), &["cat"], vec![5.0, 6.0]);
        let joined = photos.with_texts(texts()).unwrap();
        assert_eq!(joined.ids, Ids::Given(vec!["1.jpg".into(), "text:owl".into(), "text:cat".into()]));
        assert_eq!(joined.labels, Some(["cat", "owl", "cat"].iter().collect()));
        let mut rows = [0.0; 4];
        joined.features.read_rows(&[2, 0], &mut rows).unwrap();
        assert_eq!(rows, [3.0, 4.0, 5.0, 6.0]);
        // Row numbers stay row numbers: they are not comparable with the ids of another file.
        let joined = table(None, &["cat"], vec![5.0, 6.0]).with_texts(texts()).unwrap();
        assert_eq!((joined.ids.get(0), joined.ids.get(2)), ("0".into(), "text:cat".into()));
        assert_eq!(joined.ids.len(), 3);
    }
}
