//! From rows of texts to candidates: rows of the reader are searched by the matcher, and its classes become rows to write.

use super::downloads::Photo;
use super::leaks::{LeakFate, LeakFilter};
use crate::CandidateRow;
use crate::names::{ClassEntry, ClassList, ComparedMatch, MatchRule, Matcher, Searcher, TextEncoding};
use crate::text::{KeptValues, RowSink, TextSource};

/// The search for names by the rule and, with the rule `phrase`, also by `plural`, to report how many more candidates that rule
/// would find.
pub struct NameSearch {
    /// The names by the rule.
    pub matcher: Matcher,
    comparing: Option<Matcher>,
}

impl NameSearch {
    /// Builds the automata for the names of all classes.
    pub fn new(classes: &ClassList, rule: MatchRule) -> Result<NameSearch, crate::NamesError> {
        let comparing = match rule {
            MatchRule::Phrase => Some(Matcher::comparing(classes, rule, MatchRule::Plural)?),
            _ => None,
        };
        let comparing = comparing.filter(Matcher::compares);
        Ok(NameSearch { matcher: Matcher::new(classes, rule)?, comparing })
    }

    /// Whether the candidates of `plural` are counted.
    pub fn compares(&self) -> bool {
        self.comparing.is_some()
    }

    /// Searching by both rules takes longer: for a large input, one block in 32 gives a good estimate.
    fn compares_block(&self, number: u64) -> bool {
        const WHOLE_UP_TO: u64 = 16;
        self.compares() && (number < WHOLE_UP_TO || number.is_multiple_of(32))
    }
}

/// Finds candidates in the rows of a thread.
pub struct CandidateSink<'a> {
    names: &'a NameSearch,
    searcher: Searcher<'a>,
    comparing: Option<Searcher<'a>>,
    classes: &'a [ClassEntry],
    fields: &'a [String],
    leaks: LeakFilter<'a>,
    extra: ExtraColumns,
    found: Candidates,
}

/// Columns that are copied along with the candidates.
#[derive(Clone, Copy)]
pub struct ExtraColumns {
    /// The number of columns to keep, which come first.
    pub n_keep: usize,
    /// Whether photos are listed; the URL and caption columns then follow.
    pub lists_photos: bool,
}

/// The candidates of one block.
#[derive(Default)]
pub struct Candidates {
    pub rows: Vec<CandidateRow>,
    /// The values of each row in the columns to keep, if any.
    pub kept: Vec<Vec<Option<String>>>,
    /// The photos of these rows.
    pub photos: Vec<Photo>,
    /// The index of each row's class.
    pub classes: Vec<usize>,
    /// Whether the block was also searched by the rule `plural`.
    pub is_compared: bool,
    /// The index of the class of each candidate of the rule `plural`, if the block was searched by it.
    pub plural: Vec<usize>,
    pub n_rows: u64,
    /// Candidates that are copies of guarded examples, dropped or not.
    pub n_leaks: u64,
    /// Candidates without features for the leak guard.
    pub n_unchecked: u64,
}

impl<'a> CandidateSink<'a> {
    pub fn new(
        names: &'a NameSearch,
        classes: &'a ClassList,
        source: &'a TextSource,
        leaks: LeakFilter<'a>,
        extra: ExtraColumns,
    ) -> CandidateSink<'a> {
        let classes = classes.classes();
        let fields = source.text_columns();
        let found = Candidates::default();
        let comparing = names.comparing.as_ref().map(Matcher::searcher);
        let searcher = names.matcher.searcher();
        CandidateSink { names, searcher, comparing, classes, fields, leaks, extra, found }
    }

    #[inline]
    fn searcher(&mut self) -> &mut Searcher<'a> {
        match &mut self.comparing {
            Some(comparing) if self.found.is_compared => comparing,
            _ => &mut self.searcher,
        }
    }

    /// Takes the candidates since the last call.
    pub fn take(&mut self) -> Candidates {
        std::mem::take(&mut self.found)
    }
}

