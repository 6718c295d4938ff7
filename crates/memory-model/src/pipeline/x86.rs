//! Decodes the registers that an x86 instruction reads, writes, and computes addresses from.
//!
//! Enough of Intel's manual (SDM 2, chapter 2 and appendix A) to follow values from loads to
//! addresses: every form of the instructions that compilers and kernels use. Parts of registers
//! count as the whole; x87 and mask registers are ignored. Where 64-bit and 32-bit code differ, the
//! instruction's length distinguishes them: 40 to 4F is a prefix in one, and a whole instruction in
//! the other.

mod classes;
mod second_map;
mod vectors;

use super::operands::{Ends, Operands, Order, Registers};
use vectors::Kind;

const RAX: Registers = general(0);
const RCX: Registers = general(1);
const RDX: Registers = general(2);
const RBX: Registers = general(3);
const RSP: Registers = general(4);
const RBP: Registers = general(5);
const RSI: Registers = general(6);
const RDI: Registers = general(7);
const FLAGS: Registers = Registers::FLAGS;

const fn general(number: u8) -> Registers {
    Registers::general(number % 16)
}

/// Returns the register of a byte in an instruction without REX: 4 to 7 are AH, CH, DH and BH.
fn of_byte(number: u8) -> Registers {
    general(number & 3)
}

/// The roles of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Register from register or memory.
    Load,
    /// Register or memory from register.
    Store,
    /// Register from itself and a register or memory.
    ToRegister,
    /// Register or memory from itself and a register.
    ToMemory,
    /// Register or memory from itself.
    Modify,
    /// Flags from a register, and a register or memory.
    Compare,
    /// Flags from register or memory.
    Test,
    /// Register or memory from no operand.
    Set,
    /// Each operand is written from the other.
    Exchange,
    /// Nothing.
    Nothing,
}

/// A decoded ModRM byte, with the registers of both operands.
#[derive(Clone, Copy, Debug)]
struct ModRm {
    /// The middle field, which may be a part of the opcode.
    reg: u8,
    rm: u8,
    is_memory: bool,
    address: Registers,
    /// True if the address is one register and a constant.
    is_plain: bool,
    /// True if the address has a scaled register, or two registers and a constant.
    is_far: bool,
}

/// An instruction's bytes, with its prefixes.
#[derive(Clone, Copy, Debug, Default)]
struct Code<'a> {
    bytes: &'a [u8],
    /// Extensions of the fields by REX, VEX or EVEX.
    reg_high: u8,
    index_high: u8,
    base_high: u8,
    /// The source register that VEX and EVEX add.
    third: Option<u8>,
    locked: bool,
    /// The prefix F2 or F3, if present.
    repeat: Option<u8>,
    /// True with prefix 66.
    operand_size: bool,
    /// True if REX makes operands 64 bits wide.
    wide: bool,
    /// Size of the vectors of VEX and EVEX relative to SSE, as a power of two.
    vector_length: u8,
    has_rex: bool,
    /// True if the first and the second operand are bytes.
    of_bytes: [bool; 2],
}

