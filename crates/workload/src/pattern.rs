//! Text with a placeholder for a number.

use numalab_stats::Direction;

use crate::error::{OutputError, PatternError};
use crate::number;
use crate::rate::usual_direction;
use crate::scale::{are_known, converted, factor};

/// Text with one placeholder in braces, for a number: `Time elapsed: {seconds} s`.
///
/// A run of spaces matches any run of spaces, and every other character matches itself; the number
/// may be followed by anything unless the pattern continues. A match is within one line; a carriage
/// return also ends a line, because progress displays use it. A pattern that is only a unit, such as
/// `{us}`, matches a number and its unit alone on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    before: Vec<String>,
    /// True if there are spaces between the text and the number.
    blank_before: bool,
    after: Vec<String>,
    blank_after: bool,
    /// The text in the braces.
    label: String,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`PatternError::Places`] unless there is exactly one pair of braces,
    /// [`PatternError::Minutes`] if the number is only the seconds of a longer time,
    /// [`PatternError::NoText`] if there is nothing else, not even a unit in the braces.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let places = text.matches('{').count();
        let count = if places == text.matches('}').count() { places } else { 0 };
        let parts = text.split_once('{').and_then(|(before, rest)| {
            let (label, after) = rest.split_once('}')?;
            (count == 1).then_some((before, label, after))
        });
        let pattern = text.to_owned();
        let count = if count == 1 { 0 } else { count };
        let (before, label, after) = parts.ok_or(PatternError::Places { pattern, count })?;
        let has_text = [before, label, after].iter().any(|part| !part.trim().is_empty());
        if !has_text {
            return Err(PatternError::NoText { pattern: text.to_owned() });
        }
        let is_minutes = |word: &str| {
            let digits = word.strip_suffix('m').unwrap_or_default();
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let last = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        if is_minutes(last) && after.starts_with('s') {
            return Err(PatternError::Minutes { pattern: text.to_owned() });
        }
        let words =
            |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
        Ok(Self {
            before: words(before),
            blank_before: before.ends_with(char::is_whitespace),
            after: words(after),
            blank_after: after.starts_with(char::is_whitespace),
            label: label.to_owned(),
        })
    }

    /// Returns the text in the braces, which may be the unit, such as `seconds`.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns the direction in which the numbers improve, as the label says or, if it says nothing, the
    /// text: up for `Requests/sec: {}`.
    pub fn usual_direction(&self) -> Option<Direction> {
        let text = || [self.before.join(" "), self.after.join(" ")].join(" ");
        usual_direction(&self.label).or_else(|| usual_direction(&text()))
    }

    /// Returns the numbers of all matches in `text`, in order, each with its unit: the letters, `%`
    /// and `/` after it; empty if the pattern itself continues. Values are in the unit of the
    /// label, as in `{us}`, if both units are known. Matches of `nan` are left out, as the first lines of
    /// progress displays have them ([`Self::undefined`]).
    ///
    /// # Errors
    /// [`OutputError::PartOfNumber`] if a match ends within a longer number, such as `1,003`,
    /// [`OutputError::EndOfNumber`] if it begins within one; [`OutputError::OtherUnit`] if its unit cannot be converted.
    pub fn values_with_units<'a>(
        &self,
        metric: &str,
        text: &'a str,
    ) -> Result<Vec<(f64, &'a str)>, OutputError> {
        let value = |found: Match<'a>| {
            let value = self.value(metric, &found)?;
            let unit = self.unit(&found);
            // A converted value is in the label's unit.
            let is_converted = unit != self.label && are_known(unit, &self.label);
            Ok((value, if is_converted { "" } else { unit }))
        };
        self.matches(text).filter(|found| !found.value.is_nan()).map(value).collect()
    }

    /// Returns the number of matches with `nan` or `inf` in the place of the number.
    pub fn undefined(&self, text: &str) -> usize {
        self.matches(text).filter(|found| found.value.is_nan()).count()
    }

    fn matches<'a>(&self, text: &'a str) -> impl Iterator<Item = Match<'a>> {
        text.split(['\n', '\r']).flat_map(|line| self.matches_in_line(line))
    }

    /// Returns the number, or the last one of several.
    ///
    /// # Errors
    /// [`OutputError::Missing`] if nothing matches, [`OutputError::NoNumber`] if the last match is `nan`;
    /// see also [`Self::values_with_units`].
    pub fn last(&self, metric: &str, text: &str) -> Result<f64, OutputError> {
        let missing = || OutputError::missing(metric, "a line that matches its pattern", text);
        self.value(metric, &self.matches(text).last().ok_or_else(missing)?)
    }

    /// Returns true if the pattern is only a unit.
    fn is_alone(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// Returns the number of a match in the label's unit, unless it is part of a longer one.
    fn value(&self, metric: &str, found: &Match<'_>) -> Result<f64, OutputError> {
        if found.value.is_nan() {
            let end = found.number.len() - found.rest.len();
            let text = found.number[..end].trim().to_owned();
            return Err(OutputError::NoNumber { what: metric.to_owned(), text });
        }
        if self.before.is_empty() {
            number::refuse_end(metric, found.previous, found.number)?;
        }
        if self.after.is_empty() {
            let number = &found.number[..found.number.len() - found.rest.len()];
            number::refuse_part(metric, number, found.rest)?;
        }
        let value = found.value * self.prefix(found).unwrap_or(1.0);
        converted(value, self.unit(found), &self.label).map_err(|unit| {
            let (unit, expected) = (unit.to_owned(), self.label.clone());
            OutputError::OtherUnit { what: metric.to_owned(), unit, expected }
        })
    }

    /// Returns the unit after the number of a match; empty if the pattern continues there.
    fn unit<'a>(&self, found: &Match<'a>) -> &'a str {
        match () {
            () if found.is_clock => "s",
            () if !self.after.is_empty() || self.prefix(found).is_some() => "",
            () => match unit_at(found.rest) {
                "" => unit_of_row(found.previous).unwrap_or_default(),
                unit => unit,
            },
        }
    }

    /// Returns the factor of a prefix that directly follows the number without a unit, as in `IOPS=12.3k`,
    /// which is `IOPS=980` in the next run.
    fn prefix(&self, found: &Match<'_>) -> Option<f64> {
        let word = unit_at(found.rest);
        let is_attached = found.rest.starts_with(word) && self.after.is_empty();
        factor(word).filter(|_| is_attached && word != self.label)
    }

    fn matches_in_line<'a>(&self, line: &'a str) -> Vec<Match<'a>> {
        let mut found = Vec::new();
        let mut rest = line;
        while let Some(next) = self.first_match(rest) {
            rest = next.rest;
            found.push(next);
        }
        found
    }

    fn first_match<'a>(&self, line: &'a str) -> Option<Match<'a>> {
        if self.is_alone() {
            let found = self.match_at("", line.trim())?;
            let end = if found.is_clock { "" } else { unit_at(found.rest) };
            return (found.rest.trim() == end).then_some(found);
        }
        line.char_indices().find_map(|(start, _)| {
            // A number does not begin in the middle of another one.
            let previous = line[..start].chars().next_back();
            let inside = self.before.is_empty()
                && previous.is_some_and(|c| c.is_alphanumeric() || c == '.' || c == '-');
            if inside { None } else { self.match_at(&line[..start], &line[start..]) }
        })
    }

    fn match_at<'a>(&self, previous: &'a str, text: &'a str) -> Option<Match<'a>> {
        let mut number = words_at(text, &self.before)?;
        if self.blank_before && !self.before.is_empty() {
            number = skip_blanks(number)?;
        }
        let ends = |rest: &'a str| match self.blank_after && !self.after.is_empty() {
            true => words_at(skip_blanks(rest)?, &self.after),
            false => words_at(rest, &self.after),
        };
        let found = |is_clock: bool, (value, rest): (f64, &'a str)| {
            Some(Match { value, is_clock, previous, number, rest: ends(rest)? })
        };
        // A time of day is not a duration, so colons need the label of one.
        let is_duration = |text: &str| !text.contains(':') || are_known("s", &self.label);
        let clock = number::clock(number)
            .filter(|(_, rest)| is_duration(&number[..number.len() - rest.len()]));
        clock
            .and_then(|clock| found(true, clock))
            .or_else(|| found(false, number::leading(number)?))
            .or_else(|| {
                let undefined = number::not_finite(number).filter(|_| !self.before.is_empty());
                found(false, undefined?)
            })
    }
}

