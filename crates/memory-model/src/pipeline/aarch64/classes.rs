//! Classifies A64 instructions (Architecture Reference Manual for A-profile, C4.1).

use super::Word;
use crate::machine::Class;

impl Word {
    pub(super) fn class(self) -> Class {
        match self.field(25, 4) {
            0b1010 | 0b1011 => match self.0 >> 24 {
                0xd5 | 0xd4 => Class::Other,
                _ => Class::Branch,
            },
            // MOVZ and MOVN
            0b1001 if self.field(23, 3) == 0b101 => Class::Move,
            0b1000 | 0b1001 => Class::Integer,
            0b0100 | 0b0110 | 0b1100 | 0b1110 => Class::Move,
            0b0101 | 0b1101 => self.integer_class(),
            0b0111 | 0b1111 => self.vector_class(),
            _ => Class::Other,
        }
    }

    fn integer_class(self) -> Class {
        let divides = self.field(21, 4) == 0b0110 && !self.bit(30) && self.field(11, 5) == 1;
        match self.bit(28) {
            true if self.bit(24) => Class::Multiply,
            true if divides => Class::Divide,
            // MOV is ORR with the zero register.
            false if self.field(24, 5) == 0b01010 && self.field(29, 2) == 1 => {
                if self.field(5, 5) == 31 { Class::Move } else { Class::Integer }
            }
            _ => Class::Integer,
        }
    }

    fn vector_class(self) -> Class {
        // Scalar floating point; one bit more marks three operands.
        if self.field(24, 5) == 0b11111 && !self.bit(30) {
            return Class::FpFused;
        }
        if self.field(24, 5) == 0b11110 && !self.bit(30) && self.bit(21) {
            return self.scalar_class();
        }
        let floats = self.bit(21) && self.bit(10) && self.field(14, 2) == 0b11;
        match (floats, self.field(11, 3), self.bit(29)) {
            (true, 0b111, true) => Class::FpDivide,
            (true, 0b001, _) | (true, 0b011, true) => Class::FpMultiply,
            (true, ..) => Class::FpAdd,
            // Copies, permutations and extractions.
            (false, ..) if !self.bit(21) => Class::Shuffle,
            _ => Class::VectorInteger,
        }
    }

    fn scalar_class(self) -> Class {
        match (self.field(10, 2), self.field(12, 4)) {
            (0b10, 0b0000 | 0b1000) => Class::FpMultiply,
            (0b10, 0b0001) => Class::FpDivide,
            // One source: the first opcode is a move, the fourth a square root.
            (0b00, low) if low & 0b0100 != 0 => match self.field(15, 6) {
                0 => Class::Move,
                3 => Class::FpRoot,
                1 | 2 => Class::FpAdd,
                _ => Class::FpConvert,
            },
            (0b00, 0b0000) => Class::FpConvert,
            (0b00, _) => Class::FpCompare,
            _ => Class::FpAdd,
        }
    }
}
