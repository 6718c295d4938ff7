//! A dump in the serial output of numalab's kernel: framed lines of JSON with pieces of it in
//! hexadecimal, among other lines.

use serde::Deserialize;

/// The fields of a line's JSON that are used here.
#[derive(Deserialize)]
struct SerialLine {
    heap: DumpPiece,
}

#[derive(Deserialize)]
struct DumpPiece {
    offset: usize,
    hex: String,
}

/// Returns the bytes of the last dump in the text, if there is one. Missing or unordered pieces
/// give a broken dump.
pub(super) fn dump(text: &str) -> Option<Vec<u8>> {
    let mut bytes: Option<Vec<u8>> = None;
    for line in text.lines() {
        // The line has the form `@numalab SEQ CRC JSON`.
        let Some(frame) = line.trim().strip_prefix("@numalab ") else { continue };
        let Some(json) = frame.splitn(3, ' ').nth(2) else { continue };
        let Ok(SerialLine { heap: piece }) = serde_json::from_str(json) else { continue };
        let sum = bytes.get_or_insert_default();
        if piece.offset == 0 {
            sum.clear();
        }
        if piece.offset == sum.len() {
            sum.extend(from_hex(&piece.hex));
        }
    }
    bytes
}

fn from_hex(text: &str) -> impl Iterator<Item = u8> + '_ {
    let pairs = text.as_bytes().chunks_exact(2);
    pairs.map_while(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_order_give_the_dump_and_other_lines_are_ignored() {
        let text = "\
booting
@numalab 0 00000000 {\"boot\":{\"tsc_khz\":1}}
@numalab 1 00000000 {\"heap\":{\"offset\":0,\"hex\":\"4e4c\"}}
@numalab 2 00000000 {\"heap\":{\"offset\":2,\"hex\":\"48\"}}
@numalab 4 00000000 {\"heap\":{\"offset\":9,\"hex\":\"ff\"}}
";
        assert_eq!(dump(text).as_deref(), Some(b"NLH".as_slice()));
        assert_eq!(dump("(XEN) nothing\n"), None);
    }
}
