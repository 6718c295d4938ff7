//! The suite's CSV: `size (MB),0,1,…`, then one row per size.

use super::error::ScalingError;

/// Sizes in bytes, and figures by size and rank.
#[derive(Debug, PartialEq)]
pub(super) struct Rows {
    pub(super) sizes_bytes: Vec<u64>,
    pub(super) values: Vec<Vec<f64>>,
    /// True if the last line was incomplete.
    pub(super) broken_off: bool,
}

/// Reads a file. An unterminated last line, as a killed job leaves it, is dropped if it is not
/// valid.
pub(super) fn parse(file: &str, text: &str) -> Result<Rows, ScalingError> {
    let wrong = |line: usize, found: &str, expected: &'static str| ScalingError::Line {
        file: file.to_owned(),
        line,
        found: found.chars().take(60).collect(),
        expected,
    };
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let expected = "a header such as `size (MB),0,1`, a column for each rank";
    let (_, header) = lines.next().ok_or_else(|| wrong(1, "", expected))?;
    let mut columns = header.split(',').map(str::trim);
    let first = columns.next().unwrap_or_default().to_ascii_lowercase();
    let ranks = columns.filter(|column| column.parse::<u32>().is_ok()).count();
    if !first.starts_with("size") || ranks == 0 || ranks + 1 != header.split(',').count() {
        return Err(wrong(1, header, expected));
    }
    let mut rows = Rows { sizes_bytes: Vec::new(), values: Vec::new(), broken_off: false };
    let last = text.lines().count();
    for (at, line) in lines {
        match row(line, ranks) {
            Some((size, values)) => {
                rows.sizes_bytes.push(size);
                rows.values.push(values);
            }
            None if at + 1 == last && !text.ends_with('\n') => rows.broken_off = true,
            None => return Err(wrong(at + 1, line, "a size in MB and a number for each rank")),
        }
    }
    let mut order: Vec<usize> = (0..rows.sizes_bytes.len()).collect();
    order.sort_by_key(|&at| rows.sizes_bytes[at]);
    rows.values = order.iter().map(|&at| std::mem::take(&mut rows.values[at])).collect();
    rows.sizes_bytes.sort_unstable();
    Ok(rows)
}

fn row(line: &str, ranks: usize) -> Option<(u64, Vec<f64>)> {
    let mut fields = line.split(',').map(str::trim);
    let megabytes: f64 = fields.next()?.parse().ok().filter(|size: &f64| *size > 0.0)?;
    let values: Option<Vec<f64>> =
        fields.map(|field| field.parse().ok().filter(|value: &f64| *value > 0.0)).collect();
    let values = values
        .filter(|values| values.len() == ranks && values.iter().all(|value| value.is_finite()))?;
    // Fractions of a MiB are whole numbers of bytes; 2^50 MiB exceeds any machine.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    let bytes = (megabytes <= f64::from(1 << 30)).then(|| (megabytes * 1_048_576.0).round() as u64);
    Some((bytes.filter(|bytes| *bytes > 0)?, values))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_come_by_size_and_a_line_that_broke_off_is_dropped() {
        let text = "size (MB),0,1\n2,12.92,12.93\n0.25,5,6\n4,14.2";
        let rows = parse("a.csv", text).unwrap();
        assert_eq!(rows.sizes_bytes, [1 << 18, 2 << 20]);
        assert_eq!(rows.values, [[5.0, 6.0], [12.92, 12.93]]);
        assert!(rows.broken_off);
    }

    #[test]
    fn a_damaged_line_is_named_with_its_place_and_the_expected_form() {
        let error = parse("a.csv", "size (MB),0,1\n1,2,x\n2,3,4\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.csv:2: `1,2,x`, expected a size in MB and a number for each rank"
        );
        for text in ["", "rank,cpu\n", "size (MB)\n", "size (MB),a\n"] {
            let error = parse("a.csv", text).unwrap_err().to_string();
            assert!(error.contains("a.csv:1:"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(size \\(MB\\),0,1\n)?[0-9.,x\n-]{0,60}") {
            let _ = parse("x", &text);
        }
    }
}
