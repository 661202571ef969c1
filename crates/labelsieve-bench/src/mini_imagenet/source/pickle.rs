//! Just enough of Python's pickle format to read dictionaries of arrays, lists and strings. No code of a file is ever executed: calls are
//! matched against the few functions that construct arrays, and all others are refused.

use std::path::Path;

use labelsieve_files::{DataError, Result};

/// A value in a pickle. Bytes are borrowed from the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    None,
    Int(i64),
    Bytes(&'a [u8]),
    Text(String),
    List(Vec<Value<'a>>),
    Dict(Vec<(Value<'a>, Value<'a>)>),
    Array(Array<'a>),
    /// A type of array elements, e.g. `u1`.
    Dtype(String),
    /// The name of a function or class.
    Global(String),
}

/// A numpy array in C order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Array<'a> {
    pub(super) dtype: String,
    pub(super) shape: Vec<usize>,
    pub(super) data: &'a [u8],
}

impl Value<'_> {
    /// A string; those of Python 2 are bytes.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Value::Text(text) => Some(text.clone()),
            Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }

    /// Integers, from a list or an array.
    pub(super) fn ints(&self) -> Option<Vec<i64>> {
        match self {
            Value::List(items) => {
                items.iter().map(|item| if let Value::Int(i) = item { Some(*i) } else { None }).collect()
            }
            Value::Array(array) => match array.dtype.as_str() {
                "u1" => Some(array.data.iter().map(|&byte| i64::from(byte)).collect()),
                "i4" => {
                    Some(array.data.as_chunks().0.iter().map(|b| i64::from(i32::from_le_bytes(*b))).collect())
                }
                "i8" => Some(array.data.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect()),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The value that a pickle holds.
pub(super) fn parse<'a>(path: &'a Path, bytes: &'a [u8]) -> Result<Value<'a>> {
    let mut machine = Machine { path, bytes, at: 0, stack: Vec::new(), marks: Vec::new(), memo: Vec::new() };
    loop {
        if let Some(value) = machine.step()? {
            return Ok(value);
        }
    }
}

struct Machine<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Value<'a>>,
    marks: Vec<usize>,
    memo: Vec<(usize, Value<'a>)>,
}

impl<'a> Machine<'a> {
    fn wrong(&self, expected: &str, found: impl Into<String>) -> DataError {
        DataError::malformed(self.path, format!("pickle, byte {}", self.at), expected, found)
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(n).filter(|&end| end <= self.bytes.len());
        let Some(end) = end else {
            return Err(self.wrong(&format!("{n} more bytes"), "the end of the file"));
        };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn line(&mut self) -> Result<String> {
        let rest = &self.bytes[self.at..];
        let Some(length) = rest.iter().position(|&byte| byte == b'\n') else {
            return Err(self.wrong("a line", "the end of the file"));
        };
        let line = String::from_utf8_lossy(&rest[..length]).into_owned();
        self.at += length + 1;
        Ok(line)
    }

    /// A little-endian length of `n` bytes.
    fn length(&mut self, n: usize) -> Result<usize> {
        let mut number = [0u8; 8];
        number[..n].copy_from_slice(self.take(n)?);
        usize::try_from(u64::from_le_bytes(number)).map_err(|_| self.wrong("a length", "a larger number"))
    }

    fn pop(&mut self) -> Result<Value<'a>> {
        self.stack.pop().ok_or_else(|| self.wrong("a value on the stack", "none"))
    }

    /// The values above the last mark.
    fn since_mark(&mut self) -> Result<Vec<Value<'a>>> {
        match self.marks.pop().filter(|&mark| mark <= self.stack.len()) {
            Some(mark) => Ok(self.stack.split_off(mark)),
            None => Err(self.wrong("a mark on the stack", "none")),
        }
    }

    fn last(&mut self, n: usize) -> Result<Vec<Value<'a>>> {
        match self.stack.len().checked_sub(n) {
            Some(from) => Ok(self.stack.split_off(from)),
            None => Err(self.wrong("values on the stack", "none")),
        }
    }

    fn put(&mut self, place: usize) -> Result<()> {
        let value = self.pop()?;
        self.memo.push((place, value.clone()));
        self.stack.push(value);
        Ok(())
    }

    fn get(&mut self, place: usize) -> Result<()> {
        let found = self.memo.iter().rev().find(|(at, _)| *at == place).map(|(_, value)| value.clone());
        let value = found.ok_or_else(|| self.wrong("a memoized value", place.to_string()))?;
        self.stack.push(value);
        Ok(())
    }

    /// Executes one operation; the last one returns the value of the pickle.
    fn step(&mut self) -> Result<Option<Value<'a>>> {
        let operation = self.take(1)?[0];
        match operation {
            b'.' => return self.pop().map(Some),
            0x80 => drop(self.take(1)?), // the protocol
            0x95 => drop(self.take(8)?), // a frame
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'N' => self.stack.push(Value::None),
            0x88 => self.stack.push(Value::Int(1)),
            0x89 => self.stack.push(Value::Int(0)),
            b')' | b']' => self.stack.push(Value::List(Vec::new())),
            b'}' => self.stack.push(Value::Dict(Vec::new())),
            b'K' | b'M' | b'J' | 0x8a | b'I' | b'L' => {
                let number = self.int(operation)?;
                self.stack.push(Value::Int(number));
            }
            b'U' | b'C' => self.bytes(1)?,
            b'T' | b'B' => self.bytes(4)?,
            0x8e => self.bytes(8)?,
            0x8c => self.text(1)?,
            b'X' => self.text(4)?,
            0x8d => self.text(8)?,
            b't' | b'l' => {
                let items = self.since_mark()?;
                self.stack.push(Value::List(items));
            }
            0x85..=0x87 => {
                let items = self.last(usize::from(operation) - 0x84)?;
                self.stack.push(Value::List(items));
            }
            b'a' | b'e' => {
                let items = if operation == b'a' { self.last(1)? } else { self.since_mark()? };
                match self.stack.last_mut() {
                    Some(Value::List(list)) => list.extend(items),
                    _ => return Err(self.wrong("a list to append to", "something else")),
                }
            }
            b's' | b'u' => {
                let items = if operation == b's' { self.last(2)? } else { self.since_mark()? };
                self.set_items(items)?;
            }
            b'd' => {
                let items = self.since_mark()?;
                self.stack.push(Value::Dict(Vec::new()));
                self.set_items(items)?;
            }
            b'c' => {
                let module = self.line()?;
                let name = self.line()?;
                self.stack.push(Value::Global(format!("{module}.{name}")));
            }
            0x93 => {
                let parts: Option<Vec<String>> = self.last(2)?.iter().map(Value::text).collect();
                let parts = parts.ok_or_else(|| self.wrong("the name of a function", "something else"))?;
                self.stack.push(Value::Global(parts.join(".")));
            }
            b'R' => self.call()?,
            b'b' => self.build()?,
            b'q' | b'r' => {
                let place = self.length(if operation == b'q' { 1 } else { 4 })?;
                self.put(place)?;
            }
            0x94 => self.put(self.memo.len())?,
            b'h' | b'j' => {
                let place = self.length(if operation == b'h' { 1 } else { 4 })?;
                self.get(place)?;
            }
            other => {
                return Err(
                    self.wrong("arrays, lists, dictionaries and texts", format!("operation {other:#04x}"))
                );
            }
        }
        Ok(None)
    }

    /// Bytes, preceded by their length in `n` bytes.
    fn bytes(&mut self, n: usize) -> Result<()> {
        let length = self.length(n)?;
        let bytes = self.take(length)?;
        self.stack.push(Value::Bytes(bytes));
        Ok(())
    }

    fn text(&mut self, n: usize) -> Result<()> {
        let length = self.length(n)?;
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| self.wrong("UTF-8", "other bytes"))?;
        self.stack.push(Value::Text(text.to_owned()));
        Ok(())
    }

    fn int(&mut self, operation: u8) -> Result<i64> {
        let wide = |bytes: &[u8]| {
            let negative = bytes.last().is_some_and(|&byte| byte >= 0x80);
            let mut number = [if negative { 0xff } else { 0 }; 8];
            number[..bytes.len()].copy_from_slice(bytes);
            i64::from_le_bytes(number)
        };
        Ok(match operation {
            b'K' => i64::from(self.take(1)?[0]),
            b'M' => self.length(2)? as i64,
            b'J' => wide(self.take(4)?),
            0x8a => match self.length(1)? {
                n @ 0..=8 => wide(self.take(n)?),
                n => return Err(self.wrong("a number of at most 8 bytes", n.to_string())),
            },
            _ => {
                let line = self.line()?;
                let digits = line.trim_end_matches('L');
                digits.parse().map_err(|_| self.wrong("an integer", format!("`{line}`")))?
            }
        })
    }

    fn set_items(&mut self, items: Vec<Value<'a>>) -> Result<()> {
        let Some(Value::Dict(pairs)) = self.stack.last_mut() else {
            return Err(self.wrong("a dictionary to add to", "something else"));
        };
        let mut items = items.into_iter();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            pairs.push((key, value));
        }
        Ok(())
    }

    /// Evaluates the few calls that construct arrays, and refuses all others.
    fn call(&mut self) -> Result<()> {
        let mut both = self.last(2)?;
        let arguments = both.pop();
        let function = both.pop();
        let (Some(Value::List(mut arguments)), Some(Value::Global(name))) = (arguments, function) else {
            return Err(self.wrong("a function and its arguments", "something else"));
        };
        let made = match name.as_str() {
            "numpy.core.multiarray._reconstruct" | "numpy._core.multiarray._reconstruct" => {
                Value::Array(Array::default())
            }
            "numpy.dtype" => {
                let name = arguments.first().and_then(Value::text).unwrap_or_default();
                Value::Dtype(name)
            }
            "numpy.core.multiarray.scalar" | "numpy._core.multiarray.scalar" => {
                let data = arguments.pop();
                match (arguments.pop(), data) {
                    (Some(Value::Dtype(dtype)), Some(Value::Bytes(data))) => {
                        let number = Value::Array(Array { dtype, shape: vec![1], data }).ints();
                        let number = number.and_then(|numbers| numbers.first().copied());
                        Value::Int(number.ok_or_else(|| self.wrong("an integer", "another one"))?)
                    }
                    _ => return Err(self.wrong("a numpy scalar", "something else")),
                }
            }
            "collections.OrderedDict" => Value::Dict(Vec::new()),
            other => {
                return Err(
                    self.wrong("arrays, lists, dictionaries and texts", format!("a call of `{other}`"))
                );
            }
        };
        self.stack.push(made);
        Ok(())
    }

    /// Sets the state of an array or of its element type.
    fn build(&mut self) -> Result<()> {
        let state = self.pop()?;
        let Value::List(state) = state else {
            return Err(self.wrong("the state of an array", "something else"));
        };
        let built = match (self.pop()?, &state[..]) {
            (Value::Dtype(name), [_, order, ..]) => match order.text().as_deref() {
                Some(">") => return Err(self.wrong("little-endian numbers", "`>`")),
                _ => Value::Dtype(name),
            },
            (
                Value::Array(_),
                [_, Value::List(shape), Value::Dtype(dtype), Value::Int(0), Value::Bytes(data)],
            ) => {
                let shape: Option<Vec<usize>> = shape
                    .iter()
                    .map(|side| if let Value::Int(n) = side { usize::try_from(*n).ok() } else { None })
                    .collect();
                let array = Array { dtype: dtype.clone(), shape: shape.unwrap_or_default(), data };
                self.check(&array)?;
                Value::Array(array)
            }
            _ => return Err(self.wrong("an array in C order", "something else")),
        };
        self.stack.push(built);
        Ok(())
    }

    fn check(&self, array: &Array) -> Result<()> {
        let size: usize = array.dtype.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
        let count = array.shape.iter().try_fold(size, |product, &side| product.checked_mul(side));
        if count == Some(array.data.len()) && size > 0 {
            return Ok(());
        }
        let expected = format!("the bytes of {:?} numbers of type `{}`", array.shape, array.dtype);
        Err(self.wrong(&expected, array.data.len().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Python's `pickle.dumps({"image_data": numpy.arange(6, dtype="u1").reshape(2, 3), "class_dict": {"a": [0], "b": [1]}}, 2)`,
    /// as numpy 1 writes it, shortened to the operations that matter.
    fn sample() -> Vec<u8> {
        let mut bytes = b"\x80\x02}q\x00(U\nimage_dataq\x01".to_vec();
        bytes.extend(b"cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\x00\x85q\x04U\x01bq\x05\x87q\x06Rq\x07");
        bytes.extend(b"(K\x01K\x02K\x03\x86q\x08cnumpy\ndtype\nq\tU\x02u1q\nK\x00K\x01\x87q\x0bRq\x0c");
        bytes.extend(b"(K\x03U\x01|q\rNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x0eb\x89");
        bytes.extend(b"U\x06\x00\x01\x02\x03\x04\x05q\x0ftq\x10b");
        bytes.extend(b"U\nclass_dictq\x11}q\x12(U\x01aq\x13]q\x14K\x00aU\x01bq\x15]q\x16K\x01auu.");
        bytes
    }

    #[test]
    fn a_dictionary_of_an_array_and_lists_is_read() {
        let bytes = sample();
        let Value::Dict(pairs) = parse(Path::new("p.pkl"), &bytes).unwrap() else { panic!("no dictionary") };
        assert_eq!(pairs[0].0.text().unwrap(), "image_data");
        let expected = Array { dtype: "u1".into(), shape: vec![2, 3], data: &[0, 1, 2, 3, 4, 5] };
        assert_eq!(pairs[0].1, Value::Array(expected));
        let Value::Dict(classes) = &pairs[1].1 else { panic!("no classes") };
        assert_eq!((classes[1].0.text().unwrap().as_str(), classes[1].1.ints().unwrap()), ("b", vec![1]));
    }

    #[test]
    fn calls_of_other_functions_are_refused() {
        let bytes = b"\x80\x02cos\nsystem\nU\x02ls\x85R.";
        let error = parse(Path::new("p.pkl"), bytes).unwrap_err().to_string();
        assert!(error.contains("p.pkl") && error.contains("found a call of `os.system`"), "{error}");
    }

    proptest! {
        #[test]
        fn damaged_pickles_never_panic_and_errors_name_the_file(
            place in 0usize..400, byte in any::<u8>(), keep in 0usize..400,
        ) {
            let mut bytes = sample();
            let place = place % bytes.len();
            bytes[place] = byte;
            bytes.truncate(keep.max(1));
            if let Err(error) = parse(Path::new("p.pkl"), &bytes) {
                prop_assert!(error.to_string().contains("p.pkl"), "{error}");
            }
        }
    }
}
