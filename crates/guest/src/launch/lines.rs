//! Splits a console's bytes into lines of text, without escape sequences.

/// Limit of a line in bytes; the rest is dropped.
const LINE_BYTES: usize = 400;
const ESCAPE: u8 = 0x1b;

/// Collects bytes into lines; moving the cursor begins a new one.
#[derive(Debug, Default)]
pub struct Lines {
    partial: Vec<u8>,
    /// The bytes so far of an escape sequence.
    sequence: Option<Vec<u8>>,
}

impl Lines {
    /// Returns the lines completed by these bytes, without empty ones.
    pub fn add(&mut self, bytes: &[u8]) -> Vec<String> {
        bytes.iter().filter_map(|byte| self.byte(*byte)).collect()
    }

    /// Returns the line that is not complete yet, or an empty text.
    pub fn partial(&self) -> String {
        readable(&self.partial)
    }

    fn byte(&mut self, byte: u8) -> Option<String> {
        if let Some(sequence) = &mut self.sequence {
            sequence.push(byte);
            // A sequence ends with a letter; an endless one is not a sequence.
            if !byte.is_ascii_alphabetic() && sequence.len() < LINE_BYTES {
                return None;
            }
            self.sequence = None;
            // CUP and HVP, ECMA-48 8.3.21 and 8.3.63.
            return matches!(byte, b'H' | b'f').then(|| self.end()).flatten();
        }
        match byte {
            ESCAPE => self.sequence = Some(Vec::new()),
            b'\n' => return self.end(),
            // Bytes beyond the limit are dropped; the line still ends at its newline.
            _ if self.partial.len() < LINE_BYTES => self.partial.push(byte),
            _ => {}
        }
        None
    }

    fn end(&mut self) -> Option<String> {
        let line = readable(&self.partial);
        self.partial.clear();
        (!line.is_empty()).then_some(line)
    }
}

fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let shown = text.chars().filter(|character| !character.is_control() || *character == '\t');
    shown.collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_though_their_bytes_come_in_pieces() {
        let mut lines = Lines::default();
        assert!(lines.add(b"one\r").is_empty());
        assert_eq!(lines.add(b"\n\n\x1b[0;3"), ["one"]);
        assert_eq!(lines.add(b"2mtwo\x1b[0m words\nthr"), ["two words"]);
        assert_eq!(lines.partial(), "thr");
    }

    #[test]
    fn a_screen_that_is_drawn_by_moving_the_cursor_has_lines_too() {
        let mut lines = Lines::default();
        let drawn = b"\x1b[2J\x1b[1;1H\x1b[7m Memtest86+ v6.10 \x1b[0m| CPU\x1b[2;1HPass 1";
        assert_eq!(lines.add(drawn), [" Memtest86+ v6.10 | CPU"]);
        assert_eq!(lines.partial(), "Pass 1");
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let mut lines = Lines::default();
        assert!(lines.add(&[b'x'; 10_000]).is_empty());
        assert_eq!(lines.partial().len(), LINE_BYTES);
    }
}
