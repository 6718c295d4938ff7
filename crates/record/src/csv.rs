//! `samples.csv`: one sample per line, appended and synced.

use core::fmt::Write as _;

use crate::cell::CellId;
use crate::metric::Metric;
use crate::sample::Sample;

/// The first line of `samples.csv`.
pub const CSV_HEADER: &str = "cell,metric,index,value,unit,start_ns,duration_ns,work,disturbed";

/// An error in `samples.csv`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CsvError {
    /// The first line is not [`CSV_HEADER`].
    #[error("line 1 is `{found}`, expected `{CSV_HEADER}`")]
    Header { found: String },
    /// A line cannot be read.
    #[error("line {line}: {field} is `{found}`, expected {expected}")]
    Field {
        /// Line number from 1.
        line: usize,
        field: &'static str,
        found: String,
        expected: &'static str,
    },
}

/// Appends `sample` to `out` as one line, with its newline.
pub fn write_sample(out: &mut String, sample: &Sample) {
    let disturbed = sample.disturbed.as_deref().unwrap_or_default();
    // Writing into a string cannot fail.
    let _ = writeln!(
        out,
        "{},{},{},{},{},{},{},{},{}",
        plain(&sample.cell.0),
        sample.metric.name(),
        sample.index,
        sample.value,
        sample.metric.unit(),
        sample.start_ns,
        sample.duration_ns,
        sample.work,
        plain(disturbed),
    );
}

/// Replaces what would need quoting, so that no field is ever quoted.
fn plain(text: &str) -> String {
    text.replace([',', '\n', '\r', '"'], ";")
}

/// Reads all of `samples.csv`. An unterminated last line, as a crash leaves it, is dropped.
///
/// # Errors
///
/// [`CsvError`] gives the line, column and text of the first unreadable field.
pub fn parse_samples(text: &str) -> Result<Vec<Sample>, CsvError> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = whole.split('\n');
    let header = lines.next().unwrap_or_default();
    if header != CSV_HEADER {
        return Err(CsvError::Header { found: shown(header) });
    }
    lines.enumerate().map(|(index, line)| parse_line(index + 2, line)).collect()
}

fn parse_line(line: usize, text: &str) -> Result<Sample, CsvError> {
    let mut fields = text.split(',');
    let mut next = |field| {
        let missing =
            || CsvError::Field { line, field, found: shown(text), expected: "nine columns" };
        fields.next().ok_or_else(missing)
    };
    let cell = CellId(next("cell")?.to_owned());
    let metric = next("metric")?;
    let metric = Metric::from_name(metric).ok_or_else(|| CsvError::Field {
        line,
        field: "metric",
        found: shown(metric),
        expected: "a metric such as latency",
    })?;
    let index = number(line, "index", next("index")?)?;
    let text_of_value = next("value")?;
    let value: f64 = number(line, "value", text_of_value)?;
    let (in_range, expected) = match metric.may_be_zero() {
        true => (value >= 0.0, "a number of 0 or more"),
        false => (value > 0.0, "a number above 0"),
    };
    if !(in_range && value.is_finite()) {
        return Err(CsvError::Field {
            line,
            field: "value",
            found: shown(text_of_value),
            expected,
        });
    }
    next("unit")?;
    let start_ns = number(line, "start_ns", next("start_ns")?)?;
    let duration_ns = number(line, "duration_ns", next("duration_ns")?)?;
    let work = number(line, "work", next("work")?)?;
    let disturbed = Some(next("disturbed")?).filter(|reason| !reason.is_empty());
    let disturbed = disturbed.map(str::to_owned);
    // If a line lost its newline, the next one follows it directly.
    if fields.next().is_some() {
        let (field, expected) = ("disturbed", "nine columns");
        return Err(CsvError::Field { line, field, found: shown(text), expected });
    }
    Ok(Sample { cell, metric, index, value, start_ns, duration_ns, work, disturbed })
}

