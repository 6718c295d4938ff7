//! Samples in text.

/// Reason why text is not read as one sample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumbersError {
    #[error("line {line}: `{word}`: expected numbers such as 1.5, or a log with --metric PATTERN")]
    NoNumber { line: usize, word: String },
    #[error(
        "line {line}: `{unit}` after the number: expected numbers such as 1.5; --metric '{{{unit}}}' reads \
         numbers with this unit"
    )]
    Unit { line: usize, unit: String },
    #[error(
        "line {line}: `{word}` begins JSON: expected numbers such as 1.5; `jq '.results[].times[]' FILE` \
         takes them out of hyperfine's, `jq '.benchmarks[].real_time' FILE` out of Google Benchmark's"
    )]
    Json { line: usize, word: String },
    #[error(
        "line {line}: `{word}` is the name of a column: expected numbers only; `tail -n +{} FILE` leaves \
         out the names, and `cut -d, -f2` takes one column of several",
        .line + 1
    )]
    Named { line: usize, word: String },
    /// Several lines of several numbers are a table, with columns that are different samples.
    #[error(
        "line {line} has {numbers} numbers: expected one per line, or all on one line; `cut -d' ' -f2 \
         FILE` selects a column of a table, and so does --metric PATTERN"
    )]
    Table { line: usize, numbers: usize },
}

/// Returns every number between spaces and commas, without comments after `#`. `100,5` and
/// `1,234.5` alone on a line, and `100,5 101,2` or `100,5;101,2`, are refused, since the comma can be
/// part of the number.
///
/// # Errors
/// [`NumbersError`] with the line.
pub fn numbers(text: &str) -> Result<Vec<f64>, NumbersError> {
    // Spreadsheets and Windows' editors begin a text in UTF-8 with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let mut values = Vec::new();
    let mut lines = 0;
    let mut several = None;
    let (mut rest, mut index) = (text, 0);
    while !rest.is_empty() {
        // Most files have one number a line, and millions of lines.
        if let Some((value, length)) = plain_line(rest.as_bytes()) {
            values.push(value);
            lines += 1;
            (rest, index) = (&rest[length..], index + 1);
            continue;
        }
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let refused =
            |word: &str| NumbersError::NoNumber { line: index + 1, word: word.to_owned() };
        let line = without_comment(line);
        if let Some(word) = with_own_comma(line) {
            return Err(refused(word));
        }
        let before = values.len();
        for word in words(line) {
            values.push(number(word).ok_or_else(|| no_number(text, index, word))?);
        }
        let found = values.len() - before;
        lines += usize::from(found > 0);
        if found > 1 && several.is_none() {
            several = Some(NumbersError::Table { line: index + 1, numbers: found });
        }
        (rest, index) = (after, index + 1);
    }
    match several {
        Some(table) if lines > 1 => Err(table),
        _ => Ok(values),
    }
}

/// Reads a first line that is one number of at most 15 digits; returns the number, and the line's length
/// with its end.
///
/// Its digits and the power of ten below them are exact in an `f64`, so their quotient is rounded once,
/// as `str::parse` rounds (Clinger, "How to read floating point numbers accurately", PLDI 1990), which
/// takes three times as long.
fn plain_line(text: &[u8]) -> Option<(f64, usize)> {
    const MOST_DIGITS: usize = 15;
    let start = usize::from(text[0] == b'-');
    let (mut all, mut digits, mut point) = (0_u64, 0, None);
    let mut at = start;
    while let Some(byte) = text.get(at) {
        match byte {
            b'0'..=b'9' if digits < MOST_DIGITS => {
                all = 10 * all + u64::from(byte - b'0');
                digits += 1;
            }
            b'.' if point.is_none() => point = Some(digits),
            b'\n' => break,
            _ => return None,
        }
        at += 1;
    }
    if digits == 0 {
        return None;
    }
    let magnitude = all as f64 / POWERS_OF_TEN[digits - point.unwrap_or(digits)];
    let value = if start == 1 { -magnitude } else { magnitude };
    Some((value, text.len().min(at + 1)))
}

const POWERS_OF_TEN: [f64; 16] =
    [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Returns the first word in which a comma can be part of the number: one comma in the only word of a
/// line, or any in one of several, which something else separates.
fn with_own_comma(line: &str) -> Option<&str> {
    let words = line.split(|c: char| c.is_whitespace() || c == ';');
    let mut words = words.map(|word| word.trim_matches(',')).filter(|word| !word.is_empty());
    let is_one_of_several = words.clone().nth(1).is_some();
    words.find(|word| {
        let commas = word.matches(',').count();
        let can_be = if is_one_of_several { commas > 0 } else { commas == 1 };
        can_be && word.split(',').all(|part| number(part).is_some())
    })
}

fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or_default()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
    words.filter(|word| !word.is_empty())
}

