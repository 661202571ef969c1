//! The structs of the workspace that can be serialised, read from its sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use syn::{Attribute, Expr, Fields, GenericArgument, Item, Lit, Meta, PathArguments, Type};

/// All structs and enums that derive `Serialize`, by name. A name may stand for several.
pub struct Structs {
    by_name: BTreeMap<String, Vec<Definition>>,
}

/// A struct or an enum.
#[derive(Clone)]
pub struct Definition {
    /// The source file, below `crates`.
    file: PathBuf,
    pub shape: Shape,
}

/// How a type is serialised.
#[derive(Clone)]
pub enum Shape {
    Object(Vec<Field>),
    /// The name of a variant without fields.
    OneOf(Vec<String>),
}

/// A field of a struct.
#[derive(Clone)]
pub struct Field {
    pub name: String,
    pub doc: String,
    pub value: Value,
    /// Whether it may be left out.
    pub is_optional: bool,
    /// Whether its own fields stand in its place.
    pub is_flat: bool,
}

/// The JSON type of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Plain(&'static str),
    Nullable(Box<Value>),
    Array(Box<Value>),
    /// An object with a key for each class or method.
    ByName(Box<Value>),
    /// Another struct or enum.
    Named(String),
    /// A type that no answer has had so far.
    Unknown(String),
}

impl Structs {
    /// Parses the sources of all crates.
    pub fn read(crates: &Path) -> Structs {
        let mut structs = Structs { by_name: BTreeMap::new() };
        structs.read_folder(crates, crates);
        structs
    }

    fn read_folder(&mut self, crates: &Path, folder: &Path) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let file = path.strip_prefix(crates).expect("a path below crates");
            if path.is_dir() && file.components().nth(1).is_none_or(|part| part.as_os_str() == "src") {
                self.read_folder(crates, &path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let source = std::fs::read_to_string(&path).expect("a text");
                if source.contains("Serialize") {
                    self.add(file, &source);
                }
            }
        }
    }

    fn add(&mut self, file: &Path, source: &str) {
        let parsed = syn::parse_file(source).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for item in parsed.items {
            let (name, shape) = match item {
                Item::Struct(item) if is_serialised(&item.attrs) => (item.ident, object(&item.fields)),
                Item::Enum(item) if is_serialised(&item.attrs) => {
                    let is_kebab = serde_words(&item.attrs).contains(&"rename_all=kebab-case".to_owned());
                    let variants = item.variants.iter().filter(|variant| variant.fields.is_empty());
                    let names = variants.map(|variant| variant.ident.to_string());
                    let names = names.map(|name| if is_kebab { kebab_case(&name) } else { name });
                    (item.ident, Shape::OneOf(names.collect()))
                }
                _ => continue,
            };
            let definition = Definition { file: file.to_path_buf(), shape };
            self.by_name.entry(name.to_string()).or_default().push(definition);
        }
    }

    /// The struct of this name in a crate.
    pub fn in_crate(&self, crate_name: &str, name: &str) -> &Definition {
        let all = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let found: Vec<&Definition> = all.iter().filter(|found| found.file.starts_with(crate_name)).collect();
        match found[..] {
            [found] => found,
            [] => panic!(
                "no `{name}` that derives Serialize in {crate_name}; COMMANDS must name the new struct"
            ),
            _ => panic!("several structs `{name}` in {crate_name}; one of them needs another name"),
        }
    }

    /// The struct that `name` means where `user` mentions it: in the same file, the same crate, or the only one.
    pub fn seen_from(&self, user: &Definition, name: &str) -> &Definition {
        let all = self.by_name.get(name).unwrap_or_else(|| panic!("no `{name}` that derives Serialize"));
        let crate_of = |file: &Path| file.iter().next().map(ToOwned::to_owned);
        let in_file = all.iter().filter(|found| found.file == user.file).collect::<Vec<_>>();
        let in_crate = all.iter().filter(|found| crate_of(&found.file) == crate_of(&user.file)).collect();
        let everywhere = all.iter().collect();
        let nearest = [in_file, in_crate, everywhere].into_iter().find(|found| !found.is_empty());
        match nearest.as_deref() {
            Some([found]) => found,
            _ => panic!("several structs `{name}`; {} may mean any", user.file.display()),
        }
    }
}

fn object(fields: &Fields) -> Shape {
    let fields = fields.iter().filter_map(|field| {
        let words = serde_words(&field.attrs);
        let has = |word: &str| words.iter().any(|found| found == word);
        if has("skip") || has("skip_serializing") {
            return None;
        }
        let starting = |start: &str| words.iter().find_map(|word| word.strip_prefix(start));
        let own_name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
        Some(Field {
            name: starting("rename=").map_or(own_name, str::to_owned),
            doc: doc(&field.attrs),
            value: value(&field.ty),
            is_optional: starting("skip_serializing_if").is_some(),
            is_flat: has("flatten"),
        })
    });
    Shape::Object(fields.collect())
}

