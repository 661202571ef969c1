//! Selects rows of a table.

use std::str::FromStr;

/// Rows whose `column` has one of `values`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFilter {
    /// The column.
    pub column: String,
    /// The values that pass.
    pub values: Vec<String>,
}

impl RowFilter {
    /// Whether a row with this value passes; a missing value does not.
    pub fn passes(&self, value: Option<&str>) -> bool {
        value.is_some_and(|value| self.values.iter().any(|wanted| wanted == value))
    }
}

/// `role=base`, or `role=base,novel` for either.
impl FromStr for RowFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<RowFilter, String> {
        match text.split_once('=') {
            Some((column, values)) if !column.is_empty() => Ok(RowFilter {
                column: column.to_owned(),
                values: values.split(',').map(str::to_owned).collect(),
            }),
            _ => Err(format!("expected COLUMN=VALUE or COLUMN=VALUE,VALUE, found `{text}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_lists_the_values_that_pass() {
        let filter: RowFilter = "role=base,novel".parse().unwrap();
        assert!(filter.passes(Some("base")) && filter.passes(Some("novel")));
        assert!(!filter.passes(Some("unknown")) && !filter.passes(None));
        assert!("k=a=b".parse::<RowFilter>().unwrap().passes(Some("a=b")));
    }

    #[test]
    fn a_filter_without_a_column_is_refused() {
        for text in ["role", "=base", ""] {
            let error = text.parse::<RowFilter>().unwrap_err();
            assert_eq!(error, format!("expected COLUMN=VALUE or COLUMN=VALUE,VALUE, found `{text}`"));
        }
    }
}