fn number<T: core::str::FromStr>(
    line: usize,
    field: &'static str,
    text: &str,
) -> Result<T, CsvError> {
    text.parse().map_err(|_| CsvError::Field {
        line,
        field,
        found: shown(text),
        expected: "a number",
    })
}

/// Returns the beginning of a text, for an error: the control characters of a damaged file would
/// move the cursor.
fn shown(text: &str) -> String {
    let visible =
        |c: char| if c.is_control() { c.escape_default().collect() } else { c.to_string() };
    text.chars().take(80).map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(value: f64, disturbed: Option<&str>) -> Sample {
        Sample {
            cell: CellId("latency/cpu0/node0/64M".into()),
            metric: Metric::Latency,
            index: 3,
            value,
            start_ns: 17,
            duration_ns: 2_000_000,
            work: 20_000,
            disturbed: disturbed.map(str::to_owned),
        }
    }

    fn file(samples: &[Sample]) -> String {
        let mut text = format!("{CSV_HEADER}\n");
        for sample in samples {
            write_sample(&mut text, sample);
        }
        text
    }

    #[test]
    fn a_line_cut_off_by_a_crash_is_dropped_and_the_rest_kept() {
        let whole = file(&[sample(101.5, None), sample(99.0, Some("involuntary switch"))]);
        for end in CSV_HEADER.len() + 1..whole.len() {
            let read = parse_samples(&whole[..end]).expect("a cut file is still readable");
            assert!(read.len() <= 1, "cut at {end}");
        }
        assert_eq!(parse_samples(&whole).expect("whole").len(), 2);
    }

    #[test]
    fn a_damaged_line_is_refused_with_its_number_and_text() {
        let text = format!("{CSV_HEADER}\na,latency,zero,1,ns,0,0,0,\n");
        let error = parse_samples(&text).expect_err("index is no number");
        assert_eq!(error.to_string(), "line 2: index is `zero`, expected a number");
    }

    #[test]
    fn a_value_that_cannot_be_measured_is_refused_with_its_line() {
        for value in ["NaN", "inf", "-3.5", "0"] {
            let text = format!("{CSV_HEADER}\na,latency,0,{value},ns,0,0,0,\n");
            let error = parse_samples(&text).expect_err(value).to_string();
            let expected = format!("line 2: value is `{value}`, expected a number above 0");
            assert_eq!(error, expected);
        }
        let share = format!("{CSV_HEADER}\na,local-share,0,0,x,0,0,0,\n");
        assert_eq!(parse_samples(&share).expect("no frame was local").len(), 1);
    }

    #[test]
    fn control_characters_of_a_damaged_file_are_shown_escaped() {
        let error = parse_samples(&format!("{CSV_HEADER}\r\n")).expect_err("lines end in CR LF");
        assert!(error.to_string().contains("disturbed\\r`, expected"), "{error}");
    }

    #[test]
    fn a_file_with_another_header_is_refused() {
        let error = parse_samples("size (MB),0,1\n1,2,3\n").expect_err("not ours");
        assert!(error.to_string().starts_with("line 1 is `size (MB),0,1`"), "{error}");
    }

    #[test]
    fn a_comma_in_a_reason_cannot_break_the_line() {
        let read = parse_samples(&file(&[sample(1.0, Some("steal, 3 ms"))])).expect("readable");
        assert_eq!(read[0].disturbed.as_deref(), Some("steal; 3 ms"));
    }

    proptest! {
        #[test]
        fn every_value_comes_back_to_the_last_bit(value in proptest::num::f64::POSITIVE | proptest::num::f64::NORMAL) {
            let read = parse_samples(&file(&[sample(value, None)])).expect("readable");
            prop_assert_eq!(read[0].value.to_bits(), value.to_bits());
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,200}") {
            let _ = parse_samples(&text);
            let _ = parse_samples(&format!("{CSV_HEADER}\n{text}\n"));
        }
    }
}
