//! Classifies x86 instructions by their place in Intel's opcode maps (SDM 2, appendix A).

use super::Code;
use crate::machine::Class;

impl Code<'_> {
    /// Returns the class of an opcode in a map, numbered from 0; the code is at its ModRM byte.
    pub(super) fn class(&self, map: u8, opcode: u8) -> Class {
        let in_memory = self.bytes.first().is_some_and(|byte| byte >> 6 < 3);
        let class = match map {
            0 => self.first_class(opcode),
            1 => self.second_class(opcode),
            2 => self.third_class(opcode),
            _ => fourth_class(opcode),
        };
        // From one half of a wide vector to the other, or to twice the width.
        let crosses = match map {
            2 => matches!(opcode, 0x16 | 0x20..=0x25 | 0x30..=0x36),
            3 => matches!(opcode, 0x00 | 0x01 | 0x06 | 0x18 | 0x19 | 0x38 | 0x39 | 0x46),
            _ => false,
        };
        if crosses && self.vector_length > 0 {
            return Class::Lanes;
        }
        // Extending or broadcasting a loaded value costs nothing extra.
        let extends = match map {
            0 => opcode == 0x63,
            1 => matches!(opcode, 0x12 | 0x16 | 0x6e | 0x7e | 0xb6 | 0xb7 | 0xbe | 0xbf | 0xd6),
            2 => matches!(opcode, 0x18..=0x1a | 0x58..=0x5a | 0x78 | 0x79),
            _ => false,
        };
        if extends && in_memory { Class::Move } else { class }
    }

    /// Returns the bytes that MOVS or STOS moves per repetition with REP; 0 without REP.
    pub(super) fn repeated_bytes(&self, opcode: u8) -> u8 {
        match (self.repeat, opcode & 1, self.wide, self.operand_size) {
            (None, ..) => 0,
            (_, 0, ..) => 1,
            (_, _, true, _) => 8,
            (.., true) => 2,
            _ => 4,
        }
    }

    fn first_class(&self, opcode: u8) -> Class {
        let in_register = self.bytes.first().is_some_and(|byte| byte >> 6 == 3);
        match (opcode, self.middle()) {
            (0x83, 0 | 5) | (0xff, 0 | 1) if self.wide && in_register => Class::Constant,
            (0x8d, _) => self.address_class(),
            (0x10..=0x1f, _) if opcode & 7 < 6 => Class::Select,
            (0x80..=0x83, 2 | 3) => Class::Select,
            (0xc0 | 0xc1 | 0xd0..=0xd3, _) => Class::Shift,
            (0x50..=0x5f | 0x68 | 0x6a | 0x88..=0x8b | 0x8f | 0x90, _) => Class::Move,
            // Unlike other moves, a move of a constant takes an execution unit.
            (0xb0..=0xbf, _) => Class::Integer,
            (0xc6 | 0xc7, _) if in_register => Class::Integer,
            (0xa0..=0xa3 | 0xc6 | 0xc7 | 0xc9, _) => Class::Move,
            (0xf7, 4 | 5) => Class::WideMultiply,
            (0x69 | 0x6b, _) | (0xf6, 4 | 5) => Class::Multiply,
            (0xf7, 6 | 7) if self.wide => Class::Divide,
            (0xf6 | 0xf7, 6 | 7) => Class::NarrowDivide,
            (0x70..=0x7f | 0xc2 | 0xc3 | 0xe0..=0xe3 | 0xe8..=0xeb, _) => Class::Branch,
            (0xff, 2..=5) => Class::Branch,
            (0xff, 6) => Class::Move,
            (0xa4..=0xa7 | 0xaa..=0xaf | 0xd8..=0xdf, _) => Class::Other,
            _ => Class::Integer,
        }
    }

    /// Returns the class of a LEA: the addition of a constant, of a register, or of a scaled one.
    fn address_class(&self) -> Class {
        let Some(fields) = self.mod_rm() else { return Class::Integer };
        let has_index = fields.rm & 7 == 4;
        let is_scaled = has_index && self.bytes.get(1).is_some_and(|sib| sib >> 6 > 0);
        // With RBP or R13 as the base there is always a constant, which may be 0.
        let has_constant = match self.bytes {
            [byte, _, constant, ..] if byte >> 6 == 1 => *constant != 0,
            [byte, ..] => byte >> 6 > 1,
            [] => false,
        };
        match (is_scaled, fields.is_far && has_constant) {
            _ if fields.is_plain && self.wide => Class::Constant,
            (true, true) => Class::ScaledParts,
            (true, false) => Class::Scaled,
            (false, true) => Class::ThreeParts,
            (false, false) => Class::Integer,
        }
    }

    fn third_class(&self, opcode: u8) -> Class {
        match (opcode, self.repeat) {
            (0x96..=0xbf, _) => Class::FpFused,
            (0x04 | 0x0b | 0x28 | 0x40 | 0xdb..=0xdf, _) => Class::VectorMultiply,
            (0x00 | 0x2b, _) => Class::ByteShuffle,
            (0x0c | 0x0d | 0x16..=0x1a | 0x20..=0x25 | 0x30..=0x36, _) => Class::Shuffle,
            (0x58..=0x5a | 0x78 | 0x79, _) => Class::Shuffle,
            (0x45..=0x47, _) => Class::VectorShift,
            (0x90..=0x93, _) => Class::Gather,
            (0xf6, Some(0xf2)) => Class::WideMultiply,
            // CRC32; PDEP and PEXT, which Zen 1 and Zen 2 do in tens of cycles
            (0xf0 | 0xf1, Some(0xf2)) | (0xf5, Some(_)) => Class::Multiply,
            (0xf0 | 0xf1, None) => Class::Move,
            // SHLX, SARX and SHRX
            (0xf7, Some(_)) => Class::Shift,
            (0xf2..=0xf7, _) => Class::Integer,
            _ => Class::VectorInteger,
        }
    }

    fn second_class(&self, opcode: u8) -> Class {
        let is_single = !self.operand_size && self.repeat != Some(0xf2);
        match opcode {
            0x51 if is_single => Class::SingleRoot,
            0x5e if is_single => Class::SingleDivide,
            0x7e if self.repeat == Some(0xf3) => Class::Move,
            0x6e => Class::ToVector,
            0x50 | 0x7e | 0xd7 => Class::FromVector,
            // LZCNT and POPCNT; TZCNT
            0xb8 | 0xbd if self.repeat.is_some() => Class::BitCount,
            0xbc if self.repeat.is_some() => Class::TrailingZeros,
            // PSRLDQ and PSLLDQ
            0x73 if matches!(self.middle(), 3 | 7) => Class::ByteShuffle,
            _ => second_class(opcode),
        }
    }
}

