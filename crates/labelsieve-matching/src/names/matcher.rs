//! Finding every name of every class in one pass over a text.

use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::error::{NamesError, Result};
use super::words::{TextEncoding, WordBuffer};
use super::{ClassList, MatchRule};

/// One automaton over all names, shared by all threads; each thread searches with its own [`Searcher`].
pub struct Matcher {
    automaton: AhoCorasick,
    /// For each pattern of the automaton, the names that it represents.
    targets: Vec<Vec<Target>>,
    warnings: Vec<NameWarning>,
    compares: bool,
}

/// A name that a pattern represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target {
    class: usize,
    role: Role,
    reach: Reach,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Excludes,
    Names(usize),
}

/// The rules that search for a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Asked,
    Wider,
    Both,
}

/// A class found in an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassMatch {
    /// Position in the [`ClassList`].
    pub class: usize,
    /// Position in the class's names: the earliest of those found in `column`.
    pub name: usize,
    /// The first column that holds a name of the class.
    pub column: usize,
}

/// A class found by a matcher that compares two rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedMatch {
    /// By the requested rule.
    Asked(ClassMatch),
    /// By the wider rule, and perhaps by the other as well: position in the [`ClassList`].
    Wider(usize),
}

/// A warning about the names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameWarning {
    /// A text that contains the words becomes a candidate of several classes.
    Shared {
        /// The words.
        words: String,
        /// Positions of the classes, ascending.
        classes: Vec<usize>,
    },
    /// The name has neither letters nor digits, so it cannot occur in a text.
    Unsearchable {
        /// Position of its class.
        class: usize,
        /// The name as given.
        name: String,
    },
}

impl Matcher {
    /// Builds the automaton. Fails only if there are too many names (billions of letters).
    pub fn new(classes: &ClassList, rule: MatchRule) -> Result<Matcher> {
        let mut targets = BTreeMap::new();
        let mut warnings = Vec::new();
        for_each_name(classes, |class, name, role| {
            let patterns = patterns_of(rule, role, name);
            if patterns.is_empty() {
                warnings.push(NameWarning::Unsearchable { class, name: name.clone() });
            }
            for pattern in patterns {
                add(&mut targets, pattern, Target { class, role, reach: Reach::Asked });
            }
        });
        Matcher::build(targets, warnings)
    }

    /// A matcher for `rule` that also counts what `wider` would find: with one automaton for both, since the pass over the text
    /// takes most of the time. If there are so many names that this would be slower, [`compares`](Matcher::compares) is false.
    pub fn comparing(classes: &ClassList, rule: MatchRule, wider: MatchRule) -> Result<Matcher> {
        let mut targets = BTreeMap::new();
        let mut warnings = Vec::new();
        for_each_name(classes, |class, name, role| {
            let asked = patterns_of(rule, role, name);
            let wider = patterns_of(wider, role, name);
            if asked.is_empty() {
                warnings.push(NameWarning::Unsearchable { class, name: name.clone() });
            }
            for pattern in asked.union(&wider) {
                let reach = match (asked.contains(pattern), wider.contains(pattern)) {
                    (true, true) => Reach::Both,
                    (true, false) => Reach::Asked,
                    (false, _) => Reach::Wider,
                };
                add(&mut targets, pattern.clone(), Target { class, role, reach });
            }
        });
        if automaton_kind(&targets) != AhoCorasickKind::DFA {
            return Matcher::new(classes, rule);
        }
        Ok(Matcher { compares: true, ..Matcher::build(targets, warnings)? })
    }

    fn build(targets: BTreeMap<String, Vec<Target>>, mut warnings: Vec<NameWarning>) -> Result<Matcher> {
        warnings.extend(targets.iter().filter_map(|(pattern, targets)| shared(pattern, targets)));
        let automaton = AhoCorasick::builder()
            .kind(Some(automaton_kind(&targets)))
            .prefilter(false) // it would stop at every word, since all patterns start with a space
            .build(targets.keys());
        let automaton = automaton.map_err(|error| NamesError::TooMany(error.to_string()))?;
        Ok(Matcher { automaton, targets: targets.into_values().collect(), warnings, compares: false })
    }

    /// Whether [`Searcher::take_compared`] reports classes of a wider rule.
    pub fn compares(&self) -> bool {
        self.compares
    }

    /// Names that several classes share, or that cannot be found.
    pub fn warnings(&self) -> &[NameWarning] {
        &self.warnings
    }

