//! What a guest says to the plugin: an instruction that does nothing anywhere else.

/// `nop dword ptr [rax + rax + disp32]`, whose displacement is `XX 'M' 'U' 'N'`.
const OPCODE: [u8; 4] = [0x0f, 0x1f, 0x84, 0x00];
const NAME: [u8; 3] = *b"MUN";
/// That of a letter, whose `XX` is the letter.
const LETTER: [u8; 3] = *b"LUN";
/// Code of phase 0.
const FIRST_PHASE: u8 = 0x10;

/// Number of the letter 0, behind all code bytes.
const LETTERS: usize = 0x100;

/// Length of a marker instruction in bytes.
pub const LENGTH: usize = 8;
/// Phases that a marker can name.
pub const PHASES: usize = 240;

/// What a marker asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// Counting and charging begin (one level deeper).
    Begin,
    /// They end (one level up; off at the top).
    End,
    /// The report is written now.
    Report,
    /// The executing vCPU's block of the virtual PMU is written now.
    Publish,
    /// What follows counts for the phase whose name the executing vCPU has spelled.
    NamedPhase,
    /// What follows counts for this phase, from 0.
    Phase(u8),
    /// The next letter of a phase's name.
    Letter(u8),
}

impl Marker {
    /// The marker that these instruction bytes are.
    pub fn decode(instruction: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = instruction.try_into().ok()?;
        let [opcode @ .., code, n0, n1, n2] = *bytes;
        match [n0, n1, n2] {
            NAME if opcode == OPCODE => Self::from_code(code),
            LETTER if opcode == OPCODE => Some(Self::Letter(code)),
            _ => None,
        }
    }

    /// The marker of [`Self::number`].
    pub fn from_number(number: usize) -> Option<Self> {
        match u8::try_from(number) {
            Ok(code) => Self::from_code(code),
            Err(_) => u8::try_from(number - LETTERS).ok().map(Self::Letter),
        }
    }

    /// A number of its own: its code byte, with letters behind all codes.
    pub fn number(self) -> usize {
        match self {
            Self::Begin => 1,
            Self::End => 2,
            Self::Report => 3,
            Self::Publish => 4,
            Self::NamedPhase => 5,
            Self::Phase(phase) => usize::from(phase.saturating_add(FIRST_PHASE)),
            Self::Letter(letter) => LETTERS + usize::from(letter),
        }
    }

    /// The marker of a code byte.
    fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Begin),
            2 => Some(Self::End),
            3 => Some(Self::Report),
            4 => Some(Self::Publish),
            5 => Some(Self::NamedPhase),
            FIRST_PHASE.. => Some(Self::Phase(code - FIRST_PHASE)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_one_marker_or_none() {
        for code in 0..=u8::MAX {
            let bytes = [0x0f, 0x1f, 0x84, 0x00, code, 0x4d, 0x55, 0x4e];
            let marker = Marker::decode(&bytes);
            assert_eq!(marker.is_some(), matches!(code, 1..=5 | 16..), "code {code}");
            let letter = Marker::decode(&[0x0f, 0x1f, 0x84, 0x00, code, 0x4c, 0x55, 0x4e]);
            assert_eq!(letter, Some(Marker::Letter(code)));
            for marker in marker.into_iter().chain(letter) {
                assert_eq!(Marker::from_number(marker.number()), Some(marker), "code {code}");
            }
        }
        assert_eq!(Marker::from_code(u8::MAX), Some(Marker::Phase(239)));
    }

    #[test]
    fn other_instructions_are_no_markers() {
        let plain = [0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0];
        assert_eq!(Marker::decode(&plain), None);
        let marker = [0x0f, 0x1f, 0x84, 0x00, 1, 0x4d, 0x55, 0x4e];
        assert_eq!(Marker::decode(&marker), Some(Marker::Begin));
        for length in 0..marker.len() {
            assert_eq!(Marker::decode(&marker[..length]), None);
        }
        for at in (0..marker.len()).filter(|at| *at != 4) {
            let mut other = marker;
            other[at] ^= 2;
            assert_eq!(Marker::decode(&other), None, "byte {at}");
        }
    }
}