/// Decodes the registers of an instruction; none for an unknown one.
pub fn decode(bytes: &[u8]) -> Operands {
    let mut code = Code::after_prefixes(bytes);
    let (map, opcode, decoded) = match code.bytes {
        [0xc5, byte, opcode, ..] => {
            code.reg_high = (!byte >> 7) << 3;
            code.third = Some((!byte >> 3) & 15);
            code = code.with_prefix_of(*byte);
            code.vector_length = byte >> 2 & 1;
            code.bytes = &code.bytes[3..];
            (1, *opcode, code.vector(1, *opcode))
        }
        [0xc4, one, two, opcode, ..] => {
            code = code.extended(!one >> 5);
            code.third = Some((!two >> 3) & 15);
            code = code.with_prefix_of(*two);
            code.vector_length = two >> 2 & 1;
            code.bytes = &code.bytes[4..];
            (one & 31, *opcode, code.vector(one & 31, *opcode))
        }
        [0x62, one, two, third, opcode, ..] => {
            code = code.extended(!one >> 5);
            code.reg_high |= !one & 16;
            code.third = Some((!two >> 3) & 15 | (!third & 8) << 1);
            code = code.with_prefix_of(*two);
            code.vector_length = third >> 5 & 3;
            code.bytes = &code.bytes[5..];
            (one & 7, *opcode, code.vector(one & 7, *opcode))
        }
        [0x0f, map @ (0x38 | 0x3a), opcode, ..] => {
            code.bytes = &code.bytes[3..];
            let map = if *map == 0x38 { 2 } else { 3 };
            (map, *opcode, code.vector(map, *opcode))
        }
        [0x0f, opcode, ..] => {
            code.bytes = &code.bytes[2..];
            code.of_bytes = bytes_of_second_map(*opcode);
            (1, *opcode, code.second_map(*opcode))
        }
        [opcode, ..] => {
            code.bytes = &code.bytes[1..];
            code.of_bytes = [opcode & 1 == 0 && has_bytes(*opcode); 2];
            (0, *opcode, code.first_map(*opcode))
        }
        [] => (0, 0x90, None),
    };
    let mut operands = decoded.unwrap_or_default().taking(code.class(map, opcode));
    operands.is_wide = code.vector_length > 0 && operands.is_vector();
    if code.locked && operands.memory {
        operands.order = Order::Atomic;
    }
    operands
}

/// Returns true for an opcode of the first map whose even form works on bytes.
fn has_bytes(opcode: u8) -> bool {
    matches!(opcode, 0..=0x3f | 0x80..=0x8a | 0xc0 | 0xc6 | 0xd0 | 0xd2 | 0xf6 | 0xfe)
}

/// Returns whether the operands of an opcode of the second map are bytes: of SETcc, CMPXCHG and XADD, and of
/// MOVZX and MOVSX the second one.
fn bytes_of_second_map(opcode: u8) -> [bool; 2] {
    let is_second = matches!(opcode, 0x90..=0x9f | 0xb0 | 0xb6 | 0xbe | 0xc0);
    [is_second && !matches!(opcode, 0xb6 | 0xbe), is_second]
}

impl<'a> Code<'a> {
    /// Reads the legacy prefixes and REX.
    fn after_prefixes(bytes: &'a [u8]) -> Self {
        let mut code = Code { bytes, ..Code::default() };
        while let [
            first @ (0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3),
            rest @ ..,
        ] = code.bytes
        {
            code.locked |= *first == 0xf0;
            code.operand_size |= *first == 0x66;
            code.repeat = if matches!(first, 0xf2 | 0xf3) { Some(*first) } else { code.repeat };
            code.bytes = rest;
        }
        if let [rex @ 0x40..=0x4f, rest @ ..] = code.bytes
            && !rest.is_empty()
        {
            code = Code { bytes: rest, has_rex: true, ..code.extended(*rex) };
        }
        code
    }

    /// Adds the extensions of a REX byte, or of VEX or EVEX, which have them inverted.
    fn extended(mut self, rex: u8) -> Self {
        self.reg_high = (rex & 4) << 1;
        self.index_high = (rex & 2) << 2;
        self.base_high = (rex & 1) << 3;
        self.wide = rex & 8 != 0;
        self
    }

    /// Sets the prefix encoded in the last two bits of VEX and EVEX.
    fn with_prefix_of(mut self, byte: u8) -> Self {
        self.repeat = [None, None, Some(0xf3), Some(0xf2)][usize::from(byte & 3)];
        self.operand_size = byte & 3 == 1;
        self
    }

    /// Returns operands without a ModRM byte.
    fn plain(reads: Registers, writes: Registers) -> Operands {
        Operands { reads, writes, ..Operands::default() }
    }

    /// Returns operands with memory at an address in these registers.
    fn memory(address: Registers, reads: Registers, writes: Registers) -> Operands {
        let plain_address = address == RSP;
        Operands { address, reads, writes, memory: true, plain_address, ..Operands::default() }
    }