impl RowSink for CandidateSink<'_> {
    fn start_block(&mut self, number: u64) {
        self.found.is_compared = self.names.compares_block(number);
    }

    fn text(&mut self, column: usize, text: &str, encoding: TextEncoding) {
        self.searcher().push(column, text, encoding);
    }

    fn end_row(&mut self, id: &str, kept: &KeptValues<'_>) {
        let CandidateSink { searcher, comparing, classes, fields, leaks, extra, found, .. } = self;
        let searcher = match comparing {
            Some(comparing) if found.is_compared => comparing,
            _ => searcher,
        };
        found.n_rows += 1;
        let n_before = found.rows.len();
        searcher.take_compared(|hit| {
            let hit = match hit {
                ComparedMatch::Asked(hit) => hit,
                ComparedMatch::Wider(class) => {
                    let leak = leaks.checked.and_then(|checked| checked.get(id)).and_then(Option::as_ref);
                    if leak.is_none() || leaks.fate == LeakFate::Flag {
                        found.plural.push(class);
                    }
                    return;
                }
            };
            let leak = match leaks.checked.map(|checked| checked.get(id)) {
                None => None, // no guard
                Some(None) => {
                    found.n_unchecked += 1;
                    None
                }
                Some(Some(leak)) => leak.clone(),
            };
            found.n_leaks += u64::from(leak.is_some());
            if leak.is_some() && leaks.fate == LeakFate::Drop {
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
        let n_new = found.rows.len() - n_before;
        if n_new == 0 {
            return;
        }
        if extra.n_keep > 0 {
            let values: Vec<Option<String>> = (0..extra.n_keep).map(kept).collect();
            found.kept.extend(std::iter::repeat_n(values, n_new));
        }
        if extra.lists_photos {
            let url = kept(extra.n_keep);
            let caption = kept(extra.n_keep + 1);
            found.photos.push(Photo { id: id.to_owned(), url, caption });
        }
    }

    fn forget_row(&mut self) {
        self.searcher().forget();
    }
}

/// The candidates of the rule `plural` in the blocks that are also searched by it.
pub struct PluralCount {
    /// The number of rows in these blocks.
    pub n_rows: u64,
    /// For each class, how many more candidates `plural` finds in them; negative where it excludes more.
    more: Vec<i64>,
}

impl PluralCount {
    pub fn new(n_classes: usize) -> PluralCount {
        PluralCount { n_rows: 0, more: vec![0; n_classes] }
    }

    pub fn add(&mut self, found: &Candidates) {
        if found.is_compared {
            self.n_rows += found.n_rows;
            found.plural.iter().for_each(|&class| self.more[class] += 1);
            found.classes.iter().for_each(|&class| self.more[class] -= 1);
        }
    }

    /// The number of candidates that `plural` would find for each class; exact if all rows were searched by it.
    pub fn estimate(&self, counts: &[u64], n_rows: u64) -> Vec<u64> {
        let scale = n_rows as f64 / self.n_rows.max(1) as f64;
        let total = |(&n, &more): (&u64, &i64)| n.saturating_add_signed((more as f64 * scale).round() as i64);
        counts.iter().zip(&self.more).map(total).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_sample_are_scaled_to_all_rows() {
        let mut plural = PluralCount::new(2);
        let found = |is_compared, classes: &[usize], wider: &[usize]| Candidates {
            is_compared,
            classes: classes.to_vec(),
            plural: wider.to_vec(),
            n_rows: 10,
            ..Candidates::default()
        };
        plural.add(&found(true, &[0, 1], &[0, 0, 0]));
        plural.add(&found(false, &[0, 1], &[]));
        assert_eq!(plural.estimate(&[2, 2], 20), [6, 0]);
        assert_eq!(plural.estimate(&[2, 2], 10), [4, 1]);
    }
}
