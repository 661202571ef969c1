//! Crates below the front ends name options by their fields, `option("id_column")`, and never spell them: `--id-column` is for
//! the command line to write, `id_column=` for Python.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use labelsieve_cli::options;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The crates that spell options.
const FRONT_ENDS: [&str; 3] = ["labelsieve-bench", "labelsieve-cli", "labelsieve-python"];

/// Words with two dashes that are not options of ours, and the files that may have them.
struct Exception {
    file: &'static str,
    words: &'static [&'static str],
}

const EXCEPTIONS: [Exception; 6] = [
    // Of NVIDIA's compiler.
    Exception {
        file: "labelsieve-cuda/src/kernels/mod.rs",
        words: &["--gpu-architecture", "--fmad", "--std"],
    },
    Exception { file: "labelsieve-cuda/src/networks/kernels/mod.rs", words: &["--define-macro"] },
    // Of cargo.
    Exception { file: "labelsieve-networks/src/embed_text/no_tokenizer.rs", words: &["--features"] },
    Exception { file: "labelsieve-networks/src/opening/onnx/mod.rs", words: &["--features"] },
    // Of the Hugging Face Hub's program.
    Exception { file: "labelsieve-networks/src/opening/network.rs", words: &["--local-dir"] },
    // Variables of CSS.
    Exception {
        file: "labelsieve-report/src/svg/style.rs",
        words: &[
            "--fig-axis",
            "--fig-grid",
            "--fig-ink",
            "--fig-muted",
            "--fig-paper",
            "--fig-s",
            "--fig-s0",
            "--fig-s1",
            "--fig-s2",
            "--fig-s3",
            "--fig-s4",
            "--fig-s5",
            "--fig-s6",
            "--fig-s7",
        ],
    },
];

/// An option that the sources name, of a command if they say of which.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NamedOption {
    command: Option<String>,
    option: String,
}

/// The strings of a source, and the options and commands that it names.
#[derive(Default)]
struct Source {
    /// As they are written, with their quotes and escapes.
    strings: Vec<String>,
    options: Vec<NamedOption>,
    commands: Vec<String>,
    /// Modules for tests that lie in files of their own.
    test_modules: Vec<String>,
}

impl Source {
    fn read(path: &Path) -> Source {
        let text = std::fs::read_to_string(path).expect("a text");
        let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut source = Source::default();
        source.walk(tokens);
        source
    }

    fn walk(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if is_test_attribute(&tokens[at..]) {
                at += self.skip_item(&tokens[at..]);
                continue;
            }
            match &tokens[at] {
                TokenTree::Literal(literal) if is_string(&literal.to_string()) => {
                    self.strings.push(literal.to_string());
                }
                TokenTree::Group(group) if !is_documentation(group) => self.walk(group.stream()),
                TokenTree::Ident(word) if word == "option" => {
                    let option = argument(tokens.get(at + 1));
                    self.options.extend(option.map(|option| NamedOption { command: None, option }));
                }
                TokenTree::Ident(word) if word == "command" => {
                    if let Some(command) = argument(tokens.get(at + 1)) {
                        self.add_command(command, &tokens[at + 2..]);
                    }
                }
                _ => (),
            }
            at += 1;
        }
    }

    /// A command, and the options that `.with(…)` gives it.
    fn add_command(&mut self, command: String, mut rest: &[TokenTree]) {
        while let [TokenTree::Punct(dot), TokenTree::Ident(with), TokenTree::Group(group), more @ ..] = rest
            && dot.as_char() == '.'
            && with == "with"
        {
            let mut inner = Source::default();
            inner.walk(group.stream());
            let named = inner
                .options
                .into_iter()
                .map(|named| NamedOption { command: Some(command.clone()), option: named.option });
            self.options.extend(named);
            rest = more;
        }
        self.commands.push(command);
    }

    /// The number of tokens of an item that is compiled for tests alone.
    fn skip_item(&mut self, tokens: &[TokenTree]) -> usize {
        let is_end = |token: &TokenTree| match token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            TokenTree::Punct(punct) => punct.as_char() == ';',
            _ => false,
        };
        let end = tokens.iter().position(is_end).map_or(tokens.len(), |end| end + 1);
        if let [.., TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Punct(_)] = &tokens[..end]
            && word == "mod"
        {
            self.test_modules.push(name.to_string());
        }
        end
    }
}

