//! A regular expression that finds a number.

use regex::{Regex, RegexBuilder};

use crate::error::{ExpressionError, OutputError};
use crate::number;

/// A regular expression with one group in parentheses, the number: `rate:\s+([0-9.]+)`.
///
/// `^` and `$` match at the ends of a line.
#[derive(Clone, Debug)]
pub struct Expression {
    regex: Regex,
}

impl Expression {
    /// Parses a regular expression, in the syntax of <https://docs.rs/regex>.
    ///
    /// # Errors
    /// [`ExpressionError::Malformed`] with the reason, [`ExpressionError::Groups`] unless there is
    /// exactly one group.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let expression = text.to_owned();
        let regex = RegexBuilder::new(text).multi_line(true).build().map_err(|error| {
            // The first lines of the message repeat the expression and point into it.
            let reason = error.to_string().lines().last().unwrap_or_default().trim().to_owned();
            ExpressionError::Malformed { expression: text.to_owned(), reason }
        })?;
        match regex.captures_len() - 1 {
            1 => Ok(Self { regex }),
            count => Err(ExpressionError::Groups { expression, count }),
        }
    }

    /// Returns the number in the group of the last match.
    ///
    /// # Errors
    /// [`OutputError::Missing`] if nothing matches, [`OutputError::NoNumber`] if the group is not a
    /// number, [`OutputError::PartOfNumber`] and [`OutputError::EndOfNumber`] if it is part of a longer
    /// one on which the expression says nothing.
    pub fn last(&self, metric: &str, text: &str) -> Result<f64, OutputError> {
        let matches = self.regex.captures_iter(text);
        let found = matches.filter_map(|found| Some((found.get(0)?, found.get(1)?))).last();
        match found {
            Some((whole, group)) => {
                if whole.start() == group.start() {
                    number::refuse_end(metric, &text[..group.start()], group.as_str())?;
                }
                if whole.end() == group.end() {
                    number::refuse_part(metric, group.as_str(), &text[group.end()..])?;
                }
                number::whole(metric, group.as_str())
            }
            None => Err(OutputError::missing(metric, "a match of its regular expression", text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(expression: &str, text: &str) -> Result<f64, String> {
        let parsed = Expression::parse(expression).map_err(|error| error.to_string())?;
        parsed.last("rate", text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_number_is_the_group_of_the_last_match() {
        let log = "step 1: 12.5 it/s\nstep 2: 1.3e1 it/s (warm)\n";
        assert_eq!(last(r"^step \d+: (\S+) it/s", log), Ok(13.0));
        assert_eq!(last(r"(?:took|time) (\d+)$", "took 7\ntime 9 s"), Ok(7.0));
    }

    #[test]
    fn outputs_without_a_match_or_a_number_are_refused() {
        let error = last(r"rate (\d+)", "nothing").unwrap_err();
        assert!(error.contains("expected a match of its regular expression"), "{error}");
        let error = last(r"rate (\w+)", "rate fast").unwrap_err();
        assert!(error.contains("rate is \"fast\", expected a finite number"), "{error}");
    }

    /// `1,997` was 1, and 997.
    #[test]
    fn a_part_of_a_longer_number_is_refused() {
        let error = last(r"rate ([0-9.]+)", "rate 1,997 MB/s").unwrap_err();
        assert!(error.contains("rate is \"1,997\""), "{error}");
        let error = last(r"([0-9.]+) MB/s", "rate 1,997 MB/s").unwrap_err();
        assert!(error.contains("rate is the end of \"1,997\""), "{error}");
        assert_eq!(last(r"rate 1,([0-9]+) ", "rate 1,997 MB/s"), Ok(997.0));
        assert_eq!(last(r"([0-9]+),", "rate 1,997 MB/s"), Ok(1.0));
        assert_eq!(last(r"rate ([0-9.]+)", "rate 12.5, of 13.\nnext"), Ok(12.5));
    }

    #[test]
    fn an_expression_has_one_group() {
        for (text, count) in [("rate", 0), (r"(\d+)/(\d+)", 2)] {
            let error = Expression::parse(text).unwrap_err();
            assert_eq!(error, ExpressionError::Groups { expression: text.to_owned(), count });
        }
        let error = Expression::parse("rate (").unwrap_err().to_string();
        assert!(error.contains("\"rate (\"") && error.contains("unclosed group"), "{error}");
    }
}
