//! Decodes vector instructions.

use super::{Code, FLAGS, Form, Operands, RDI, Registers, general};

impl Code<'_> {
    /// Decodes vector instructions, and those encoded with VEX.
    pub(super) fn vector(&self, map: u8, opcode: u8) -> Option<Operands> {
        if (map, opcode) == (1, 0xf7) {
            return self.masked_store();
        }
        if map == 1 && matches!(opcode, 0x71..=0x73) {
            return self.shifted();
        }
        let (form, reg, rm) = vector_form(map, opcode, self.repeat)?;
        let mut known = self.form(form, reg, rm)?;
        if map == 1 && matches!(opcode, 0x2b | 0xe7) {
            return Some(known.non_temporal(self.non_temporal_bytes(opcode)));
        }
        if form == Form::ToRegister {
            let fields = self.mod_rm()?;
            known = known.without(FLAGS);
            if let Some(third) = self.third {
                // The result's register is a source only if the product is added to it.
                let adds = map == 2 && (0x96..=0xbf).contains(&opcode);
                let own = if adds { reg(fields.reg) } else { Registers::NONE };
                let other = if fields.is_memory { Registers::NONE } else { rm(fields.rm) };
                known.reads = reg(third) | other | own;
            }
            match (map, opcode) {
                // BLSR, BLSMSK and BLSI: the middle field is a part of the opcode.
                (2, 0xf3) => {
                    let other = if fields.is_memory { Registers::NONE } else { rm(fields.rm) };
                    let own = self.third.map_or(Registers::NONE, general);
                    known = Operands { reads: other, writes: own | FLAGS, ..known };
                }
                // A gather's elements are at the distances in a vector.
                (2, 0x90..=0x93) => known.address |= self.index_vector(),
                _ => {}
            }
            let clears = matches!((map, opcode), (1, 0x57 | 0xef));
            let same = self.third.map_or(fields.reg, |third| third) == fields.rm;
            if clears && same && !fields.is_memory {
                return Some(known.of_nothing());
            }
        }
        Some(known)
    }

    /// Returns the vector that a gather's address has as its index.
    fn index_vector(&self) -> Registers {
        let index = self.bytes.get(1).map(|sib| sib >> 3 & 7 | self.index_high);
        index.map_or(Registers::NONE, Registers::vector)
    }

    /// Decodes shifts by a constant, whose middle field is a part of the opcode.
    fn shifted(&self) -> Option<Operands> {
        let known = self.form(Form::Modify, Registers::vector, Registers::vector)?.without(FLAGS);
        let writes = self.third.map_or(known.writes, Registers::vector);
        Some(Operands { writes, ..known })
    }

    /// Decodes MASKMOVDQU and MASKMOVQ, which store the bytes of one vector that another one
    /// selects.
    fn masked_store(&self) -> Option<Operands> {
        let fields = self.mod_rm()?;
        let vectors = Registers::vector(fields.reg) | Registers::vector(fields.rm);
        Some(Self::memory(RDI, vectors, Registers::NONE).non_temporal(1))
    }

    /// Returns the bytes that MOVNTPS, MOVNTDQ and the like store: a vector, an MMX register with
    /// MOVNTQ, or the lowest element with SSE4A's MOVNTSS and MOVNTSD.
    fn non_temporal_bytes(&self, opcode: u8) -> u8 {
        match (opcode, self.repeat) {
            (0x2b, Some(0xf3)) => 4,
            (0x2b, Some(_)) => 8,
            (0xe7, _) if !self.operand_size => 8,
            _ => 16 << self.vector_length.min(2),
        }
    }
}

pub(super) type Kind = fn(u8) -> Registers;

/// Returns the form of a vector instruction, and the kinds of its registers.
fn vector_form(map: u8, opcode: u8, repeat: Option<u8>) -> Option<(Form, Kind, Kind)> {
    let vector: Kind = Registers::vector;
    Some(match (map, opcode) {
        (1, 0x77) => return None,
        (1, 0x10 | 0x28 | 0x5a | 0x5b | 0x6f | 0x70 | 0xe6 | 0xf0) => (Form::Load, vector, vector),
        (1, 0x7e) if repeat == Some(0xf3) => (Form::Load, vector, vector),
        (1, 0x11 | 0x13 | 0x17 | 0x29 | 0x2b | 0x7f | 0xd6 | 0xe7) => (Form::Store, vector, vector),
        (1, 0x7e) => (Form::Store, vector, general),
        (1, 0x2a | 0x6e) => (Form::Load, vector, general),
        (1, 0x2c | 0x2d | 0x50 | 0xc5 | 0xd7) => (Form::Load, general, vector),
        (1, 0x2e | 0x2f) | (2, 0x17) => (Form::Compare, vector, vector),
        (2, 0x18..=0x1a | 0x1c..=0x25 | 0x2a | 0x30..=0x35 | 0x58..=0x5a | 0x78 | 0x79) => {
            (Form::Load, vector, vector)
        }
        (2, 0xf0) if repeat.is_none() => (Form::Load, general, general),
        (2, 0xf1) if repeat.is_none() => (Form::Store, general, general),
        (2, 0xf0..=0xf7) => (Form::ToRegister, general, general),
        (3, 0x14..=0x17) => (Form::Store, vector, general),
        (3, 0x19 | 0x39) => (Form::Store, vector, vector),
        (3, 0x20 | 0x22) => (Form::ToRegister, vector, general),
        (3, 0xf0) => (Form::Load, general, general),
        (1..=3, _) => (Form::ToRegister, vector, vector),
        _ => return None,
    })
}