/// A match of a pattern in a line.
struct Match<'a> {
    /// `nan` where the program printed that it has no number.
    value: f64,
    /// True for a time such as `0m1.5s`, whose value is in seconds.
    is_clock: bool,
    /// The line before the match, from the end of the previous one.
    previous: &'a str,
    number: &'a str,
    /// The line after the match.
    rest: &'a str,
}

/// Returns the unit that `text` begins with, after spaces; empty for the name of another value,
/// such as in `x=1 y=2`.
fn unit_at(text: &str) -> &str {
    let text = text.trim_start();
    let is_unit = |c: char| c.is_alphabetic() || c == '%' || c == '/';
    let end = text.find(|c| !is_unit(c)).unwrap_or(text.len());
    let (unit, rest) = text.split_at(end);
    let goes_on = |c: char| c.is_alphanumeric() || "=:_-".contains(c);
    if rest.starts_with(goes_on) { "" } else { unit }
}

/// Returns the unit of all numbers of a row, from its heading: `lat (usec): min=2, avg=` of fio, whose
/// next run can be in `msec`.
fn unit_of_row(before: &str) -> Option<&str> {
    let (_, rest) = before.split_once('(')?;
    let (unit, rest) = rest.split_once(')')?;
    (rest.starts_with(':') && are_known(unit, unit)).then_some(unit)
}

/// Returns the text after these words, which `text` must begin with, separated by spaces.
fn words_at<'a>(text: &'a str, words: &[String]) -> Option<&'a str> {
    let mut rest = text;
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            rest = skip_blanks(rest)?;
        }
        rest = rest.strip_prefix(word.as_str())?;
    }
    Some(rest)
}

/// Returns the text after at least one space.
fn skip_blanks(text: &str) -> Option<&str> {
    let rest = text.trim_start();
    (rest.len() < text.len()).then_some(rest)
}

#[cfg(test)]
mod tests;