/// Whether these begin with `#[cfg(test)]`.
fn is_test_attribute(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(hash), TokenTree::Group(group), ..] = tokens else { return false };
    hash.as_char() == '#' && group.to_string().replace(' ', "") == "[cfg(test)]"
}

/// Whether a group is the attribute that a doc comment stands for.
fn is_documentation(group: &proc_macro2::Group) -> bool {
    let is_attribute = group.delimiter() == Delimiter::Bracket;
    is_attribute && group.stream().into_iter().next().is_some_and(|first| first.to_string() == "doc")
}

fn is_string(literal: &str) -> bool {
    literal.trim_start_matches(['b', 'c', 'r', '#']).starts_with('"')
}

/// The only string between parentheses.
fn argument(token: Option<&TokenTree>) -> Option<String> {
    let Some(TokenTree::Group(group)) = token else { return None };
    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
    match &inner[..] {
        [TokenTree::Literal(literal)] => {
            literal.to_string().strip_prefix('"')?.strip_suffix('"').map(str::to_owned)
        }
        _ => None,
    }
}

/// The words of a string that look like options.
fn spelled_options(text: &str) -> Vec<String> {
    let starts = text.match_indices("--").map(|(start, _)| start);
    let words = starts.filter_map(|start| {
        let is_inside = text[..start].ends_with(|before: char| before.is_alphanumeric() || before == '-');
        let rest = &text[start + 2..];
        let is_word = !is_inside && rest.starts_with(|first: char| first.is_ascii_lowercase());
        let end = rest
            .find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'))
            .unwrap_or(rest.len());
        is_word.then(|| format!("--{}", &rest[..end]))
    });
    words.collect()
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder of crates").to_path_buf()
}

/// All sources of a crate but those of tests, by their paths below the folder of crates.
fn sources(name: &str) -> BTreeMap<PathBuf, Source> {
    let crates = crates();
    let mut found = BTreeMap::new();
    let mut of_tests = BTreeSet::new();
    let mut folders = vec![crates.join(name).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let source = Source::read(&path);
                let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
                if stem.ends_with("_tests") {
                    continue; // `#[path = "NAME_tests.rs"] mod tests;` of NAME.rs
                }
                let is_root = ["lib", "main", "mod"].contains(&stem.as_str());
                let below = if is_root { folder.clone() } else { folder.join(&stem) };
                of_tests.extend(source.test_modules.iter().map(|module| below.join(module)));
                found.insert(path, source);
            }
        }
    }
    found.retain(|path, _| !path.ancestors().any(|part| of_tests.contains(&part.with_extension(""))));
    let below = |path: PathBuf| path.strip_prefix(&crates).expect("a path below crates").to_path_buf();
    found.into_iter().map(|(path, source)| (below(path), source)).collect()
}

/// The sources of all crates but these.
fn sources_without(excluded: &[&str]) -> BTreeMap<PathBuf, Source> {
    let crates = std::fs::read_dir(crates()).expect("a folder");
    let names = crates.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let names: Vec<String> = names.filter(|name| !excluded.contains(&name.as_str())).collect();
    assert!(names.len() > 5, "{names:?}");
    names.iter().flat_map(|name| sources(name)).collect()
}

/// The options of a command by their fields.
fn options_of(command: &str) -> BTreeSet<String> {
    let described = options::describe(command).unwrap_or_else(|| panic!("no command `{command}`"));
    let flags = described.into_iter().filter_map(|option| option.flag);
    flags.map(|flag| flag.trim_start_matches('-').replace('-', "_")).collect()
}

#[test]
fn no_string_below_the_front_ends_spells_an_option() {
    let mut unused: BTreeSet<(&str, &str)> = EXCEPTIONS
        .iter()
        .flat_map(|exception| exception.words.iter().map(|word| (exception.file, *word)))
        .collect();
    let mut spelled = Vec::new();
    let mut n_strings = 0;
    for (path, source) in sources_without(&FRONT_ENDS) {
        n_strings += source.strings.len();
        for string in &source.strings {
            for word in spelled_options(string) {
                let known = EXCEPTIONS.iter().find(|exception| path == Path::new(exception.file));
                let known = known
                    .and_then(|known| Some((known.file, *known.words.iter().find(|one| **one == word)?)));
                match known {
                    Some(known) => {
                        unused.remove(&known);
                    }
                    None => spelled.push(format!("{}: {string}", path.display())),
                }
            }
        }
    }
    assert!(n_strings > 2000, "the sources were not read: {n_strings} strings");
    assert!(spelled.is_empty(), "name these with `option(\"field\")`:\n{}", spelled.join("\n"));
    assert!(unused.is_empty(), "exceptions that nothing needs: {unused:?}");
}

