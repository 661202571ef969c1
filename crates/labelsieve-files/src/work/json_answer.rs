//! The result of a command as one JSON object.

use serde::Serialize;

use crate::work::Result;

/// The result of `command` as JSON: `command` and `version`, then its own fields, which `docs/json.md` lists.
pub fn json_answer(command: &str, result: &impl Serialize) -> Result<String> {
    #[derive(Serialize)]
    struct Answer<'a, R> {
        command: &'a str,
        version: &'a str,
        #[serde(flatten)]
        result: R,
    }
    let answer = Answer { command, version: env!("CARGO_PKG_VERSION"), result };
    Ok(serde_json::to_string_pretty(&answer)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_the_result_follow_command_and_version() {
        let text = json_answer("score", &json!({ "rows": [1] })).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!(
            "{{\n  \"command\": \"score\",\n  \"version\": \"{version}\",\n  \"rows\": [\n    1\n  ]\n}}"
        );
        assert_eq!(text, expected);
    }
}