    fn mod_rm(&self) -> Option<ModRm> {
        let (&byte, rest) = self.bytes.split_first()?;
        let (mode, reg, rm) = (byte >> 6, (byte >> 3) & 7 | self.reg_high, byte & 7);
        let high = if mode == 3 { self.index_high << 1 & 16 } else { 0 };
        let mut address = Registers::NONE;
        let (mut is_plain, mut is_far) = (false, false);
        if mode < 3 && rm == 4 {
            let &sib = rest.first()?;
            let (index, base) = ((sib >> 3) & 7 | self.index_high, sib & 7);
            if index != 4 {
                address |= general(index);
                is_far = sib >> 6 > 0 || mode > 0;
            }
            if base != 5 || mode != 0 {
                address |= general(base | self.base_high);
                is_plain = index == 4;
            }
        } else if mode < 3 && (rm != 5 || mode != 0) {
            address = general(rm | self.base_high);
            is_plain = true;
        }
        let rm = rm | self.base_high | high;
        Some(ModRm { reg, rm, is_memory: mode < 3, address, is_plain, is_far })
    }

    /// Returns the operands of a form, given the kinds of registers in its fields.
    fn form(&self, form: Form, reg: Kind, rm: Kind) -> Option<Operands> {
        let fields = self.mod_rm()?;
        let both =
            (reg(fields.reg), if fields.is_memory { Registers::NONE } else { rm(fields.rm) });
        let (reg, rm) = both;
        let (reads, writes) = match form {
            Form::Load => (rm, reg),
            Form::Store => (reg, rm),
            Form::ToRegister => (reg | rm, reg | FLAGS),
            Form::ToMemory => (reg | rm, rm | FLAGS),
            Form::Modify => (rm, rm | FLAGS),
            Form::Compare => (reg | rm, FLAGS),
            Form::Test => (rm, FLAGS),
            Form::Set => (Registers::NONE, rm),
            Form::Exchange => (reg | rm, reg | rm),
            Form::Nothing => (Registers::NONE, Registers::NONE),
        };
        let is_atomic = form == Form::Exchange && fields.is_memory;
        let stores = matches!(form, Form::Store | Form::Set | Form::ToMemory | Form::Modify);
        Some(Operands {
            stores: (stores || is_atomic) && fields.is_memory,
            plain_address: fields.is_plain && !(reads | writes).has_vectors(),
            far_address: fields.is_far,
            address: fields.address,
            reads,
            writes,
            memory: fields.is_memory && form != Form::Nothing,
            order: if is_atomic { Order::Atomic } else { Order::Free },
            ..Operands::default()
        })
    }

    fn general(&self, form: Form) -> Option<Operands> {
        let [reg, rm] = self.of_bytes.map(|is_byte| -> Kind {
            if is_byte && !self.has_rex { of_byte } else { general }
        });
        self.form(form, reg, rm)
    }

    /// Returns true if both operands are the same register, so that the result does not depend on
    /// it.
    fn clears(&self) -> bool {
        self.mod_rm().is_some_and(|fields| !fields.is_memory && fields.reg == fields.rm)
    }

    /// Returns a conditional branch, which jumps if its displacement is negative.
    fn conditional(&self) -> Operands {
        let jumps = self.bytes.last().is_some_and(|byte| byte >> 7 == 1);
        Self::plain(FLAGS, Registers::NONE).ending(Ends::Conditional).jumping(jumps)
    }

    fn middle(&self) -> u8 {
        self.bytes.first().map_or(0, |byte| (byte >> 3) & 7)
    }

