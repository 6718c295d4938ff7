//! Instructions with the prefix 0F (SDM 2, table A-3).

use super::{Code, FLAGS, Form, RAX, RBX, RCX, RDX, general};
use crate::pipeline::operands::{Operands, Order, Registers};

impl Code<'_> {
    pub(super) fn second_map(&self, opcode: u8) -> Option<Operands> {
        let low = general(opcode & 7 | self.base_high);
        let none = Registers::NONE;
        let fence = Operands { order: Order::Fence, ..Operands::default() };
        Some(match opcode {
            0x01 if self.bytes == [0xf9] => fence.also(none, RAX | RCX | RDX),
            0x05 | 0x34 => fence,
            0x31 => Self::plain(none, RAX | RDX),
            0xa2 => fence.also(RAX | RCX, RAX | RBX | RCX | RDX),
            0xae if matches!(self.bytes, [0xe8..=0xf7]) => fence,
            // SFENCE
            0xae if matches!(self.bytes, [0xf8..=0xff]) => {
                Operands { order: Order::Drain, ..fence }
            }
            0x40..=0x4f => {
                let known = self.general(Form::ToRegister)?.without(FLAGS);
                known.also(FLAGS, none)
            }
            0x80..=0x8f => self.conditional(),
            // The rest of the register is kept.
            0x90..=0x9f => {
                let known = self.general(Form::Set)?;
                known.also(known.writes | FLAGS, none)
            }
            0xa3 => return self.general(Form::Compare),
            0xa4 | 0xa5 | 0xab | 0xac | 0xad | 0xb3 | 0xbb => return self.general(Form::ToMemory),
            0xaf => return self.general(Form::ToRegister),
            0xb0 | 0xb1 => self.general(Form::ToMemory)?.also(RAX, RAX),
            0xb6 | 0xb7 => return self.general(Form::Load).map(Operands::extending_zeros),
            0xbe | 0xbf => return self.general(Form::Load).map(Operands::extending_sign),
            0xb8 | 0xbc | 0xbd => self.general(Form::Load)?.also(none, FLAGS),
            0xba if self.middle() == 4 => return self.general(Form::Test),
            0xba => return self.general(Form::Modify),
            0xc0 | 0xc1 => {
                let known = self.general(Form::Exchange)?.also(none, FLAGS);
                Operands { order: Order::Free, ..known }
            }
            // MOVNTI
            0xc3 => self.general(Form::Store)?.non_temporal(if self.wide { 8 } else { 4 }),
            0xc7 if self.middle() == 1 => {
                let pair = RAX | RDX;
                self.general(Form::Set)?.also(pair | RBX | RCX, pair | FLAGS)
            }
            0xc8..=0xcf => Self::plain(low, low),
            0x10..=0x17 | 0x28..=0x2f | 0x50..=0x7f | 0xc2 | 0xc4..=0xc6 | 0xd0..=0xfe => {
                return self.vector(1, opcode);
            }
            _ => return None,
        })
    }
}