/// Returns the error of a word that is not a number, by what the text is likely to be.
fn no_number(text: &str, index: usize, word: &str) -> NumbersError {
    let has_words = |line: &str| words(without_comment(line)).next().is_some();
    let has_numbers = |at: usize, expected: bool| {
        let line = text.lines().nth(at).filter(|line| has_words(line));
        line.is_some_and(|line| words(line).all(|word| number(word).is_some() == expected))
    };
    let is_first = text.lines().position(has_words) == Some(index);
    let (line, said) = (index + 1, word.to_owned());
    let is_unit = text.lines().nth(index).is_some_and(|line| {
        let parts = without_comment(line).trim().split_once(' ');
        parts.is_some_and(|(before, unit)| number(before).is_some() && unit.trim() == word)
    });
    match () {
        () if is_unit => NumbersError::Unit { line, unit: said },
        () if is_first && word.starts_with(['{', '[']) => NumbersError::Json { line, word: said },
        () if is_first && has_numbers(index, false) && has_numbers(index + 1, true) => {
            NumbersError::Named { line, word: said }
        }
        () => NumbersError::NoNumber { line, word: said },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_are_read_as_the_standard_library_reads_them() {
        let lines = [
            "0",
            "-0",
            "007",
            "5.",
            ".5",
            "-12.25",
            "0.1",
            "100.00001",
            "123456789012345",
            "1234567.89012345",
            ".123456789012345",
            "999999999999999",
            "0.00000000000003",
        ];
        for line in lines {
            let expected: f64 = line.parse().unwrap();
            for (text, length) in
                [(line.to_owned(), line.len()), (format!("{line}\n7"), line.len() + 1)]
            {
                let (value, read) = plain_line(text.as_bytes()).unwrap();
                assert_eq!((value.to_bits(), read), (expected.to_bits(), length), "{text}");
            }
        }
        for line in ["-", ".", "\n", "1 ", "1\r\n", "1.2.3", "+1", "1e3", "0123456789012345", "--1"]
        {
            assert_eq!(plain_line(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn lines_of_any_form_are_counted_for_errors() {
        assert_eq!(numbers("1\r\n2.5\n\n1e3 # three\n-4").unwrap(), [1.0, 2.5, 1e3, -4.0]);
        let refused = numbers("1\n2 # two\n\nx\n").unwrap_err();
        assert_eq!(refused, NumbersError::NoNumber { line: 4, word: "x".to_owned() });
    }

    #[test]
    fn a_comma_that_can_be_part_of_a_number_is_refused() {
        for (text, word) in [
            ("100,5", "100,5"),
            ("1\n1,234.5\n", "1,234.5"),
            ("108,7 109,2 108,1\n", "108,7"),
            ("1,100 1,200,000", "1,100"),
            ("108,7;109,2", "108,7"),
            ("108,7, 109,2,", "108,7"),
            ("7, 8 1,100", "1,100"),
        ] {
            let refused = numbers(text).unwrap_err();
            assert!(matches!(&refused, NumbersError::NoNumber { word: of, .. } if of == word));
        }
        for text in ["1,2,3,4", "1, 2, 3, 4", "1;2;3;4", "1 2 3 4,", "1 , 2 , 3 , 4"] {
            assert_eq!(numbers(text).unwrap(), [1.0, 2.0, 3.0, 4.0], "{text}");
        }
    }

    #[test]
    fn files_of_other_tools_are_refused_with_the_way_to_their_numbers() {
        let said = |text| numbers(text).unwrap_err().to_string();
        let hyperfine = said("{\n  \"results\": [\n");
        assert!(hyperfine.contains("line 1: `{` begins JSON") && hyperfine.contains("jq"));
        assert!(said("[1.5, 2.5]\n").contains("`[1.5` begins JSON"));
        for table in ["time\n1.5\n2.5\n", "# of today\n\nrun,time\n0,1.5\n1,2.5\n"] {
            assert!(said(table).contains("is the name of a column"), "{}", said(table));
        }
        let unit = said("# of today\n12.5 ops/s\n");
        assert!(unit.contains("line 2: `ops/s` after the number"), "{unit}");
        assert!(unit.contains("--metric '{ops/s}' reads"), "{unit}");
        assert!(said("# of today\n\nrun,time\n0,1.5\n").contains("`tail -n +4 FILE`"));
        for log in ["took 5 s\n1.5\n", "time\nslow\n", "1.5\ntime\n2.5\n"] {
            assert!(matches!(numbers(log), Err(NumbersError::NoNumber { .. })), "{}", said(log));
        }
    }
}
