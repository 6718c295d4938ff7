//! Parsing of numbers in output.

use crate::error::OutputError;

/// Returns the number at the start of `text`, and the text after it: `0.7931`, `-3`, `1e-5`, `98.`;
/// a unit may follow directly, as in `3.0105s`. `None` for `nan` and `inf`.
pub(crate) fn leading(text: &str) -> Option<(f64, &str)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let whole = digits(sign);
    let mut end = whole;
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    let has_digit = whole > sign || end > whole + 1;
    if !has_digit {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    let (number, rest) = text.split_at(end);
    let value: f64 = number.parse().ok()?;
    value.is_finite().then_some((value, rest))
}

/// Returns `nan` for what programs print where they have no number, such as `-nan` or `inf`, and the text
/// after it.
pub(crate) fn not_finite(text: &str) -> Option<(f64, &str)> {
    let word = text.trim_start_matches(['+', '-']);
    let end = word.find(|c: char| !c.is_alphanumeric()).unwrap_or(word.len());
    let (word, rest) = word.split_at(end);
    let is_known = ["nan", "inf", "infinity"].iter().any(|known| word.eq_ignore_ascii_case(known));
    is_known.then_some((f64::NAN, rest))
}

/// Separators within a number: of groups of digits, of a fraction, a time, a version or a date.
const SEPARATORS: [char; 8] = [',', '.', ':', '\'', '_', '-', '\u{a0}', '\u{202f}'];

/// Refuses a number that is the end of a longer one, such as `890` of `1,234,567,890`; `before` is the
/// text before it.
pub(crate) fn refuse_end(what: &str, before: &str, number: &str) -> Result<(), OutputError> {
    let is_end = before.strip_suffix(SEPARATORS).is_some_and(|rest| rest.ends_with(is_digit));
    if let Some(group) = group_before(before).filter(|group| is_grouped(group, number)) {
        let end = number.split(|c: char| !is_digit(c)).next().unwrap_or_default();
        let word = format!("{group} {end}");
        return Err(OutputError::EndOfNumber { what: what.to_owned(), word });
    }
    if !is_end {
        return Ok(());
    }
    let is_outside = |c: char| !is_digit(c) && !SEPARATORS.contains(&c);
    let begin = before.rsplit(is_outside).next().unwrap_or_default();
    let end = number.split(is_outside).next().unwrap_or_default();
    Err(OutputError::EndOfNumber { what: what.to_owned(), word: format!("{begin}{end}") })
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// Reports whether digits and the text behind a single space after them can be one number in groups of
/// three digits, as `1 300` is in French.
fn is_grouped(digits: &str, group: &str) -> bool {
    let is_first = (1..=3).contains(&digits.len()) && !digits.starts_with('0');
    let is_inner = group.len() >= 3 && group.bytes().take(3).all(|byte| byte.is_ascii_digit());
    let is_whole = |c: char| c.is_whitespace() || ['.', ',', ';', ')'].contains(&c);
    is_first
        && digits.chars().all(is_digit)
        && is_inner
        && group[3..].chars().next().is_none_or(is_whole)
}

/// Returns the digits before the space at the end of a text.
fn group_before(text: &str) -> Option<&str> {
    let text = text.strip_suffix(' ')?;
    let group = text.rsplit(|c: char| !is_digit(c)).next()?;
    let is_of_word = text[..text.len() - group.len()].ends_with(|c: char| c.is_alphanumeric());
    (!is_of_word).then_some(group)
}

/// Refuses a number that continues in the text after it, such as `1` of `1,003`.
pub(crate) fn refuse_part(what: &str, number: &str, rest: &str) -> Result<(), OutputError> {
    if let Some(group) = rest.strip_prefix(' ').filter(|group| is_grouped(number, group)) {
        let word = format!("{number} {}", &group[..3]);
        return Err(OutputError::PartOfNumber { what: what.to_owned(), word });
    }
    if !goes_on(rest) {
        return Ok(());
    }
    let is_end = |c: char| c == ' ' || c == '\t' || c == '\n' || c == '\r';
    let end = rest.split(is_end).next().unwrap_or_default();
    Err(OutputError::PartOfNumber { what: what.to_owned(), word: format!("{number}{end}") })
}

/// Reports whether the text after a number is part of it: of a time such as `0m1.5s` or `0:01`, of
/// digits in groups, or of a hexadecimal number, version or date.
fn goes_on(rest: &str) -> bool {
    let begins_with_digit = |text: &str| text.starts_with(is_digit);
    let separated = rest.strip_prefix(SEPARATORS);
    let hexadecimal = rest.strip_prefix(['x', 'X']);
    separated.is_some_and(begins_with_digit)
        || hexadecimal.is_some_and(|text| text.starts_with(|c: char| c.is_ascii_hexdigit()))
        || rest.starts_with(char::is_alphabetic)
            && begins_with_digit(rest.trim_start_matches(char::is_alphabetic))
}

/// Returns the seconds at the start of `text` as clocks print them, and the text after it: `1m02.5s`,
/// `1h0m2s` (time of shells), or `1:02.5` and `1:00:02` (GNU time). `None` for a number of seconds alone.
pub(crate) fn clock(text: &str) -> Option<(f64, &str)> {
    let part = |text: &'_ str| -> Option<(f64, usize)> {
        let end = text.find(|c| !is_digit(c)).unwrap_or(text.len());
        Some((text.get(..end)?.parse().ok()?, end))
    };
    let (mut seconds, mut rest) = (0.0, text);
    let mut separators = String::new();
    loop {
        let (value, end) = part(rest)?;
        seconds = seconds * 60.0 + value;
        rest = &rest[end..];
        match rest.chars().next() {
            Some(c @ ('h' | 'm' | ':')) if rest[1..].starts_with(is_digit) => {
                separators.push(c);
                rest = &rest[1..];
            }
            _ => break,
        }
    }
    // In German and other languages a comma is before the fraction.
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let (value, end) = part(fraction)?;
        seconds += value / 10_f64.powi(i32::try_from(end).ok()?);
        rest = &fraction[end..];
    }
    match separators.as_str() {
        "m" | "hm" => rest.strip_prefix('s').map(|rest| (seconds, rest)),
        ":" | "::" => Some((seconds, rest)),
        _ => None,
    }
}

