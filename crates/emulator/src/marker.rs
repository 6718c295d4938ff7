//! Decodes markers: instructions that [`numalab_marks::mark`] executes and that have no effect
//! outside of the emulator.

use numalab_marks::mark::{
    BEGIN, END, FIRST_HOST_PAGES, FIRST_PHASE, LETTER, NAME, NAMED_PHASE, OPCODE, PHASES, PUBLISH,
    REPORT, aarch64,
};
use numalab_memory_model::marker::{self, Marker};

/// Length of a marker instruction in bytes.
pub const LENGTH: usize = 8;
/// Length of a marker instruction on aarch64, in bytes.
pub const AARCH64_LENGTH: usize = 4;
const LAST_HOST_PAGES: u8 = FIRST_HOST_PAGES + 2;
/// Number of the letter 0; code bytes come before it.
const LETTERS: usize = 0x100;

const _: () =
    assert!(PHASES as usize == marker::PHASES && FIRST_PHASE as usize + marker::PHASES == LETTERS);

/// Decodes an x86-64 instruction as a marker.
pub fn decode(instruction: &[u8]) -> Option<Marker> {
    let [opcode @ .., code, n0, n1, n2] = *<&[u8; LENGTH]>::try_from(instruction).ok()?;
    match [n0, n1, n2] {
        NAME if opcode == OPCODE => from_code(code),
        LETTER if opcode == OPCODE => Some(Marker::Letter(code)),
        _ => None,
    }
}

/// Decodes an aarch64 instruction as a marker.
pub fn decode_aarch64(instruction: &[u8]) -> Option<Marker> {
    let instruction = <[u8; AARCH64_LENGTH]>::try_from(instruction).ok()?;
    let word = u32::from_le_bytes(instruction);
    let [_, _, _, code] = (word >> 5).to_be_bytes();
    match word {
        _ if word == aarch64(code, NAME) => from_code(code),
        _ if word == aarch64(code, LETTER) => Some(Marker::Letter(code)),
        _ => None,
    }
}

/// Returns the marker's unique number: its code byte, or [`LETTERS`] and more for a letter.
pub fn number(marker: Marker) -> usize {
    let code = match marker {
        Marker::Begin => BEGIN,
        Marker::End => END,
        Marker::Report => REPORT,
        Marker::Publish => PUBLISH,
        Marker::NamedPhase => NAMED_PHASE,
        Marker::HostPages(size) => FIRST_HOST_PAGES + size.min(2),
        Marker::Phase(phase) => phase.saturating_add(FIRST_PHASE),
        Marker::Letter(letter) => return LETTERS + usize::from(letter),
    };
    usize::from(code)
}

/// Returns the marker with a [`number`].
pub fn from_number(number: usize) -> Option<Marker> {
    match u8::try_from(number) {
        Ok(code) => from_code(code),
        Err(_) => u8::try_from(number - LETTERS).ok().map(Marker::Letter),
    }
}

fn from_code(code: u8) -> Option<Marker> {
    match code {
        BEGIN => Some(Marker::Begin),
        END => Some(Marker::End),
        REPORT => Some(Marker::Report),
        PUBLISH => Some(Marker::Publish),
        NAMED_PHASE => Some(Marker::NamedPhase),
        FIRST_HOST_PAGES..=LAST_HOST_PAGES => Some(Marker::HostPages(code - FIRST_HOST_PAGES)),
        FIRST_PHASE.. => Some(Marker::Phase(code - FIRST_PHASE)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_one_marker_or_none() {
        for code in 0..=u8::MAX {
            let bytes = [0x0f, 0x1f, 0x84, 0x00, code, 0x4d, 0x55, 0x4e];
            let marker = decode(&bytes);
            assert_eq!(marker.is_some(), matches!(code, 1..=8 | 16..), "code {code}");
            let letter = decode(&[0x0f, 0x1f, 0x84, 0x00, code, 0x4c, 0x55, 0x4e]);
            assert_eq!(letter, Some(Marker::Letter(code)));
            for marker in marker.into_iter().chain(letter) {
                assert_eq!(from_number(number(marker)), Some(marker), "code {code}");
            }
        }
        assert_eq!(from_code(u8::MAX), Some(Marker::Phase(239)));
    }

    #[test]
    fn on_aarch64_every_code_is_at_most_one_marker_and_other_instructions_are_not_markers() {
        for code in 0..=u8::MAX {
            let marker = decode_aarch64(&aarch64(code, NAME).to_le_bytes());
            assert_eq!(marker.is_some(), matches!(code, 1..=8 | 16..), "code {code}");
            let letter = decode_aarch64(&aarch64(code, LETTER).to_le_bytes());
            assert_eq!(letter, Some(Marker::Letter(code)));
        }
        // `movz xzr, #0x4d01, lsl #48`, as binutils encode it.
        let begin = 0xd2e9_a03f_u32;
        assert_eq!(decode_aarch64(&begin.to_le_bytes()), Some(Marker::Begin));
        for bit in (0..32).filter(|bit| !(5..13).contains(bit)) {
            let other = (begin ^ 1 << bit).to_le_bytes();
            let is_letter = decode_aarch64(&other) == Some(Marker::Letter(1));
            assert!(is_letter == (bit == 13) || decode_aarch64(&other).is_none(), "bit {bit}");
        }
    }

    #[test]
    fn other_instructions_are_not_markers() {
        let plain = [0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0];
        assert_eq!(decode(&plain), None);
        let marker = [0x0f, 0x1f, 0x84, 0x00, 1, 0x4d, 0x55, 0x4e];
        assert_eq!(decode(&marker), Some(Marker::Begin));
        for at in (0..marker.len()).filter(|at| *at != 4) {
            let mut other = marker;
            other[at] ^= 2;
            assert_eq!(decode(&other), None, "byte {at}");
        }
    }
}
