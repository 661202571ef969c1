//! Checks the documents: links lead somewhere, commands parse, named tests exist.

use std::path::Path;

use crate::documents::{check_commands, code_spans, commands, documents, read, root};

/// The equations, tables and figures that the paper map must account for.
const EQUATIONS: std::ops::RangeInclusive<usize> = 1..=8;
const TABLES: std::ops::RangeInclusive<usize> = 1..=5; // ablation, state of the art, Places365, all classes, mini-ImageNet
const FIGURES: std::ops::RangeInclusive<usize> = 1..=5;

/// The targets of `[text](target)` outside of code blocks.
fn links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let parts = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        links.extend(parts.map(|(target, _)| target).filter(|_| !in_code));
    }
    links
}

fn defines(source: &str, symbol: &str) -> bool {
    let kinds = ["fn", "struct", "enum", "trait", "const", "type", "mod"];
    kinds.iter().any(|kind| {
        source.match_indices(&format!("{kind} {symbol}")).any(|(at, found)| {
            let next = source[at + found.len()..].chars().next().unwrap_or(' ');
            !next.is_alphanumeric() && next != '_'
        })
    })
}

/// A heading as the fragment that renderers make of it.
fn heading_anchor(line: &str) -> Option<String> {
    let title = line.strip_prefix('#')?.trim_start_matches('#').trim();
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    Some(kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect())
}

/// Why a link leads nowhere, if so.
fn dangles(document: &Path, link: &str) -> Option<String> {
    if link.starts_with("http://") || link.starts_with("https://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, fragment) =
        link.split_once('#').map_or((link, None), |(path, fragment)| (path, Some(fragment)));
    let target = if path.is_empty() { document.to_path_buf() } else { document.parent()?.join(path) };
    if !target.exists() {
        return Some(format!("{}: `{link}` leads to no file", document.display()));
    }
    let fragment = fragment?;
    let found = match target.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => defines(&read(&target), fragment),
        Some("md") => read(&target).lines().filter_map(heading_anchor).any(|anchor| anchor == fragment),
        _ => true,
    };
    (!found).then(|| format!("{}: `{link}` leads to a file without `{fragment}`", document.display()))
}

/// Every Rust source of the workspace in one text.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&read(&path));
        }
    }
}

#[test]
fn every_relative_link_of_the_documents_leads_somewhere() {
    let documents = documents();
    let broken: Vec<String> = documents
        .iter()
        .flat_map(|path| {
            let text = read(path);
            links(&text).into_iter().filter_map(|link| dangles(path, link)).collect::<Vec<_>>()
        })
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_paper_map_accounts_for_every_equation_table_and_figure() {
    let map = read(&root().join("docs/paper-map.md"));
    let mentions = |what: &str| {
        map.match_indices(what)
            .any(|(at, _)| !map[at + what.len()..].starts_with(|c: char| c.is_ascii_digit()))
    };
    let wanted = EQUATIONS.map(|n| format!("Eq. ({n})"));
    let wanted =
        wanted.chain(TABLES.map(|n| format!("Table {n}"))).chain(FIGURES.map(|n| format!("Figure {n}")));
    let missing: Vec<String> = wanted.filter(|what| !mentions(what)).collect();
    assert!(missing.is_empty(), "docs/paper-map.md says nothing of {missing:?}");
}

#[test]
fn every_test_that_the_paper_map_names_exists() {
    let map = read(&root().join("docs/paper-map.md"));
    let mut code = String::new();
    sources(&root().join("crates"), &mut code);
    let named: Vec<&str> = code_spans(&map).into_iter().filter(|span| span.starts_with("eq_")).collect();
    assert!(!named.is_empty(), "the map names the tests of the equations");
    let missing: Vec<&&str> = named.iter().filter(|name| !defines(&code, name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_command_in_the_documents_parses() {
    check_commands("labelsieve");
}

#[test]
fn dangling_links_are_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let document = folder.path().join("map.md");
    std::fs::write(&document, "# The one title\n").expect("disk space");
    std::fs::write(folder.path().join("a.rs"), "pub fn eq_1(x: f32) {}\nstruct Gcn;\n").expect("disk space");
    for (link, good) in [
        ("a.rs", true),
        ("a.rs#eq_1", true),
        ("a.rs#Gcn", true),
        ("#the-one-title", true),
        ("https://example.org/none", true),
        ("b.rs", false),
        ("a.rs#eq_", false),
        ("a.rs#eq_2", false),
        ("map.md#another-title", false),
    ] {
        assert_eq!(dangles(&document, link).is_none(), good, "{link}");
    }
    let text = "`labelsieve demo`, `demo`\n```sh\n$ labelsieve score \\\n  --seed 1 # why\nls\n```\n";
    assert_eq!(commands(text, "labelsieve"), ["labelsieve demo", "labelsieve score    --seed 1"]);
    assert_eq!(links("see [a](b.md) and\n```\n[c](d)\n```\n[e](f#g)."), ["b.md", "f#g"]);
}