fn is_serialised(attributes: &[Attribute]) -> bool {
    let mut found = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
        let _ = attribute.parse_nested_meta(|meta| {
            found |= meta.path.segments.last().is_some_and(|segment| segment.ident == "Serialize");
            Ok(())
        });
    }
    found
}

/// The serde attributes as `flatten` or `rename=name`.
fn serde_words(attributes: &[Attribute]) -> Vec<String> {
    let mut words = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let parsed = attribute.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            words.push(match meta.value() {
                Ok(value) => format!("{name}={}", value.parse::<syn::LitStr>()?.value()),
                Err(_) => name,
            });
            Ok(())
        });
        parsed.expect("attributes of the form `name` or `name = \"value\"`");
    }
    words
}

/// The doc comment in one line; links to code become code.
fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let text = lines.collect::<Vec<_>>().join(" ");
    let mut spans = text.split("[`");
    let mut plain = spans.next().unwrap_or_default().to_owned();
    for span in spans {
        let (code, rest) = span.split_once("`]").expect("a link that ends");
        let name = code.rsplit("::").next().unwrap_or(code);
        plain += &format!("`{name}`{rest}");
    }
    plain
}

fn value(kind: &Type) -> Value {
    match kind {
        Type::Reference(reference) => value(&reference.elem),
        Type::Array(array) => Value::Array(Box::new(value(&array.elem))),
        Type::Slice(slice) => Value::Array(Box::new(value(&slice.elem))),
        Type::Path(path) => {
            let last = path.path.segments.last().expect("a name");
            let arguments: Vec<&Type> = match &last.arguments {
                PathArguments::AngleBracketed(arguments) => {
                    arguments.args.iter().filter_map(type_of).collect()
                }
                _ => Vec::new(),
            };
            let name = last.ident.to_string();
            match (name.as_str(), &arguments[..]) {
                ("bool", []) => Value::Plain("boolean"),
                ("u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64", []) => Value::Plain("integer"),
                ("f32" | "f64", []) => Value::Plain("number"),
                ("str" | "String" | "PathBuf" | "Path", []) => Value::Plain("string"),
                ("Option", [inner]) => Value::Nullable(Box::new(value(inner))),
                ("Vec", [inner]) => Value::Array(Box::new(value(inner))),
                ("BTreeMap", [_, inner]) => Value::ByName(Box::new(value(inner))),
                (_, []) => Value::Named(name),
                _ => Value::Unknown(format!("`{name}` with arguments")),
            }
        }
        _ => Value::Unknown("neither a path, a reference, an array nor a slice".into()),
    }
}

fn type_of(argument: &GenericArgument) -> Option<&Type> {
    if let GenericArgument::Type(kind) = argument { Some(kind) } else { None }
}

fn kebab_case(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.extend(letter.to_lowercase());
    }
    kebab
}

#[test]
fn attributes_and_links_are_understood() {
    let mut structs = Structs { by_name: BTreeMap::new() };
    structs.add(
        Path::new("labelsieve-x/src/a.rs"),
        r#"
        /// Counts.
        #[derive(Clone, serde::Serialize)]
        pub struct Counts<'a> {
            /// Kept with [`Job::limit`], over
            /// two lines.
            #[serde(rename = "result")]
            n: u64,
            #[serde(default, skip_serializing_if = "Option::is_none", alias = "m")]
            mean: Option<f64>,
            #[serde(skip)]
            hidden: bool,
            #[serde(flatten)]
            more: More,
            names: &'a [String],
            by_class: BTreeMap<String, More>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "kebab-case")]
        enum More { One, TwoWords }
        struct NotSerialised(u8);
        "#,
    );
    assert_eq!(structs.by_name.keys().collect::<Vec<_>>(), ["Counts", "More"]);
    let counts = structs.in_crate("labelsieve-x", "Counts");
    let Shape::Object(fields) = &counts.shape else { panic!("a struct") };
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["result", "mean", "more", "names", "by_class"]);
    assert_eq!(fields[0].doc, "Kept with `limit`, over two lines.");
    assert_eq!(fields[1].value, Value::Nullable(Box::new(Value::Plain("number"))));
    assert!(fields[1].is_optional && !fields[0].is_optional && fields[2].is_flat);
    assert_eq!(fields[3].value, Value::Array(Box::new(Value::Plain("string"))));
    assert_eq!(fields[4].value, Value::ByName(Box::new(Value::Named("More".into()))));
    let Shape::OneOf(variants) = &structs.seen_from(counts, "More").shape else { panic!("an enum") };
    assert_eq!(*variants, ["one", "two-words"]);
}
