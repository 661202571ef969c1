//! Tables: Parquet, CSV and TSV, read and written column by column.
//!
//! [`table_read`] and [`table_write`] choose the format by the extension. For Parquet alone, [`parquet_columns`] reads
//! chosen columns, [`parquet_groups`] row groups, [`column_values`] converts types; [`parquet_write`] writes and
//! [`parquet_table`] reads embeddings. [`part`] describes one of several files that [`merged_table`] joins; [`labels`] and
//! [`texts`] are columns in memory; [`ids_table`] is the table beside a NumPy file.

pub mod column_values;
pub mod csv_write;
pub mod ids_table;
pub mod labels;
pub mod merged_table;
pub mod parquet_columns;
pub mod parquet_groups;
pub mod parquet_table;
pub mod parquet_write;
pub mod part;
pub mod table_read;
pub mod table_write;
pub mod texts;