/// A variable of CSS that a script of the report sets.
const CSS_VARIABLE: &str = "--rows";

#[test]
fn no_page_spells_an_option() {
    let mut spelled = Vec::new();
    let mut n_files = 0;
    for folder in ["labelsieve-review/page", "labelsieve-report/src/html/script"] {
        for entry in std::fs::read_dir(crates().join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension == "css") {
                continue; // variables of CSS
            }
            n_files += 1;
            let words = spelled_options(&std::fs::read_to_string(&path).expect("a text"));
            let words = words.into_iter().filter(|word| word != CSS_VARIABLE);
            spelled.extend(words.map(|word| format!("{}: {word}", path.display())));
        }
    }
    assert!(n_files > 20, "the pages were not read: {n_files} files");
    assert!(spelled.is_empty(), "{spelled:?}");
}

#[test]
fn no_string_below_the_front_ends_spells_an_argument_of_python() {
    let names: BTreeSet<String> =
        options::commands().iter().flat_map(|command| options_of(command)).collect();
    assert!(names.contains("id_column") && names.contains("pool"));
    let mut spelled = Vec::new();
    for (path, source) in sources_without(&FRONT_ENDS) {
        for string in &source.strings {
            let is_spelled = |name: &String| {
                string.contains(&format!("`{name}="))
                    || (name.contains('_') && string.contains(&format!("{name}=")))
            };
            if names.iter().any(is_spelled) {
                spelled.push(format!("{}: {string}", path.display()));
            }
        }
    }
    assert!(spelled.is_empty(), "name these with `option(\"field\")`:\n{}", spelled.join("\n"));
}

/// Options of `labelsieve-bench pretrain`, which trains prototypical networks by the same job.
const OF_THE_BENCHMARK: [&str; 3] = ["ways", "shots", "queries"];

#[test]
fn messages_name_options_and_commands_that_there_are() {
    let commands: BTreeSet<String> = options::commands().into_iter().collect();
    let all = commands.iter().flat_map(|command| options_of(command));
    let all: BTreeSet<String> = all.chain(OF_THE_BENCHMARK.map(str::to_owned)).collect();
    let mut n_options = 0;
    for (path, source) in sources_without(&["labelsieve-bench"]) {
        let path = path.display();
        for command in &source.commands {
            assert!(commands.contains(command), "{path}: no command `{command}`");
        }
        for NamedOption { command, option } in &source.options {
            n_options += 1;
            match command {
                Some(command) => {
                    assert!(options_of(command).contains(option), "{path}: `{command}` has no `{option}`");
                }
                None => assert!(all.contains(option), "{path}: no command has `{option}`"),
            }
        }
    }
    assert!(n_options > 80, "the sources were not read: {n_options} options");
}

#[test]
fn strings_are_told_from_comments_and_tests() {
    let mut source = Source::default();
    source.walk(
        r##"
        //! `--comment`
        /// `--doc`
        fn message() -> Words {
            words!["pass --one or ", option("two"), r#" "--three=x" "#, command("score").with(option("four").set_to(1))]
        }
        #[error("--five")]
        struct Five;
        #[cfg(test)]
        mod inner { const SIX: &str = "--six"; }
        #[cfg(test)]
        mod elsewhere;
        const DASHES: &str = "a--b ---c <!-- d -- e";
        "##
        .parse()
        .expect("tokens"),
    );
    let words: Vec<String> = source.strings.iter().flat_map(|string| spelled_options(string)).collect();
    assert_eq!(words, ["--one", "--three", "--five"]);
    let named = |command: Option<&str>, option: &str| NamedOption {
        command: command.map(str::to_owned),
        option: option.to_owned(),
    };
    assert!(source.options.contains(&named(None, "two")));
    assert!(source.options.contains(&named(Some("score"), "four")));
    assert_eq!(source.test_modules, ["elsewhere"]);
}
