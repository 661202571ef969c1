//! Turns texts into tokens, by the folder's tokenizer.json.

use std::path::Path;

use labelsieve_files::DataError;
use labelsieve_files::work::{Error, Result};
use serde_json::Value;
use tokenizers::{Tokenizer, TruncationParams};

use crate::transformer::TextPooling;
use crate::transformer::families::TextDescription;

/// The tokenizer of a text tower.
pub struct TextTokenizer {
    tokenizer: Tokenizer,
    preparation: Preparation,
    padding: Option<Padding>,
}

/// The preparation of a text that tokenizer.json does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preparation {
    /// Nothing.
    None,
    /// Lower case, as SigLIP 2 was trained.
    LowerCase,
    /// Lower case without punctuation, as SigLIP was trained.
    Canonical,
}

/// How texts are padded to the full length.
struct Padding {
    token: u32,
    length: usize,
    is_left: bool,
}

impl TextTokenizer {
    /// Reads `tokenizer.json`, and padding and case from `tokenizer_config.json`.
    pub fn open(folder: &Path, config: &Value, described: &TextDescription) -> Result<TextTokenizer> {
        let path = folder.join("tokenizer.json");
        if !path.is_file() {
            return Err(Error::input(
                format!("`{}` has no tokenizer.json", folder.display()),
                "download it with the other files of the model; `transformers` writes one with \
                 `AutoTokenizer.from_pretrained(MODEL).save_pretrained(FOLDER)`",
            ));
        }
        let wrong = |reason: String| {
            Error::input(
                format!("`{}` is not a usable tokenizer: {reason}", path.display()),
                "it must be the tokenizer.json that came with the model",
            )
        };
        let bytes = std::fs::read(&path).map_err(DataError::io("read", &path))?;
        let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(|error| wrong(error.to_string()))?;
        tokenizer.with_padding(None);
        let truncation =
            TruncationParams { max_length: described.text.context, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(|error| wrong(error.to_string()))?;
        let more = tokenizer_config(folder)?;
        let preparation = preparation(described.architecture, &more);
        let padding = match described.text.pooling {
            TextPooling::Last => Some(Padding {
                token: pad_token(&tokenizer, &more, config)
                    .ok_or_else(|| wrong("no padding token".to_owned()))?,
                length: described.text.context,
                is_left: more["padding_side"] == "left",
            }),
            TextPooling::First(_) | TextPooling::Largest => None,
        };
        Ok(TextTokenizer { tokenizer, preparation, padding })
    }

    /// The tokens of each text, and whether it had to be cut.
    pub fn tokens(&self, texts: &[String]) -> Result<(Vec<Vec<u32>>, Vec<bool>)> {
        let tokens = texts.iter().map(|text| {
            let encoding = self.tokenizer.encode(self.preparation.apply(text), true).map_err(|error| {
                Error::input(format!("cannot tokenize `{text}`: {error}"), "change the name or the template")
            })?;
            let mut tokens = encoding.get_ids().to_vec();
            if let Some(padding) = &self.padding {
                padding.fill(&mut tokens);
            }
            Ok((tokens, !encoding.get_overflowing().is_empty()))
        });
        Ok(tokens.collect::<Result<Vec<_>>>()?.into_iter().unzip())
    }
}

impl Padding {
    fn fill(&self, tokens: &mut Vec<u32>) {
        let missing = self.length.saturating_sub(tokens.len());
        let at = if self.is_left { 0 } else { tokens.len() };
        tokens.splice(at..at, std::iter::repeat_n(self.token, missing));
    }
}

impl Preparation {
    fn apply(self, text: &str) -> String {
        match self {
            Preparation::None => text.to_owned(),
            Preparation::LowerCase => text.to_lowercase(),
            Preparation::Canonical => {
                let letters: String =
                    text.to_lowercase().chars().filter(|c| !c.is_ascii_punctuation()).collect();
                letters.split_whitespace().collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// `tokenizer_config.json`; null where there is none.
fn tokenizer_config(folder: &Path) -> Result<Value> {
    let path = folder.join("tokenizer_config.json");
    if !path.is_file() {
        return Ok(Value::Null);
    }
    let text = std::fs::read_to_string(&path).map_err(DataError::io("read", &path))?;
    serde_json::from_str(&text).map_err(|error| {
        Error::input(format!("`{}`: {error}", path.display()), "it must be the file that came with the model")
    })
}

fn preparation(architecture: &str, config: &Value) -> Preparation {
    let class = config["tokenizer_class"].as_str().unwrap_or("");
    match architecture {
        _ if config["do_lower_case"] == false => Preparation::None,
        "siglip" if class.starts_with("SiglipTokenizer") => Preparation::Canonical,
        "siglip" => Preparation::LowerCase,
        _ => Preparation::None,
    }
}

/// The padding token: by name, or by its number in the configuration of the network.
fn pad_token(tokenizer: &Tokenizer, more: &Value, config: &Value) -> Option<u32> {
    let name = more["pad_token"].as_str().or(more["pad_token"]["content"].as_str());
    let number = || u32::try_from(config["text_config"]["pad_token_id"].as_u64()?).ok();
    name.and_then(|name| tokenizer.token_to_id(name)).or_else(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_prepared_as_the_tower_was_trained() {
        let text = "St. Mary's  CHURCH,\t1066!";
        assert_eq!(Preparation::Canonical.apply(text), "st marys church 1066");
        assert_eq!(Preparation::LowerCase.apply(text), "st. mary's  church,\t1066!");
        let class = |name: &str| json!({ "tokenizer_class": name });
        assert_eq!(preparation("siglip", &class("SiglipTokenizer")), Preparation::Canonical);
        assert_eq!(preparation("siglip", &class("GemmaTokenizerFast")), Preparation::LowerCase);
        assert_eq!(preparation("siglip", &json!({ "do_lower_case": false })), Preparation::None);
        assert_eq!(preparation("clip", &class("CLIPTokenizer")), Preparation::None);
    }

    #[test]
    fn padding_goes_to_the_side_that_is_asked_for() {
        let filled = |is_left| {
            let mut tokens = vec![5, 6];
            Padding { token: 1, length: 4, is_left }.fill(&mut tokens);
            tokens
        };
        assert_eq!((filled(false), filled(true)), (vec![5, 6, 1, 1], vec![1, 1, 5, 6]));
    }
}