/// Returns the number if the whole of `text`, without surrounding spaces, is one.
pub(crate) fn whole(what: &str, text: &str) -> Result<f64, OutputError> {
    match leading(text.trim()) {
        Some((value, "")) => Ok(value),
        _ => Err(OutputError::NoNumber {
            what: what.to_owned(),
            text: text.trim().chars().take(40).collect(),
        }),
    }
}

/// Returns the number at the start of `text`, after spaces; the text after it is the unit.
pub(crate) fn first(what: &str, text: &str) -> Result<(f64, String), OutputError> {
    match leading(text.trim_start()) {
        Some((value, rest)) => Ok((value, rest.trim().to_owned())),
        None => Err(OutputError::NoNumber {
            what: what.to_owned(),
            text: text.trim().chars().take(40).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_ends_where_its_unit_begins() {
        assert_eq!(leading("3.0105s"), Some((3.0105, "s")));
        assert_eq!(leading("12 of 64"), Some((12.0, " of 64")));
        assert_eq!(leading("1e5x"), Some((1e5, "x")));
        assert_eq!(leading("1em"), Some((1.0, "em")));
        assert_eq!(leading("-.5"), Some((-0.5, "")));
        assert_eq!(leading("98."), Some((98.0, "")));
        for nonsense in ["", "-", ".", "-nan", "inf", "e5", "+e"] {
            assert_eq!(leading(nonsense), None, "{nonsense}");
        }
        assert_eq!(leading("1e999"), None);
    }

    #[test]
    fn times_of_shells_and_of_gnu_time_are_seconds() {
        for (text, seconds, rest) in [
            ("0m1.048s", 1.048, ""),
            ("12m01.0s wall", 721.0, " wall"),
            ("1h0m2s", 3602.0, ""),
            ("0m1,048s", 1.048, ""),
            ("0:01.05elapsed", 1.05, "elapsed"),
            ("1:02:03", 3723.0, ""),
        ] {
            assert_eq!(clock(text), Some((seconds, rest)), "{text}");
        }
        for other in ["1.5", "12s", "5m", "0m1.5", "1:2:3:4", "1m:2", "", "m", "0m.s", "0m1.s"] {
            assert_eq!(clock(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn printed_numbers_are_read_back(value in proptest::num::f64::NORMAL) {
            for text in [format!("{value}"), format!("{value:e}")] {
                prop_assert_eq!(leading(&text), Some((value, "")));
            }
        }

        #[test]
        fn any_text_gives_a_number_or_an_error(text in "\\PC*") {
            let _ = leading(&text);
            let _ = clock(&text);
            let _ = whole("x", &text);
        }
    }
}
