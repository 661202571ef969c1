//! Formatting values of Parquet columns as text.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float16Type, Float32Type, Float64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use labelsieve_files::moment::{date_of, rfc3339_of};

use super::parquet_rows::{for_each_text, is_textual};

/// Whether [`cell_text`] supports the type.
pub(super) fn has_text_form(kind: &DataType) -> bool {
    match kind {
        DataType::List(item) | DataType::LargeList(item) => has_text_form(item.data_type()),
        DataType::Boolean | DataType::Date32 | DataType::Timestamp(..) => true,
        other => other.is_floating() || is_textual(other),
    }
}

/// The value of a row as text: numbers in the shortest form that reads back exactly, dates and times as in RFC 3339, items of a
/// list separated by commas. `None` for null.
pub(super) fn cell_text(array: &ArrayRef, row: usize) -> Option<String> {
    if array.is_null(row) {
        return None;
    }
    let items = |items: ArrayRef| {
        let texts: Vec<String> = (0..items.len()).filter_map(|item| cell_text(&items, item)).collect();
        texts.join(", ")
    };
    Some(match array.data_type() {
        DataType::List(_) => items(array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => items(array.as_list::<i64>().value(row)),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Float16 => array.as_primitive::<Float16Type>().value(row).to_string(),
        DataType::Float32 => array.as_primitive::<Float32Type>().value(row).to_string(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Date32 => {
            let (year, month, day) = date_of(array.as_primitive::<Date32Type>().value(row).into());
            format!("{year:04}-{month:02}-{day:02}")
        }
        DataType::Timestamp(unit, _) => rfc3339_of(match unit {
            TimeUnit::Second => {
                array.as_primitive::<TimestampSecondType>().value(row).saturating_mul(1_000_000)
            }
            TimeUnit::Millisecond => {
                array.as_primitive::<TimestampMillisecondType>().value(row).saturating_mul(1000)
            }
            TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().value(row),
            TimeUnit::Nanosecond => {
                array.as_primitive::<TimestampNanosecondType>().value(row).div_euclid(1000)
            }
        }),
        _ => {
            let mut text = String::new();
            for_each_text(array, row, &mut |value| text.push_str(value));
            text
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{
        BooleanArray, Date32Array, Float32Array, Float64Array, Int64Array, ListArray, StringArray,
        TimestampMillisecondArray,
    };

    use super::*;

    #[test]
    fn values_of_most_types_read_as_people_write_them() {
        let check = |array: ArrayRef, expected: &str| {
            assert!(has_text_form(array.data_type()));
            assert_eq!(cell_text(&array, 0).as_deref(), Some(expected));
            assert_eq!(cell_text(&array, 1), None);
        };
        check(Arc::new(StringArray::from(vec![Some("a b"), None])), "a b");
        check(Arc::new(Int64Array::from(vec![Some(-7), None])), "-7");
        check(Arc::new(Float32Array::from(vec![Some(0.1), None])), "0.1");
        check(Arc::new(Float64Array::from(vec![Some(1e-9), None])), "0.000000001");
        check(Arc::new(BooleanArray::from(vec![Some(true), None])), "true");
        check(Arc::new(Date32Array::from(vec![Some(-1), None])), "1969-12-31");
        check(
            Arc::new(TimestampMillisecondArray::from(vec![Some(951_782_400_001), None])),
            "2000-02-29T00:00:00.001000Z",
        );
        let lists = [Some(vec![Some(1), None, Some(3)]), None];
        check(Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)), "1, 3");
        assert!(!has_text_form(&DataType::Binary));
    }
}
