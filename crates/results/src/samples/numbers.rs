//! Samples in text.

/// Returns every number between blanks and commas, without comments after `#`; the error has the
/// line and the word that is not a number. `100,5` and `1,234.5` alone on a line are refused, since the
/// comma can be part of the number.
///
/// # Errors
/// The number of the line, and the word.
pub fn numbers(text: &str) -> Result<Vec<f64>, (usize, String)> {
    let number = |word: &str| word.parse().ok().filter(|value: &f64| value.is_finite());
    let mut values = Vec::new();
    for (index, line) in text.lines().enumerate() {
        // Most files have one number a line, and millions of lines.
        if let Some(value) = number(line) {
            values.push(value);
            continue;
        }
        let line = line.split('#').next().unwrap_or_default();
        let parts = line.trim().split_once(',');
        if parts.is_some_and(|(a, b)| number(a).is_some() && number(b).is_some()) {
            return Err((index + 1, line.trim().to_owned()));
        }
        let words = line.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
        for word in words.filter(|word| !word.is_empty()) {
            values.push(number(word).ok_or_else(|| (index + 1, word.to_owned()))?);
        }
    }
    Ok(values)
}
