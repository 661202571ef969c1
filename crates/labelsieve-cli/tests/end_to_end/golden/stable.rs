//! Answers without what changes from run to run.

/// Fields that say how fast or large something was, or on what machine and with which version.
const VOLATILE: [&str; 24] = [
    "grid_seconds",
    "images_per_second",
    "longest_bin_seconds",
    "memory_bytes",
    "n_bytes",
    "n_threads",
    "peak_mib",
    "run",
    "scratch_bytes",
    "search_gflops",
    "seconds",
    "seconds_per_class",
    "table_bytes",
    "threads",
    "times_gcn",
    "total",
    "train_gflops",
    "train_gigabytes_per_second",
    "url",
    "useful_bins",
    "version",
    // The stages of `labelsieve-bench class`:
    "graph",
    "search",
    "train",
];

/// The answer with placeholders for what is [`VOLATILE`] and numbers of four decimals.
pub fn stable(answer: &str) -> String {
    answer.lines().map(|line| stable_line(line) + "\n").collect()
}

fn stable_line(line: &str) -> String {
    let content = line.trim_start();
    let indent = &line[..line.len() - content.len()];
    let (content, comma) = content.strip_suffix(',').map_or((content, ""), |content| (content, ","));
    let field = content.strip_prefix('"').and_then(|rest| rest.split_once("\": "));
    let Some((name, value)) = field else { return format!("{indent}{}{comma}", rounded(content)) };
    let is_simple = !matches!(value, "{" | "[" | "null");
    let value =
        if is_simple && VOLATILE.contains(&name) { format!("\"{{{name}}}\"") } else { rounded(value) };
    format!("{indent}\"{name}\": {value}{comma}")
}

fn rounded(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(number) if value.contains(['.', 'e']) => {
            format!("{:.4}", number + 0.0).replace("-0.0000", "0.0000")
        }
        _ => value.to_owned(),
    }
}
