//! From rows of texts to candidates: the reader's rows go into the matcher, its classes come out as rows to write.

use labelsieve::matching::{ClassEntry, ClassList, Matcher, Searcher, TextEncoding};
use labelsieve_data::CandidateRow;
use labelsieve_data::text::{RowSink, TextSource};

use crate::leaks::{CheckedExamples, LeakFate};

/// Finds the candidates among the rows it is given.
pub struct CandidateSink<'a> {
    searcher: Searcher<'a>,
    classes: &'a [ClassEntry],
    fields: &'a [String],
    checked: Option<&'a CheckedExamples>,
    leak_fate: LeakFate,
    found: Candidates,
}

/// What was found in one block.
#[derive(Default)]
pub struct Candidates {
    pub rows: Vec<CandidateRow>,
    /// The position of each row's class.
    pub classes: Vec<usize>,
    /// Candidates that are copies of guarded examples, dropped or not.
    pub n_leaks: u64,
    /// Candidates that the leak guard has no features of.
    pub n_unchecked: u64,
}

impl<'a> CandidateSink<'a> {
    pub fn new(
        matcher: &'a Matcher,
        classes: &'a ClassList,
        source: &'a TextSource,
        checked: Option<&'a CheckedExamples>,
        leak_fate: LeakFate,
    ) -> CandidateSink<'a> {
        let (classes, fields) = (classes.classes(), source.text_columns());
        let found = Candidates::default();
        CandidateSink { searcher: matcher.searcher(), classes, fields, checked, leak_fate, found }
    }

    /// The candidates since the last call.
    pub fn take(&mut self) -> Candidates {
        std::mem::take(&mut self.found)
    }
}

impl RowSink for CandidateSink<'_> {
    fn text(&mut self, column: usize, text: &str, encoding: TextEncoding) {
        self.searcher.push(column, text, encoding);
    }

    fn end_row(&mut self, id: &str) {
        let CandidateSink { searcher, classes, fields, checked, leak_fate, found } = self;
        searcher.take_found(|hit| {
            let leak = match checked.map(|checked| checked.get(id)) {
                None => None, // no guard
                Some(None) => {
                    found.n_unchecked += 1;
                    None
                }
                Some(Some(leak)) => leak.clone(),
            };
            found.n_leaks += u64::from(leak.is_some());
            if leak.is_some() && *leak_fate == LeakFate::Drop {
                return;
            }
            let class = &classes[hit.class];
            found.classes.push(hit.class);
            found.rows.push(CandidateRow {
                id: id.to_string(),
                class: class.id.clone(),
                matched_name: class.names[hit.name].clone(),
                field: fields[hit.column].clone(),
                leak,
            });
        });
    }

    fn forget_row(&mut self) {
        self.searcher.forget();
    }
}
