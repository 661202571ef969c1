//! Tables: Parquet, CSV and TSV, read and written column by column.

pub mod column_values;
pub mod csv_write;
pub mod ids_table;
pub mod labels;
pub mod merged_table;
pub mod parquet_columns;
pub mod parquet_table;
pub mod parquet_write;
pub mod part;
pub mod table_read;
pub mod table_write;
pub mod texts;