    /// Scratch memory for one thread.
    pub fn searcher(&self) -> Searcher<'_> {
        Searcher { matcher: self, words: WordBuffer::default(), text_ends: Vec::new(), hits: Vec::new() }
    }
}

fn for_each_name(classes: &ClassList, mut visit: impl FnMut(usize, &String, Role)) {
    for (class, entry) in classes.classes().iter().enumerate() {
        entry.names.iter().enumerate().for_each(|(index, name)| visit(class, name, Role::Names(index)));
        entry.exclude.iter().for_each(|name| visit(class, name, Role::Excludes));
    }
}

fn patterns_of(rule: MatchRule, role: Role, name: &str) -> BTreeSet<String> {
    match role {
        Role::Names(_) => rule.patterns(name),
        Role::Excludes => rule.for_excluded_names().patterns(name),
    }
}

fn add(targets: &mut BTreeMap<String, Vec<Target>>, pattern: String, target: Target) {
    targets.entry(pattern).or_default().push(target);
}

/// A full transition table reduces the time of the whole command by a seventh compared with the compact automaton, but takes up
/// to 256 bytes per letter of the names.
fn automaton_kind(targets: &BTreeMap<String, Vec<Target>>) -> AhoCorasickKind {
    const MAX_LETTERS: usize = 1 << 20;
    let n_letters: usize = targets.keys().map(String::len).sum();
    if n_letters <= MAX_LETTERS { AhoCorasickKind::DFA } else { AhoCorasickKind::ContiguousNFA }
}

fn shared(pattern: &str, targets: &[Target]) -> Option<NameWarning> {
    let names = targets.iter().filter(|target| target.role != Role::Excludes && target.reach != Reach::Wider);
    let mut classes: Vec<usize> = names.map(|target| target.class).collect();
    classes.dedup(); // targets were added in class order
    (classes.len() > 1).then(|| NameWarning::Shared { words: pattern.trim().to_string(), classes })
}

/// Searches one example at a time: [`push`](Searcher::push) its texts, then [`take_found`](Searcher::take_found).
pub struct Searcher<'a> {
    matcher: &'a Matcher,
    words: WordBuffer,
    /// For each text: its column and the end of its words in `words`.
    text_ends: Vec<(usize, usize)>,
    hits: Vec<(Target, usize)>,
}

impl Searcher<'_> {
    /// Adds a text of the current example. A column may have several texts (tags); no match spans two of them.
    pub fn push(&mut self, column: usize, text: &str, encoding: TextEncoding) {
        self.words.push(text, encoding);
        self.text_ends.push((column, self.words.bytes().len()));
    }

    /// Calls `found` for every class of the current example, in class order, and starts the next example.
    pub fn take_found(&mut self, mut found: impl FnMut(ClassMatch)) {
        self.take_compared(|class| match class {
            ComparedMatch::Asked(class) => found(class),
            ComparedMatch::Wider(_) => {}
        });
    }

    /// As [`Searcher::take_found`], including classes of the wider rule of [`Matcher::comparing`].
    pub fn take_compared(&mut self, mut found: impl FnMut(ComparedMatch)) {
        self.collect_hits();
        self.forget();
        // For each class the exclusion or, failing that, the hit in the first column comes first.
        self.hits.sort_unstable_by_key(|&(target, column)| match target.role {
            Role::Excludes => (target.class, 0, 0),
            Role::Names(name) => (target.class, column + 1, name),
        });
        for hits in self.hits.chunk_by(|(a, _), (b, _)| a.class == b.class) {
            let first = |not: Reach| {
                let (target, column) = hits.iter().find(|(target, _)| target.reach != not)?;
                match target.role {
                    Role::Names(name) => Some(ClassMatch { class: target.class, name, column: *column }),
                    Role::Excludes => None,
                }
            };
            if let Some(class) = first(Reach::Wider) {
                found(ComparedMatch::Asked(class));
            }
            if let Some(ClassMatch { class, .. }) = first(Reach::Asked) {
                found(ComparedMatch::Wider(class));
            }
        }
    }

    /// Drops the texts of the current example, which turned out to be unreadable.
    pub fn forget(&mut self) {
        self.words.clear();
        self.text_ends.clear();
    }

    fn collect_hits(&mut self) {
        self.hits.clear();
        let mut text = 0;
        for found in self.matcher.automaton.find_overlapping_iter(self.words.bytes()) {
            while self.text_ends[text].1 < found.end() {
                text += 1; // matches come by their ends, ascending
            }
            let column = self.text_ends[text].0;
            self.hits.extend(self.matcher.targets[found.pattern()].iter().map(|&target| (target, column)));
        }
    }
}
