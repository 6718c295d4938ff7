//! The lines in which the kernel prints its results, and their decoder.
//!
//! A result is one line: `@numalab SEQUENCE CRC JSON`, with the sequence counted from 0 without
//! gaps, and the CRC-32 of the JSON's bytes in eight hexadecimal digits. The last line is
//! `@numalab-end COUNT CRC`, with the number of results and the CRC-32 of all their JSON in order.
//! Every other line is text for people.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use crc32fast::Hasher;

/// The start of a result's line.
pub const MARK: &str = "@numalab ";
/// The start of the last line. A run without it has no results.
pub const END_MARK: &str = "@numalab-end ";

/// Writes results as lines.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    sequence: u64,
    all: Hasher,
}

impl Encoder {
    /// Writes one result; `json` contains no line break.
    ///
    /// # Errors
    /// The writer's own.
    pub fn result(&mut self, json: &str, out: &mut impl Write) -> fmt::Result {
        self.all.update(json.as_bytes());
        let crc = crc32fast::hash(json.as_bytes());
        let sequence = self.sequence;
        self.sequence += 1;
        writeln!(out, "{MARK}{sequence} {crc:08x} {json}")
    }

    /// Writes the last line.
    ///
    /// # Errors
    /// The writer's own.
    pub fn end(&self, out: &mut impl Write) -> fmt::Result {
        let crc = self.all.clone().finalize();
        writeln!(out, "{END_MARK}{} {crc:08x}", self.sequence)
    }
}

/// Reasons why a line is not a valid result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The line does not have the form of a result.
    #[error("line `{line}`: expected `{MARK}SEQUENCE CRC JSON` or `{END_MARK}COUNT CRC`")]
    Form { line: String },
    #[error("got result {found}, expected result {expected}: lines were lost or repeated")]
    Sequence {
        /// The number that was received.
        found: u64,
        expected: u64,
    },
    #[error("result {sequence} has CRC {found:08x}, but its line gives {expected:08x}")]
    Damaged {
        /// The result's number, or in the last line the total number of results.
        sequence: u64,
        /// The CRC of the received bytes.
        found: u32,
        /// The CRC that was sent.
        expected: u32,
    },
    /// A line came after the last line.
    #[error("result {sequence} came after the end")]
    AfterEnd { sequence: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireLine<'l> {
    Result(&'l str),
    /// The last line: every result was received.
    End,
    Text(&'l str),
}

/// Decodes lines and checks that none is missing or damaged.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    encoder: Encoder,
    ended: bool,
}

impl Decoder {
    /// Decodes the next line, without its line break (a carriage return may remain).
    ///
    /// # Errors
    /// [`WireError`], with the problem.
    pub fn line<'l>(&mut self, line: &'l str) -> Result<WireLine<'l>, WireError> {
        let line = line.trim_end_matches(['\r', '\n']);
        if let Some(rest) = line.strip_prefix(END_MARK) {
            return self.end(line, rest);
        }
        let Some(rest) = line.strip_prefix(MARK) else {
            return Ok(WireLine::Text(line));
        };
        let form = || WireError::Form { line: line.into() };
        let mut words = rest.splitn(3, ' ');
        let sequence: u64 = words.next().and_then(|word| word.parse().ok()).ok_or_else(form)?;
        let expected = words.next().and_then(crc).ok_or_else(form)?;
        let json = words.next().ok_or_else(form)?;
        if self.ended {
            return Err(WireError::AfterEnd { sequence });
        }
        let found = crc32fast::hash(json.as_bytes());
        if found != expected {
            return Err(WireError::Damaged { sequence, found, expected });
        }
        if sequence != self.encoder.sequence {
            return Err(WireError::Sequence { found: sequence, expected: self.encoder.sequence });
        }
        self.encoder.sequence += 1;
        self.encoder.all.update(json.as_bytes());
        Ok(WireLine::Result(json))
    }

    /// Returns true if the last line was received.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    fn end<'l>(&mut self, line: &str, rest: &str) -> Result<WireLine<'l>, WireError> {
        let form = || WireError::Form { line: line.into() };
        let (count, word) = rest.split_once(' ').ok_or_else(form)?;
        let count: u64 = count.parse().map_err(|_| form())?;
        let expected = crc(word).ok_or_else(form)?;
        if count != self.encoder.sequence {
            return Err(WireError::Sequence { found: count, expected: self.encoder.sequence });
        }
        let found = self.encoder.all.clone().finalize();
        if found != expected {
            return Err(WireError::Damaged { sequence: count, found, expected });
        }
        self.ended = true;
        Ok(WireLine::End)
    }
}

