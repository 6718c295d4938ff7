//! The text that `acpidump` writes: several tables, each with a line for its name and rows of
//! hexadecimal bytes.

use thiserror::Error;

/// Reasons why a table's rows cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DumpError {
    /// The buffer is too small.
    #[error("buffer of {have} bytes, expected at least {needed}")]
    BufferTooSmall {
        /// Bytes of the table.
        needed: usize,
        /// Bytes of the buffer.
        have: usize,
    },
    /// A row that is not an offset, a colon and bytes.
    #[error("line {line}: expected an offset, a colon and up to 16 bytes, as in \"0010: 4C 45\"")]
    RowMalformed {
        /// Line number, counted from 1.
        line: usize,
    },
    /// A row that does not continue the one before it.
    #[error("line {line}: row starts at {found:#x}, expected {expected:#x}")]
    RowMissing {
        /// Line number, counted from 1.
        line: usize,
        /// Offset in the text.
        found: usize,
        /// Number of bytes before the row.
        expected: usize,
    },
}

/// Iterator over the tables in a dump, in order; lines outside tables are skipped.
#[derive(Clone, Copy, Debug)]
pub struct Dump<'a> {
    rest: &'a [u8],
    line: usize,
}

impl<'a> Dump<'a> {
    /// Starts at the beginning of a dump, which need not be UTF-8.
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: text, line: 1 }
    }

    fn take_line(&mut self) -> Option<&'a [u8]> {
        let (line, rest) = split_line(self.rest)?;
        self.rest = rest;
        self.line = self.line.saturating_add(1);
        Some(line)
    }
}

impl<'a> Iterator for Dump<'a> {
    type Item = DumpedTable<'a>;

    fn next(&mut self) -> Option<DumpedTable<'a>> {
        let name = loop {
            if let Some(name) = table_name(self.take_line()?) {
                break name;
            }
        };
        let (rows, line) = (self.rest, self.line);
        let mut length: usize = 0;
        while let Some((row, rest)) = split_line(self.rest) {
            if row.trim_ascii().is_empty() || table_name(row).is_some() {
                break;
            }
            length = rows.len().saturating_sub(rest.len());
            self.take_line();
        }
        Some(DumpedTable { name, rows: rows.get(..length).unwrap_or_default(), line })
    }
}

/// One table of a dump, not yet decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpedTable<'a> {
    /// Name before the `@`, usually the signature.
    pub name: &'a [u8],
    /// Line of the first row, counted from 1.
    pub line: usize,
    rows: &'a [u8],
}

impl<'a> DumpedTable<'a> {
    /// Returns the size of the table in bytes.
    ///
    /// # Errors
    /// [`DumpError::RowMalformed`] and [`DumpError::RowMissing`], with the line.
    pub fn size_bytes(&self) -> Result<usize, DumpError> {
        self.bytes_of_rows(|_, _| {})
    }

    /// Decodes the rows into `buffer` and returns the filled part of it.
    ///
    /// # Errors
    /// [`DumpError::BufferTooSmall`] with the required length, and the errors of
    /// [`size_bytes`](Self::size_bytes).
    pub fn decode<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], DumpError> {
        let needed = self.bytes_of_rows(|at, byte| {
            if let Some(room) = buffer.get_mut(at) {
                *room = byte;
            }
        })?;
        let have = buffer.len();
        buffer.get(..needed).ok_or(DumpError::BufferTooSmall { needed, have })
    }

    fn bytes_of_rows(&self, mut put: impl FnMut(usize, u8)) -> Result<usize, DumpError> {
        let (mut rest, mut line, mut length) = (self.rows, self.line, 0_usize);
        while let Some((row, after)) = split_line(rest) {
            let malformed = DumpError::RowMalformed { line };
            let (found, bytes) = split_row(row).ok_or(malformed)?;
            if found != length {
                return Err(DumpError::RowMissing { line, found, expected: length });
            }
            for byte in row_bytes(bytes) {
                put(length, byte);
                length = length.saturating_add(1);
            }
            if length == found {
                return Err(malformed);
            }
            rest = after;
            line = line.saturating_add(1);
        }
        Ok(length)
    }
}

/// Splits off the first line, without its line end; `None` at the end of the text.
fn split_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.is_empty() {
        return None;
    }
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    let (line, rest) = text.split_at_checked(end)?;
    let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    Some((line.strip_suffix(b"\r").unwrap_or(line), rest))
}

/// Returns the name in a line such as `SRAT @ 0x0000000000000000`.
fn table_name(line: &[u8]) -> Option<&[u8]> {
    let at = line.windows(5).position(|window| window == b" @ 0x")?;
    let name = line.get(..at)?.trim_ascii();
    (!name.is_empty() && !name.contains(&b' ')).then_some(name)
}

/// Splits a row into its offset and the text after the colon.
fn split_row(row: &[u8]) -> Option<(usize, &[u8])> {
    let colon = row.iter().position(|byte| *byte == b':')?;
    let (offset, bytes) = row.split_at_checked(colon)?;
    let offset = offset.trim_ascii();
    if offset.is_empty() || offset.len() > 8 {
        return None;
    }
    let offset = offset.iter().try_fold(0_usize, |value, digit| {
        Some(value.checked_shl(4)? | usize::from(hex_digit(*digit)?))
    })?;
    Some((offset, bytes.strip_prefix(b":")?))
}

/// Returns up to 16 bytes, each after one space; two spaces precede the same bytes as characters.
fn row_bytes(text: &[u8]) -> impl Iterator<Item = u8> {
    text.chunks(3).take(16).map_while(|chunk| match chunk {
        [b' ', high, low] => Some(hex_digit(*high)? << 4 | hex_digit(*low)?),
        _ => None,
    })
}

fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
