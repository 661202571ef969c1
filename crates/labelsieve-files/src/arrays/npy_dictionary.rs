//! The Python dictionary inside a `.npy` header.

use std::path::Path;

use crate::arrays::npy::Dtype;
use crate::{DataError, Result};

/// A parser for the dictionary that NumPy writes, and no other Python.
pub struct Dictionary<'a> {
    path: &'a Path,
    text: &'a str,
    rest: &'a str,
}

impl<'a> Dictionary<'a> {
    /// The dictionary in the header of a file.
    pub fn new(path: &'a Path, text: &'a str) -> Dictionary<'a> {
        Dictionary { path, text, rest: text }
    }

    /// Element type, whether columns come first, and shape.
    pub fn read(mut self) -> Result<(Dtype, bool, Vec<usize>)> {
        let mut dtype = None;
        let mut fortran = None;
        let mut shape = None;
        self.expect('{')?;
        while !self.eat('}') {
            let key = self.quoted()?;
            self.expect(':')?;
            match key {
                "descr" => dtype = Some(self.dtype()?),
                "fortran_order" => fortran = Some(self.boolean()?),
                "shape" => shape = Some(self.shape()?),
                _ => return Err(self.broken()),
            }
            if !self.eat(',') && !self.rest.trim_start().starts_with('}') {
                return Err(self.broken());
            }
        }
        match (dtype, fortran, shape) {
            (Some(dtype), Some(fortran), Some(shape)) => Ok((dtype, fortran, shape)),
            _ => Err(self.broken()),
        }
    }

    fn dtype(&mut self) -> Result<Dtype> {
        let found = if self.rest.trim_start().starts_with('[') {
            "a structured type".to_owned()
        } else {
            match Dtype::from_descr(self.quoted()?) {
                Ok(dtype) => return Ok(dtype),
                Err(found) => found,
            }
        };
        Err(DataError::malformed(self.path, "npy type", "little-endian numbers", found))
    }

    fn boolean(&mut self) -> Result<bool> {
        let text = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = text.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.broken())
    }

    fn shape(&mut self) -> Result<Vec<usize>> {
        let mut shape = Vec::new();
        self.expect('(')?;
        while !self.eat(')') {
            let text = self.rest.trim_start();
            let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            shape.push(text[..digits].parse().map_err(|_| self.broken())?);
            self.rest = text[digits..].strip_prefix('L').unwrap_or(&text[digits..]); // Python 2 wrote `3L`
            if !self.eat(',') && !self.rest.trim_start().starts_with(')') {
                return Err(self.broken());
            }
        }
        Ok(shape)
    }

    fn quoted(&mut self) -> Result<&'a str> {
        let text = self.rest.trim_start();
        let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"')).ok_or_else(|| self.broken())?;
        let (word, rest) = text[1..].split_once(quote).ok_or_else(|| self.broken())?;
        self.rest = rest;
        Ok(word)
    }

    fn expect(&mut self, wanted: char) -> Result<()> {
        if self.eat(wanted) { Ok(()) } else { Err(self.broken()) }
    }

    fn eat(&mut self, wanted: char) -> bool {
        match self.rest.trim_start().strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn broken(&self) -> DataError {
        let expected = "a dictionary of descr, fortran_order and shape";
        DataError::malformed(self.path, "npy header", expected, format!("`{}`", shorten(self.text.trim())))
    }
}

/// Text from a file, truncated and escaped for use in a message.
pub fn shorten(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Dtype, bool, Vec<usize>)> {
        Dictionary::new(Path::new("a.npy"), text).read()
    }

    #[test]
    fn keys_may_come_in_any_order_and_quoting() {
        let text = r#" { "shape":(),"descr" : "|b1" , 'fortran_order':False}"#;
        assert_eq!(read(text).unwrap(), (Dtype::Bool, false, vec![]));
    }

    #[test]
    fn anything_but_the_three_keys_is_quoted_in_the_error() {
        for text in [
            "",
            "{}",
            "{'descr': '<f4'}",
            "{'descr': '<f4', 'fortran_order': no, 'shape': (1,)}",
            "{'descr': '<f4' 'shape': (1,)}",
            "{'shape': (1 2)}",
            "{'shape': (-1,)}",
            "{'colour': 'red'}",
            "{'descr",
        ] {
            let error = read(text).unwrap_err().to_string();
            let expected =
                "`a.npy`: npy header: expected a dictionary of descr, fortran_order and shape, found `";
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
