//! Decodes instructions on floating-point and Advanced SIMD registers.

use super::{FLAGS, NONE, Operands, Registers, Word, plain};

impl Word {
    /// Decodes scalar floating point and Advanced SIMD.
    pub(super) fn vectors(self) -> Operands {
        match self.field(24, 5) {
            0b11110 if !self.bit(30) => self.scalar(),
            0b11111 if !self.bit(30) => plain(self.two() | self.vector(10), self.vector(0)),
            _ => self.elements(),
        }
    }

    fn two(self) -> Registers {
        self.vector(5) | self.vector(16)
    }

    /// Decodes scalar floating point.
    fn scalar(self) -> Operands {
        let (to, from) = (self.vector(0), self.vector(5));
        if !self.bit(21) || self.field(10, 6) == 0 {
            return self.conversion();
        }
        match self.field(10, 2) {
            0b11 => plain(self.two() | FLAGS, to),
            0b10 => plain(self.two(), to),
            0b01 => plain(self.two() | FLAGS, FLAGS),
            _ if self.bit(12) => plain(NONE, to),
            _ if self.bit(13) => plain(self.two(), FLAGS),
            _ => plain(from, to),
        }
    }

    /// Decodes moves and conversions between general and floating-point registers.
    fn conversion(self) -> Operands {
        match self.field(16, 3) {
            0b010 | 0b011 | 0b111 => plain(self.general(5), self.vector(0)),
            _ => plain(self.vector(5), self.general(0)),
        }
    }

    /// Decodes Advanced SIMD on vectors and on single elements.
    fn elements(self) -> Operands {
        let (to, from) = (self.vector(0), self.vector(5));
        let own = if self.accumulates() { to } else { NONE };
        let has_indices = self.bit(24);
        match self.field(10, 2) {
            // Copies of elements
            _ if !has_indices && self.field(21, 3) == 0 && !self.bit(15) && self.bit(10) => {
                self.copy()
            }
            // Modified immediates, and shifts by an immediate
            0b01 | 0b11 if has_indices && !self.bit(23) => {
                let is_immediate = self.field(19, 4) == 0;
                plain(if is_immediate { own } else { from | own }, to)
            }
            // One operand, all elements of one, and rounds of AES
            0b10 if !has_indices && matches!(self.field(17, 5), 0b10000 | 0b11000) => {
                plain(from, to)
            }
            0b10 if !has_indices && self.field(17, 5) == 0b10100 => plain(from | to, to),
            _ => plain(self.two() | own, to),
        }
    }

    /// Decodes DUP, INS, SMOV and UMOV.
    fn copy(self) -> Operands {
        let (to, from) = (self.vector(0), self.vector(5));
        match self.field(11, 4) {
            _ if self.bit(29) => plain(from | to, to),
            0b0001 => plain(self.general(5), to),
            0b0011 => plain(self.general(5) | to, to),
            0b0101 | 0b0111 => plain(from, self.general(0)),
            _ => plain(from, to),
        }
    }

    /// Returns true if the result's register is also a source.
    fn accumulates(self) -> bool {
        let (high, unsigned) = (self.field(12, 4), self.bit(29));
        match (self.bit(24), self.field(10, 2)) {
            // MLA, MLS, FMLA and their long forms by an element; SDOT, UDOT
            (true, 0b00 | 0b10) => {
                matches!(high, 0b0000..=0b0111 | 0b1110) && (high != 0 || unsigned)
            }
            // ORR and BIC of an immediate; SSRA, SRI, SLI and their like
            (true, _) if self.field(19, 4) == 0 => self.bit(12) && high < 0b1100,
            (true, _) => match self.field(11, 5) {
                0b00010 | 0b00110 => true,
                0b01000 | 0b01010 => unsigned,
                _ => false,
            },
            // Of three different lengths: SABAL, SMLAL, SMLSL and their like
            (false, 0b00) => matches!(high, 0b0101 | 0b0111..=0b1011) && self.bit(21),
            // SDOT and its like, without bit 21
            (false, 0b01 | 0b11) if !self.bit(21) => self.bit(15),
            // SABA, MLA, FMLA; BSL, BIT and BIF
            (false, 0b01 | 0b11) => match self.field(11, 5) {
                0b01111 | 0b10010 | 0b11001 => true,
                0b00011 => unsigned && self.field(22, 2) != 0,
                _ => false,
            },
            (false, _) => false,
        }
    }
}
