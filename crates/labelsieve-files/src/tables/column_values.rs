//! Numbers and flags of a column of any suitable type.
//!
//! Other programs change types without changing values: pandas writes integers with gaps as floats, and texts may become
//! dictionaries, large texts or views.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use crate::Result;
use crate::tables::parquet_columns::Column;

impl Column<'_> {
    /// All values as numbers, `None` for null; `expected` describes the column in messages.
    pub fn floats(&self, expected: &str) -> Result<Vec<Option<f32>>> {
        // Exact for single precision: the conversion to f64 and back changes nothing.
        let numbers = numbers(self.array).ok_or_else(|| self.bad_type(expected))?;
        Ok(numbers.into_iter().map(|number| number.map(|number| number as f32)).collect())
    }

    /// All values as integers, `None` for null; NaN counts as null, as in pandas.
    pub fn integers(&self) -> Result<Vec<Option<u32>>> {
        let numbers = numbers(self.array).ok_or_else(|| self.bad_type("integers"))?;
        let whole = |(row, number): (usize, Option<f64>)| match number {
            Some(number) if number.is_nan() => Ok(None),
            Some(number) if number.fract() != 0.0 || !(0.0..=f64::from(u32::MAX)).contains(&number) => {
                let expected = format!("an integer from 0 to {}", u32::MAX);
                Err(self.bad_row(row, expected, number.to_string()))
            }
            number => Ok(number.map(|number| number as u32)),
        };
        numbers.into_iter().enumerate().map(whole).collect()
    }

    /// All values as booleans, `None` for null: booleans, 1 and 0, or these as texts.
    pub fn flags(&self) -> Result<Vec<Option<bool>>> {
        const EXPECTED: &str = "true, false, 1 or 0";
        if let Some(flags) = self.array.as_boolean_opt() {
            return Ok(flags.iter().collect());
        }
        if let Some(numbers) = numbers(self.array) {
            let flag = |(row, number): (usize, Option<f64>)| match number {
                Some(0.0) => Ok(Some(false)),
                Some(1.0) => Ok(Some(true)),
                Some(number) if !number.is_nan() => Err(self.bad_row(row, EXPECTED, format!("`{number}`"))),
                _ => Ok(None),
            };
            return numbers.into_iter().enumerate().map(flag).collect();
        }
        if !is_text(self.array.data_type()) {
            return Err(self.bad_type(EXPECTED));
        }
        let flag = |(row, text): (usize, Option<String>)| match text {
            None => Ok(None),
            Some(text) => match parse_flag(&text) {
                Some(flag) => Ok(Some(flag)),
                None => Err(self.bad_row(row, EXPECTED, format!("`{text}`"))),
            },
        };
        self.optional_texts()?.into_iter().enumerate().map(flag).collect()
    }
}

/// `true` and `false` as programs write them.
pub fn parse_flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "1.0" => Some(true),
        "false" | "0" | "0.0" => Some(false),
        _ => None,
    }
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// The numbers of an array of any numeric type; `None` for other types.
pub fn numbers(array: &ArrayRef) -> Option<Vec<Option<f64>>> {
    Some(match array.data_type() {
        DataType::Float16 => convert::<Float16Type>(array, |value| value.to_f64()),
        DataType::Float32 => convert::<Float32Type>(array, f64::from),
        DataType::Float64 => convert::<Float64Type>(array, |value| value),
        DataType::Int8 => convert::<Int8Type>(array, f64::from),
        DataType::Int16 => convert::<Int16Type>(array, f64::from),
        DataType::Int32 => convert::<Int32Type>(array, f64::from),
        DataType::Int64 => convert::<Int64Type>(array, |value| value as f64),
        DataType::UInt8 => convert::<UInt8Type>(array, f64::from),
        DataType::UInt16 => convert::<UInt16Type>(array, f64::from),
        DataType::UInt32 => convert::<UInt32Type>(array, f64::from),
        DataType::UInt64 => convert::<UInt64Type>(array, |value| value as f64),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let entries = numbers(dictionary.values())?;
            let nulls = array.logical_nulls();
            let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            if entries.is_empty() {
                vec![None; array.len()]
            } else {
                let keys = dictionary.normalized_keys().into_iter().enumerate();
                keys.map(|(row, key)| if is_null(row) { None } else { entries[key] }).collect()
            }
        }
        DataType::Null => vec![None; array.len()],
        _ => return None,
    })
}

fn convert<T: ArrowPrimitiveType>(array: &ArrayRef, to: impl Fn(T::Native) -> f64) -> Vec<Option<f64>> {
    array.as_primitive::<T>().iter().map(|value| value.map(&to)).collect()
}