    fn first_map(&self, opcode: u8) -> Option<Operands> {
        let low = general(opcode & 7 | self.base_high);
        let none = Registers::NONE;
        Some(match opcode {
            0x00..=0x3f if opcode & 7 < 6 => return self.arithmetic(opcode),
            0x40..=0x4f => Self::plain(low, low | FLAGS),
            0x50..=0x57 => Self::memory(RSP, low, none).storing(true),
            0x58..=0x5f => Self::memory(RSP, none, low),
            0x63 => return self.general(Form::Load).map(Operands::extending_sign),
            0x8a | 0x8b => return self.general(Form::Load),
            0x69 | 0x6b => return self.general(Form::Load).map(|known| known.also(none, FLAGS)),
            0x68 | 0x6a => Self::memory(RSP, none, none).storing(true),
            0xe8 => Self::memory(RSP, none, none).storing(true).calling(),
            0xc2 | 0xc3 | 0xcb => Self::memory(RSP, none, none).calling(),
            0x70..=0x7f => self.conditional(),
            0xe9 | 0xeb => Operands::default().jumping(true),
            0x80..=0x83 => return self.immediate(),
            0x84 | 0x85 => return self.general(Form::Compare),
            0x86 | 0x87 => return self.general(Form::Exchange),
            0x88 | 0x89 => return self.general(Form::Store),
            0x8d => {
                let fields = self.mod_rm()?;
                Self::plain(fields.address, general(fields.reg))
            }
            0x90 if self.base_high == 0 => {
                Operands { pauses: self.repeat == Some(0xf3), ..Operands::default() }
            }
            0x90..=0x97 => Self::plain(RAX | low, RAX | low),
            0x98 => Self::plain(RAX, RAX),
            0x99 => Self::plain(RAX, RDX),
            0xa0 | 0xa1 => Self::memory(none, none, RAX),
            0xa2 | 0xa3 => Self::memory(none, RAX, none),
            0xa4 | 0xa5 => {
                Self::memory(RSI | RDI, none, none).repeating(self.repeated_bytes(opcode))
            }
            0xa6 | 0xa7 => Self::memory(RSI | RDI, none, FLAGS),
            0xa8 | 0xa9 => Self::plain(RAX, FLAGS),
            0xaa | 0xab => Self::memory(RDI, RAX, none).repeating(self.repeated_bytes(opcode)),
            0xac | 0xad => Self::memory(RSI, none, RAX),
            0xae | 0xaf => Self::memory(RDI, RAX, FLAGS),
            0xb0..=0xb7 if !self.has_rex => Self::plain(none, of_byte(opcode & 7)),
            0xb0..=0xbf => Self::plain(none, low),
            0xc0 | 0xc1 | 0xd0 | 0xd1 => return self.general(Form::Modify),
            0xd2 | 0xd3 => return self.general(Form::Modify).map(|known| known.also(RCX, none)),
            0x8f | 0xc6 | 0xc7 => return self.general(Form::Set),
            0xc9 => Self::memory(RBP, none, RBP),
            0xe0..=0xe3 => Self::plain(RCX | FLAGS, none).ending(Ends::Conditional),
            0xf6 | 0xf7 => return self.unary(),
            0xfe | 0xff if self.middle() < 2 => return self.general(Form::Modify),
            0xff => {
                let known = self.general(Form::Test)?.without(FLAGS).storing(self.middle() == 6);
                match self.middle() {
                    2 => known.ending(Ends::IndirectCall).calling(),
                    4 => known.ending(Ends::Indirect).jumping(true),
                    _ => known,
                }
            }
            _ => return None,
        })
    }

    /// Decodes ADD to CMP with two operands, or an immediate for RAX.
    fn arithmetic(&self, opcode: u8) -> Option<Operands> {
        let (compares, carries) = (opcode & 0x38 == 0x38, matches!(opcode & 0x38, 0x10 | 0x18));
        let subtracts = matches!(opcode & 0x38, 0x28 | 0x30);
        let carry = if carries { FLAGS } else { Registers::NONE };
        let form = match opcode & 7 {
            0..=3 if compares => Form::Compare,
            0 | 1 => Form::ToMemory,
            2 | 3 => Form::ToRegister,
            _ => {
                let result = if compares { FLAGS } else { RAX | FLAGS };
                return Some(Self::plain(RAX | carry, result));
            }
        };
        let known = self.general(form)?.also(carry, Registers::NONE);
        Some(if subtracts && self.clears() { known.of_nothing() } else { known })
    }

    /// Decodes ADD to CMP with an immediate operand.
    fn immediate(&self) -> Option<Operands> {
        match self.middle() {
            7 => self.general(Form::Test),
            2 | 3 => self.general(Form::Modify).map(|known| known.also(FLAGS, Registers::NONE)),
            _ => self.general(Form::Modify),
        }
    }

    /// Decodes TEST, NOT, NEG, MUL and DIV.
    fn unary(&self) -> Option<Operands> {
        if matches!(self.middle(), 2 | 3) {
            return self.general(Form::Modify);
        }
        let known = self.general(Form::Test)?;
        Some(match self.middle() {
            0 | 1 => known,
            4 | 5 => known.also(RAX, RAX | RDX),
            _ => known.also(RAX | RDX, RAX | RDX),
        })
    }
}

#[cfg(test)]
mod tests;
