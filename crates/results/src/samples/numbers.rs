//! Samples in text.

/// Reason why text is not read as one sample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumbersError {
    /// A word is not a number.
    #[error("line {line}: `{word}`: expected numbers such as 1.5, or a log with --metric PATTERN")]
    NoNumber { line: usize, word: String },
    /// Several lines of several numbers are a table, with columns that are different samples.
    #[error(
        "line {line} has {numbers} numbers: expected one per line, or all on one line; `cut -d' ' -f2 \
         FILE` selects a column of a table, and so does --metric PATTERN"
    )]
    Table { line: usize, numbers: usize },
}

/// Returns every number between spaces and commas, without comments after `#`. `100,5` and
/// `1,234.5` alone on a line are refused, since the comma can be part of the number.
///
/// # Errors
/// [`NumbersError`] with the line.
pub fn numbers(text: &str) -> Result<Vec<f64>, NumbersError> {
    let number = |word: &str| word.parse().ok().filter(|value: &f64| value.is_finite());
    // Spreadsheets and Windows' editors begin a text in UTF-8 with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let mut values = Vec::new();
    let mut lines = 0;
    let mut several = None;
    for (index, line) in text.lines().enumerate() {
        // Most files have one number a line, and millions of lines.
        if let Some(value) = number(line) {
            values.push(value);
            lines += 1;
            continue;
        }
        let refused =
            |word: &str| NumbersError::NoNumber { line: index + 1, word: word.to_owned() };
        let line = line.split('#').next().unwrap_or_default();
        let parts = line.trim().split_once(',');
        if parts.is_some_and(|(a, b)| number(a).is_some() && number(b).is_some()) {
            return Err(refused(line.trim()));
        }
        let before = values.len();
        let words = line.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
        for word in words.filter(|word| !word.is_empty()) {
            values.push(number(word).ok_or_else(|| refused(word))?);
        }
        let found = values.len() - before;
        lines += usize::from(found > 0);
        if found > 1 && several.is_none() {
            several = Some(NumbersError::Table { line: index + 1, numbers: found });
        }
    }
    match several {
        Some(table) if lines > 1 => Err(table),
        _ => Ok(values),
    }
}