fn second_class(opcode: u8) -> Class {
    match opcode {
        0x0d | 0x10..=0x13 | 0x16..=0x1f | 0x28 | 0x29 | 0x2b | 0x6f | 0x7f | 0xe7 | 0xf0 => {
            Class::Move
        }
        0x58 | 0x5c | 0x7c | 0x7d | 0xd0 => Class::FpAdd,
        0x2e | 0x2f | 0x5d | 0x5f | 0xc2 => Class::FpCompare,
        0x2a | 0x2c | 0x2d | 0x5a | 0x5b | 0xe6 => Class::FpConvert,
        0x52 | 0x53 | 0x59 => Class::FpMultiply,
        0xd5 | 0xe4 | 0xe5 | 0xf4..=0xf6 => Class::VectorMultiply,
        0x51 => Class::FpRoot,
        0x5e => Class::FpDivide,
        0x63 | 0x67 | 0x6b => Class::ByteShuffle,
        0x14 | 0x15 | 0x60..=0x62 | 0x68..=0x6a | 0x6c | 0x6d | 0x70 | 0xc4..=0xc6 => {
            Class::Shuffle
        }
        // MOVQ between vectors
        0xd6 => Class::Move,
        0x71..=0x73 | 0xd1..=0xd3 | 0xe1 | 0xe2 | 0xf1..=0xf3 => Class::VectorShift,
        0x80..=0x8f => Class::Branch,
        // SHLD, IMUL, SHRD
        0xa4 | 0xa5 | 0xac | 0xad | 0xaf => Class::Multiply,
        // BSF and BSR
        0xbc | 0xbd => Class::BitScan,
        // CMOVBE, CMOVA, SETBE and SETA
        0x46 | 0x47 | 0x96 | 0x97 => Class::TwoFlags,
        0x40..=0x4f | 0x90..=0x9f => Class::Select,
        0xa3 => Class::Shift,
        0xab | 0xb0..=0xbf | 0xc0 | 0xc1 | 0xc3 => Class::Integer,
        0xc8..=0xcf => Class::Integer,
        0x54..=0x57 | 0x64..=0x66 | 0x74..=0x76 | 0xd4..=0xfe => Class::VectorInteger,
        _ => Class::Other,
    }
}

fn fourth_class(opcode: u8) -> Class {
    match opcode {
        0x0f => Class::ByteShuffle,
        0x00..=0x06 | 0x0c..=0x0e | 0x14..=0x22 | 0x38 | 0x39 | 0x46 => Class::Shuffle,
        0x08..=0x0b => Class::FpConvert,
        0x44 => Class::VectorMultiply,
        0x40..=0x42 => Class::FpDivide,
        0x60..=0x63 => Class::Other,
        0xf0 => Class::Integer,
        _ => Class::VectorInteger,
    }
}
