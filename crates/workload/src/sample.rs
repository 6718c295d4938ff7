//! The numbers in a log that is compared with another.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use numalab_stats::Direction;

use crate::error::OutputError;
use crate::pattern::Pattern;
use crate::rate::usual_direction;

/// The longest line that a message quotes, in characters.
const MOST_QUOTED: usize = 80;

/// The numbers that match a pattern, and how many have each unit.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSample {
    pub values: Vec<f64>,
    units: BTreeMap<String, usize>,
}

/// Reason why logs are not samples that can be compared.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    #[error("no line matches `{pattern}`{}", quoted(.nearest.as_ref()))]
    NoMatch {
        pattern: String,
        /// The line with the longest common start with the pattern, and its number.
        nearest: Option<(usize, String)>,
    },
    #[error("`{pattern}`: {error}")]
    Number { pattern: String, error: OutputError },
    #[error(
        "`{pattern}`: its words name neither a time nor a rate: expected the unit in the braces, such \
         as {{MB/s}}"
    )]
    Direction { pattern: String },
    #[error(
        "`{pattern}`: values in `{}` ({}) and in `{}` ({}): expected one unit; put it into \
         the pattern, as in `{pattern} {}`",
        .units[0], .logs[0], .units[1], .logs[1], .units[0]
    )]
    Units { pattern: String, units: [String; 2], logs: [String; 2] },
}

fn quoted(nearest: Option<&(usize, String)>) -> String {
    nearest.map_or_else(String::new, |(number, line)| {
        let remedy = match has_decimal_comma(line) {
            true => "numbers need a decimal point: LC_ALL=C",
            false => "if what precedes the number varies, compare its column, as `awk '{print $7}'` prints it",
        };
        format!("; line {number} is the nearest: `{line}`; {remedy}")
    })
}

/// Checks for a comma between digits that cannot separate thousands, as in `12,27`.
fn has_decimal_comma(line: &str) -> bool {
    let digits = |part: &str| part.chars().take_while(char::is_ascii_digit).count();
    line.split(',').zip(line.split(',').skip(1)).any(|(before, after)| {
        before.ends_with(|last: char| last.is_ascii_digit()) && !matches!(digits(after), 0 | 3)
    })
}

impl LogSample {
    /// Returns the numbers of a log that match a pattern.
    ///
    /// # Errors
    /// [`SampleError::NoMatch`] if there are none, [`SampleError::Number`] if one is part of a longer
    /// number, or in a unit that cannot be converted.
    pub fn of(text: &str, pattern: &str, parsed: &Pattern) -> Result<Self, SampleError> {
        let found = parsed
            .values_with_units("its number", text)
            .map_err(|error| SampleError::Number { pattern: pattern.to_owned(), error })?;
        if found.is_empty() {
            let nearest = nearest_line(text, pattern);
            return Err(SampleError::NoMatch { pattern: pattern.to_owned(), nearest });
        }
        let mut units = BTreeMap::new();
        for (_, unit) in found.iter().filter(|(_, unit)| !unit.is_empty()) {
            *units.entry((*unit).to_owned()).or_default() += 1;
        }
        Ok(Self { values: found.into_iter().map(|(value, _)| value).collect(), units })
    }

    /// Returns the direction in which the values improve: that of the unit after them or, if it says
    /// nothing, that of the pattern.
    pub fn usual_direction(&self, pattern: &Pattern) -> Option<Direction> {
        let of_units = self.units.keys().find_map(|unit| usual_direction(unit));
        of_units.or_else(|| pattern.usual_direction())
    }

    /// Refuses values of different units, which the pattern passed over, in either of two named logs.
    ///
    /// # Errors
    /// [`SampleError::Units`] with the commonest unit of the first log and another one.
    pub fn expect_one_unit(logs: [(&str, &Self); 2], pattern: &str) -> Result<(), SampleError> {
        let all = logs.iter().flat_map(|(name, sample)| {
            let mut units: Vec<(&String, &usize)> = sample.units.iter().collect();
            units.sort_by_key(|(_, count)| Reverse(**count));
            units.into_iter().map(move |(unit, _)| (unit, *name))
        });
        let all: Vec<(&String, &str)> = all.collect();
        let Some(first) = all.first() else { return Ok(()) };
        let Some(other) = all.iter().find(|(unit, _)| *unit != first.0) else { return Ok(()) };
        Err(SampleError::Units {
            pattern: pattern.to_owned(),
            units: [first.0.clone(), other.0.clone()],
            logs: [first.1.to_owned(), other.1.to_owned()],
        })
    }
}

/// Returns the line with the longest common start with a pattern, and its number; `None` if even the
/// first letters differ.
fn nearest_line(text: &str, pattern: &str) -> Option<(usize, String)> {
    let common =
        |line: &str| line.chars().zip(pattern.trim().chars()).take_while(|(a, b)| a == b).count();
    let lines = text.lines().map(str::trim).enumerate();
    let (index, line) = lines.min_by_key(|(_, line)| Reverse(common(line)))?;
    (common(line) > 0).then(|| (index + 1, line.chars().take(MOST_QUOTED).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_pattern_and_no_option() {
        let pattern = "took {s}";
        let parsed = Pattern::parse(pattern).unwrap();
        let none = LogSample::of("took: 5", pattern, &parsed).unwrap_err();
        let direction = SampleError::Direction { pattern: pattern.to_owned() };
        for error in [none, direction] {
            let said = error.to_string();
            assert!(said.contains("`took {s}`") && !said.contains("--"), "{said}");
        }
    }

    /// A word after the number hid the label, and an improvement was called worse.
    #[test]
    fn a_rate_in_the_pattern_or_after_the_number_improves_upwards() {
        let direction = |pattern: &str, text: &str| {
            let parsed = Pattern::parse(pattern).unwrap();
            let sample = LogSample::of(text, pattern, &parsed).unwrap();
            sample.usual_direction(&parsed).expect(pattern)
        };
        assert_eq!(direction("rate = {GB/s}", "rate = 9.77e+05 ops"), Direction::HigherIsBetter);
        assert_eq!(direction("rate = {x}", "rate = 9.77 MB/sec"), Direction::HigherIsBetter);
        assert_eq!(direction("took {ns}", "took 5 ns/op"), Direction::LowerIsBetter);
        assert_eq!(direction("took {x}", "took 5 s"), Direction::LowerIsBetter);
        for (pattern, text) in [
            ("Requests/sec: {}", "Requests/sec:  1234.5"),
            ("Transfer/sec: {MB}", "Transfer/sec:  9.5MB"),
            ("{} requests per second", "1234 requests per second"),
            ("IOPS={}", "read: IOPS=12.3k"),
        ] {
            assert_eq!(direction(pattern, text), Direction::HigherIsBetter, "{pattern}");
        }
        for (pattern, text) in
            [("at 100 MB/s: {us}", "at 100 MB/s: 7.5"), ("at 100 MB/s: {}", "at 100 MB/s: 7.5 us")]
        {
            assert_eq!(direction(pattern, text), Direction::LowerIsBetter, "{pattern}");
        }
    }
}
