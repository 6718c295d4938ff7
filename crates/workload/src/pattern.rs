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
    /// and `/` behind it; empty if the pattern itself continues. Values are in the unit of the
    /// label, as in `{us}`, if both units are known.
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
        self.matches(text).map(value).collect()
    }

    fn matches<'a>(&self, text: &'a str) -> impl Iterator<Item = Match<'a>> {
        text.split(['\n', '\r']).flat_map(|line| self.matches_in_line(line))
    }

    /// Returns the number, or the last one of several.
    ///
    /// # Errors
    /// [`OutputError::Missing`] if nothing matches; see also [`Self::values_with_units`].
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

    /// Returns the unit behind the number of a match; empty if the pattern continues there.
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
    }
}

/// A match of a pattern in a line.
struct Match<'a> {
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(pattern: &str, text: &str) -> Vec<f64> {
        let found = Pattern::parse(pattern).unwrap().values_with_units("x", text).unwrap();
        found.into_iter().map(|(value, _)| value).collect()
    }

    #[test]
    fn the_number_is_between_the_texts() {
        let log = "run 1\nTime elapsed: 12.5 s\nrun 2\nTime   elapsed:\t13 s\n";
        assert_eq!(values("Time elapsed: {seconds} s", log), [12.5, 13.0]);
        assert_eq!(values("{rps} requests per second", "\rGET: 1.5 requests per second,"), [1.5]);
        assert_eq!(values("x={}", "x=1 x=2\rx=3"), [1.0, 2.0, 3.0]);
        assert_eq!(
            values("({rate} MiB/sec)", "1024.00 MiB transferred (7896.54 MiB/sec)"),
            [7896.54]
        );
    }

    #[test]
    fn texts_without_a_number_or_the_rest_of_the_pattern_do_not_match() {
        assert!(values("rps={}", "rps=-nan").is_empty());
        assert!(values("t: {} s", "t: 12 ms").is_empty());
        assert!(values("t: {}", "t:12").is_empty());
        assert!(values("{} s", "x12.5 s").is_empty());
    }

    #[test]
    fn times_of_shells_and_of_gnu_time_are_in_the_unit_of_the_label() {
        assert_eq!(values("real {s}", "real\t0m1.004s\nreal\t1m2.5s\n"), [1.004, 62.5]);
        assert_eq!(values("real {ms}", "real\t0m1.004s"), [1004.0]);
        assert_eq!(values("{s}elapsed", "0.00user 0.01system 0:01.05elapsed 9%CPU"), [1.05]);
        assert_eq!(values("(h:mm:ss or m:ss): {s}", "time (h:mm:ss or m:ss): 1:00:01"), [3601.0]);
        let pattern = Pattern::parse("real {time}").unwrap();
        assert_eq!(pattern.values_with_units("x", "real 0m2s").unwrap(), [(2.0, "s")]);
        let error = Pattern::parse("at {MB}").unwrap().last("x", "at 0m2s").unwrap_err();
        assert_eq!(error.to_string(), "x is in `s`, expected `MB`");
    }

    /// Regression: `IOPS=980` was better than `IOPS=12.3k`.
    #[test]
    fn prefixes_without_a_unit_multiply_the_number() {
        let log = "IOPS=12.3k, BW=48MiB/s\nIOPS=980\nIOPS=1.5M\nIOPS=2Ki\nIOPS=3 M\nIOPS=4Mx\n";
        assert_eq!(values("IOPS={}", log), [12_300.0, 980.0, 1.5e6, 2048.0, 3.0, 4.0]);
        assert_eq!(values("IOPS={k}", "IOPS=12.3k"), [12.3]);
        assert_eq!(values("IOPS={}k", "IOPS=12.3k"), [12.3]);
    }

    /// Regression: 12.5 usec and 1.2 msec were 12.5 and 1.2.
    #[test]
    fn numbers_of_a_row_have_the_unit_of_its_heading() {
        let log = "  lat (usec): min=1, avg=12.5, max=3\n  lat (msec): min=1, avg=1.2\n";
        assert_eq!(values("avg={us}", log), [12.5, 1200.0]);
        let pattern = Pattern::parse("avg={}").unwrap();
        let found = pattern.values_with_units("x", log).unwrap();
        assert_eq!(found, [(12.5, "usec"), (1.2, "msec")]);
        let other = pattern.values_with_units("x", "run (fast): avg=3\nrun (ms) avg=4\n");
        assert_eq!(other.unwrap(), [(3.0, ""), (4.0, "")]);
    }

    #[test]
    fn a_unit_alone_matches_lines_that_are_a_number_and_a_unit() {
        let log = "# run 3 of 5\n12.5 us\n 0.013 ms \n11\nrun 7: 12 us\n";
        assert_eq!(values("{us}", log), [12.5, 13.0, 11.0]);
        assert_eq!(values("{s}", "0m1.5s\n1:01\n"), [1.5, 61.0]);
    }

    #[test]
    fn a_pattern_has_one_place_and_some_text() {
        let places = |text| match Pattern::parse(text) {
            Err(PatternError::Places { count, .. }) => count,
            other => panic!("{other:?}"),
        };
        assert_eq!(places("Time: s"), 0);
        assert_eq!(places("{a} of {b}"), 2);
        assert_eq!(places("{a"), 0);
        assert_eq!(places("}a{"), 0);
        assert!(matches!(Pattern::parse(" { } "), Err(PatternError::NoText { .. })));
        let minutes = Pattern::parse("real 0m{s}s").unwrap_err().to_string();
        assert!(minutes.ends_with("for the whole time, such as 'real {s}'"), "{minutes}");
    }

    #[test]
    fn the_unit_is_the_word_behind_the_number_unless_the_pattern_continues() {
        let units = |pattern: &str, text: &'static str| -> Vec<&'static str> {
            let found = Pattern::parse(pattern).unwrap().values_with_units("x", text).unwrap();
            found.into_iter().map(|(_, unit)| unit).collect()
        };
        let log = "bw = 50 GB/s\nbw = 7.5us avg\nbw = 3 (avg)\nbw = 4\nbw = 5 %, worst\n";
        assert_eq!(units("bw = {x}", log), ["GB/s", "us", "", "", "%"]);
        assert_eq!(units("x={}", "x=1 y=2 x=3 x"), ["", "x"]);
        assert_eq!(units("t: {} s", "t: 12 s wall"), [""]);
    }

    /// Regression: 1.5 us and 1600 ns differed by a factor of 1000.
    #[test]
    fn values_are_in_the_unit_of_the_label() {
        let pattern = Pattern::parse("took {us}").unwrap();
        let found =
            pattern.values_with_units("x", "took 1.5 us\ntook 1600 ns\ntook 2 ms\ntook 3\n");
        assert_eq!(found.unwrap(), [(1.5, "us"), (1.6, ""), (2000.0, ""), (3.0, "")]);
        let found = pattern.values_with_units("x", "took 0 ns\ntook 1 us\n");
        assert_eq!(found.unwrap(), [(0.0, ""), (1.0, "us")], "0 ns is 0 us");
        let error = pattern.last("x", "took 5 MB/s").unwrap_err();
        assert_eq!(error.to_string(), "x is in `MB/s`, expected `us`");
    }

    /// Regression: `real 0m1.004s` was 0 seconds, and `1,997 MB/s` was 1.
    #[test]
    fn a_number_that_continues_after_the_match_is_refused() {
        for (pattern, text, word) in [
            ("Started: {}", "Started: 10:01:30", "10:01:30"),
            ("rate = {MB/s}", "rate = 1,997 MB/s", "1,997"),
            ("rate = {MB/s}", "rate = 1'997 MB/s", "1'997"),
            ("rate = {MB/s}", "rate = 1\u{202f}997 MB/s", "1\u{202f}997"),
            ("cycles = {}", "cycles = 0x3e8", "0x3e8"),
            ("cycles = {}", "cycles = 0xff", "0xff"),
            ("version {}", "version 6.1.0", "6.1.0"),
            ("on {}", "on 2026-11-29", "2026-11-29"),
        ] {
            let error = Pattern::parse(pattern).unwrap().last("x", text).unwrap_err();
            let expected =
                OutputError::PartOfNumber { what: "x".to_owned(), word: word.to_owned() };
            assert_eq!(error, expected, "{text}");
        }
        assert_eq!(values("minutes {m}m", "minutes 0m1.004s"), [0.0], "the pattern goes on");
        assert_eq!(values("row,{x},", "row,1,2"), [1.0]);
        assert_eq!(
            values("n = {}", "n = 12, m = 3; n = 1.5x, n = 7. n = 8:"),
            [12.0, 1.5, 7.0, 8.0]
        );
    }

    /// Regression: of `1,266,370,178 cycles:u`, as perf stat prints it, 178 was taken.
    #[test]
    fn a_number_that_begins_before_the_match_is_refused() {
        for (text, word) in [
            ("     1,266,370,178      cycles:u", "1,266,370,178"),
            ("1'997 cycles:u", "1'997"),
            ("1\u{202f}997 cycles:u", "1\u{202f}997"),
            ("at 0:34 cycles:u", "0:34"),
        ] {
            let error = Pattern::parse("{} cycles:u").unwrap().last("x", text).unwrap_err();
            let expected = OutputError::EndOfNumber { what: "x".to_owned(), word: word.to_owned() };
            assert_eq!(error, expected, "{text}");
        }
        assert_eq!(values("{} ms", "took: 5 ms, then,6 ms;7 ms =8 ms"), [5.0, 6.0, 7.0, 8.0]);
        assert_eq!(values(",{} ms", "1,5 ms"), [5.0], "the pattern begins before it");
    }

    proptest! {
        #[test]
        fn a_number_in_its_place_is_found(value in -1e12f64..1e12, noise in "[a-z \n]{0,40}") {
            let pattern = Pattern::parse("Rate now: {x} steps/s").unwrap();
            let text = format!("{noise}Rate now:  {value} steps/s{noise}");
            prop_assert_eq!(pattern.values_with_units("x", &text), Ok(vec![(value, "")]));
        }

        #[test]
        fn any_pattern_and_text_give_an_answer(pattern in "\\PC{0,20}", text in "\\PC{0,60}") {
            if let Ok(pattern) = Pattern::parse(&pattern) {
                let _ = pattern.values_with_units("x", &text);
            }
        }
    }
}
