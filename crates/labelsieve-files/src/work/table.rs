//! Formatting tables and numbers for people.

/// The lines of a table with a header; the first column is left-aligned, the others right-aligned.
pub fn layout(header: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let n = header.len();
    let width = |c: usize| {
        let cells = rows.iter().map(|row| row[c].chars().count());
        cells.chain([header[c].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..n).map(width).collect();
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .enumerate()
            .map(
                |(c, (cell, &width))| {
                    if c == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                },
            )
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    let rule = "─".repeat(widths.iter().sum::<usize>() + 2 * (n - 1));
    let header: Vec<String> = header.iter().map(|&h| h.to_owned()).collect();
    [line(&header), rule].into_iter().chain(rows.iter().map(|row| line(row))).collect()
}

/// A share in per cent with one decimal.
pub fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// A number of bytes for people.
pub fn bytes(n: u64) -> String {
    match n {
        0..1_048_576 => format!("{:.0} KiB", n as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.0} MiB", n as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", n as f64 / 1_073_741_824.0),
    }
}

/// A duration for people.
pub fn seconds(s: f64) -> String {
    match s {
        s if s < 1.0 => format!("{:.0} ms", 1000.0 * s),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_the_script() {
        let rows =
            vec![vec!["β = 1".to_owned(), "4.5".to_owned()], vec!["gcn".to_owned(), "67.8".to_owned()]];
        assert_eq!(
            layout(&["method", "1"], &rows),
            ["method     1", "────────────", "β = 1    4.5", "gcn     67.8"]
        );
    }

    #[test]
    fn sizes_and_times_have_readable_units() {
        assert_eq!([bytes(2048), bytes(3 << 20), bytes(5 << 29)], ["2 KiB", "3 MiB", "2.5 GiB"]);
        assert_eq!(
            [seconds(0.25), seconds(3.0), seconds(600.0), seconds(9000.0)],
            ["250 ms", "3.0 s", "10 min", "2.5 h"]
        );
    }
}