fn crc(word: &str) -> Option<u32> {
    // Digits are written in lower case, so a digit in upper case is a damaged one.
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = word.len() == 8 && word.bytes().all(is_digit);
    digits.then(|| u32::from_str_radix(word, 16).ok()).flatten()
}

/// Writes bytes as hexadecimal digits, as in heap dumps.
///
/// # Errors
/// The writer's own.
pub fn hex(bytes: &[u8], out: &mut impl Write) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

/// Decodes hexadecimal digits; `None` if the text has others.
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            let [high, low] = <[u8; 2]>::try_from(pair).ok()?;
            let digit = |byte: u8| char::from(byte).to_digit(16);
            u8::try_from(digit(high)? * 16 + digit(low)?).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    fn sent(results: &[&str]) -> String {
        let mut text = String::new();
        let mut encoder = Encoder::default();
        for json in results {
            encoder.result(json, &mut text).unwrap();
        }
        encoder.end(&mut text).unwrap();
        text
    }

    fn read(text: &str) -> Result<(Vec<String>, bool), WireError> {
        let mut decoder = Decoder::default();
        let mut results = Vec::new();
        for line in text.lines() {
            if let WireLine::Result(json) = decoder.line(line)? {
                results.push(json.to_string());
            }
        }
        Ok((results, decoder.has_ended()))
    }

    #[test]
    fn sent_results_are_read_between_other_text() {
        let text = sent(&[r#"{"t":"boot"}"#, r#"{"t":"end"}"#]);
        let noisy = alloc::format!("SeaBIOS\r\n{}", text.replace('\n', "\r\nnoise\r\n"));
        let results = [r#"{"t":"boot"}"#.to_string(), r#"{"t":"end"}"#.to_string()];
        assert_eq!(read(&noisy).unwrap(), (results.to_vec(), true));
    }

    #[test]
    fn a_missing_line_and_a_changed_byte_are_found() {
        let text = sent(&["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"]);
        let lines: Vec<&str> = text.lines().collect();
        let without = alloc::format!("{}\n{}\n{}", lines[0], lines[2], lines[3]);
        assert_eq!(read(&without), Err(WireError::Sequence { found: 2, expected: 1 }));
        let changed = text.replace("\"b\":2", "\"b\":3");
        assert!(matches!(read(&changed), Err(WireError::Damaged { sequence: 1, .. })));
        let early = alloc::format!("{}\n{}", lines[0], lines[3]);
        assert_eq!(read(&early), Err(WireError::Sequence { found: 3, expected: 1 }));
    }

    #[test]
    fn a_checksum_in_upper_case_is_a_damaged_line() {
        let mut changed = 0;
        for number in 0..20 {
            let text = sent(&[&alloc::format!("{{\"a\":{number}}}")]);
            let upper = text.to_ascii_uppercase().replace("@NUMALAB", "@numalab");
            let upper = upper.replace("-END", "-end").replace("\"A\"", "\"a\"");
            if upper != text {
                assert!(matches!(read(&upper), Err(WireError::Form { .. })), "{upper}");
                changed += 1;
            }
        }
        assert!(changed > 0, "some checksum has a letter");
    }

    #[test]
    fn results_without_an_end_have_not_ended() {
        let text = sent(&["{}"]);
        assert!(!read(text.lines().next().unwrap()).unwrap().1);
    }

    #[test]
    fn a_line_after_the_end_is_refused() {
        let text = sent(&["{}"]);
        let more = alloc::format!("{text}@numalab 1 {:08x} {{}}", crc32fast::hash(b"{}"));
        assert_eq!(read(&more), Err(WireError::AfterEnd { sequence: 1 }));
    }

    proptest! {
        #[test]
        fn no_truncation_of_a_run_reads_as_a_complete_one(cut in 0_usize..120, junk in ".{0,20}") {
            let text = sent(&[r#"{"t":"boot","n":1}"#, r#"{"t":"end"}"#]);
            let whole = text.trim_end().len();
            let cut = cut.min(whole - 1);
            if let Ok((_, ended)) = read(&text[..cut]) {
                prop_assert!(!ended, "{}", &text[..cut]);
            }
            let _ = Decoder::default().line(&alloc::format!("{MARK}{junk}"));
            let _ = Decoder::default().line(&alloc::format!("{END_MARK}{junk}"));
        }

        #[test]
        fn bytes_survive_hexadecimal(bytes: Vec<u8>) {
            let mut digits = String::new();
            hex(&bytes, &mut digits).unwrap();
            prop_assert_eq!(unhex(&digits), Some(bytes));
        }
    }

    #[test]
    fn an_odd_number_of_digits_and_other_characters_are_refused() {
        assert_eq!(unhex("abc"), None);
        assert_eq!(unhex("zz"), None);
    }
}
