//! Time of a core's instructions, by class.

pub mod family;

use serde::{Deserialize, Serialize};

use family::Family;

/// Classes of instructions with different timing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Class {
    /// A move between registers, done by renaming, and instructions without effect.
    Move,
    /// Integer arithmetic and logic.
    #[default]
    Integer,
    /// The addition of a small constant to a 64-bit register, which some cores do during renaming.
    Constant,
    /// LEA with a scaled register.
    Scaled,
    /// LEA with two registers and a constant.
    ThreeParts,
    /// LEA with two registers, one of them scaled, and a constant.
    ScaledParts,
    /// Shifts and rotations.
    Shift,
    /// Readers of flags: conditional moves, additions with carry.
    Select,
    /// A conditional move that reads both carry and zero.
    TwoFlags,
    /// Counts of bits, and of leading zeros.
    BitCount,
    /// Counts of trailing zeros.
    TrailingZeros,
    /// Bit scans, whose result for zero is undefined.
    BitScan,
    /// Integer multiplication.
    Multiply,
    /// Integer multiplication with a product of twice the width.
    WideMultiply,
    /// Integer division of 64 bits.
    Divide,
    /// Integer division of at most 32 bits.
    NarrowDivide,
    /// Floating-point addition.
    FpAdd,
    /// Floating-point multiplication.
    FpMultiply,
    /// Fused multiply-add.
    FpFused,
    /// Floating-point comparison, minimum and maximum.
    FpCompare,
    /// Conversion from, to and between floating-point types, and rounding.
    FpConvert,
    /// Floating-point division.
    FpDivide,
    /// Floating-point division in single precision.
    SingleDivide,
    /// Floating-point square root.
    FpRoot,
    /// Floating-point square root in single precision.
    SingleRoot,
    /// Integer arithmetic and logic on vectors.
    VectorInteger,
    /// Integer multiplication on vectors.
    VectorMultiply,
    /// Shifts of vector elements.
    VectorShift,
    /// Moves of vector elements.
    Shuffle,
    /// Moves of bytes within vectors: by a mask, narrowed, shifted.
    ByteShuffle,
    /// Loads of the elements of a vector from different addresses.
    Gather,
    /// A move between the halves of wide vectors.
    Lanes,
    /// A move from a general register to a vector.
    ToVector,
    /// A move from a vector to a general register.
    FromVector,
    /// A memory read, beyond the time of the nearest cache.
    Load,
    /// A read of a vector.
    VectorLoad,
    /// A memory write.
    Store,
    /// A write of a vector.
    VectorStore,
    /// A branch.
    Branch,
    /// Anything else.
    Other,
}

/// Number of classes.
pub const CLASSES: usize = 40;

impl Class {
    /// All classes, in order.
    pub const ALL: [Self; CLASSES] = [
        Self::Move,
        Self::Integer,
        Self::Constant,
        Self::Scaled,
        Self::ThreeParts,
        Self::ScaledParts,
        Self::Shift,
        Self::Select,
        Self::TwoFlags,
        Self::BitCount,
        Self::TrailingZeros,
        Self::BitScan,
        Self::Multiply,
        Self::WideMultiply,
        Self::Divide,
        Self::NarrowDivide,
        Self::FpAdd,
        Self::FpMultiply,
        Self::FpFused,
        Self::FpCompare,
        Self::FpConvert,
        Self::FpDivide,
        Self::SingleDivide,
        Self::FpRoot,
        Self::SingleRoot,
        Self::VectorInteger,
        Self::VectorMultiply,
        Self::VectorShift,
        Self::Shuffle,
        Self::ByteShuffle,
        Self::Gather,
        Self::Lanes,
        Self::ToVector,
        Self::FromVector,
        Self::Load,
        Self::VectorLoad,
        Self::Store,
        Self::VectorStore,
        Self::Branch,
        Self::Other,
    ];
}

/// Timing of a class, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, f64)", into = "(f64, f64)")]
pub struct Takes {
    /// Latency, from operands to result.
    pub latency: f64,
    /// Reciprocal throughput, between independent instructions.
    pub each: f64,
}

impl From<(f64, f64)> for Takes {
    fn from((latency, each): (f64, f64)) -> Self {
        Self { latency, each }
    }
}

impl From<Takes> for (f64, f64) {
    fn from(takes: Takes) -> Self {
        (takes.latency, takes.each)
    }
}

/// Timing of instructions: cycles by class, each as latency and reciprocal throughput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// The family that supplies the values missing in a file.
    pub family: Family,
    /// Length of a cycle, in ns, 0.001 to 1000.
    pub cycle_ns: f64,
    /// Maximum number of instructions started per cycle, 1 to 64.
    pub width: u32,
    /// Integer arithmetic.
    pub integer: Takes,
    /// Shifts; by default the family's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<Takes>,
    /// Integer multiplication.
    pub multiply: Takes,
    /// Integer division.
    pub divide: Takes,
    /// Floating-point addition.
    pub fp_add: Takes,
    /// Floating-point multiplication.
    pub fp_multiply: Takes,
    /// Fused multiply-add; by default the family's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fp_fused: Option<Takes>,
    /// Floating-point comparison; by default the family's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fp_compare: Option<Takes>,
    /// Floating-point conversion; by default the family's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fp_convert: Option<Takes>,
    /// Floating-point division.
    pub fp_divide: Takes,
    /// Floating-point square root; by default the family's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fp_root: Option<Takes>,
    /// Integer arithmetic on vectors.
    pub vector_integer: Takes,
    /// Integer multiplication on vectors; by default the family's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_multiply: Option<Takes>,
    /// Moves of vector elements.
    pub shuffle: Takes,
    /// Loads, beyond the time of the nearest cache.
    pub load: Takes,
    /// Stores.
    pub store: Takes,
    /// Branches.
    pub branch: Takes,
    /// Other instructions.
    pub other: Takes,
}

impl Timing {
    /// Returns the timing of a class.
    pub fn of(&self, class: Class) -> Takes {
        let of_family = || self.family.takes(class);
        match class {
            Class::Integer => self.integer,
            Class::Shift => self.shift.unwrap_or_else(of_family),
            Class::Multiply => self.multiply,
            Class::Divide => self.divide,
            Class::FpAdd => self.fp_add,
            Class::FpMultiply => self.fp_multiply,
            Class::FpFused => self.fp_fused.unwrap_or_else(of_family),
            Class::FpCompare => self.fp_compare.unwrap_or_else(of_family),
            Class::FpConvert => self.fp_convert.unwrap_or_else(of_family),
            Class::FpDivide => self.fp_divide,
            Class::FpRoot => self.fp_root.unwrap_or_else(of_family),
            Class::VectorInteger => self.vector_integer,
            Class::VectorMultiply => self.vector_multiply.unwrap_or_else(of_family),
            Class::Shuffle => self.shuffle,
            Class::Load => self.load,
            Class::Store => self.store,
            Class::Branch => self.branch,
            Class::Other => self.other,
            Class::Move
            | Class::Constant
            | Class::Scaled
            | Class::ThreeParts
            | Class::ScaledParts
            | Class::Select
            | Class::TwoFlags
            | Class::BitCount
            | Class::TrailingZeros
            | Class::BitScan
            | Class::WideMultiply
            | Class::NarrowDivide
            | Class::SingleDivide
            | Class::SingleRoot
            | Class::VectorShift
            | Class::ByteShuffle
            | Class::Gather
            | Class::Lanes
            | Class::ToVector
            | Class::FromVector
            | Class::VectorLoad
            | Class::VectorStore => of_family(),
        }
    }

    /// Returns the classes that a file can give, by name.
    pub(super) fn all(&self) -> [(&'static str, Takes); 18] {
        let of = |class| self.of(class);
        [
            ("core integer", of(Class::Integer)),
            ("core shift", of(Class::Shift)),
            ("core multiply", of(Class::Multiply)),
            ("core divide", of(Class::Divide)),
            ("core fp_add", of(Class::FpAdd)),
            ("core fp_multiply", of(Class::FpMultiply)),
            ("core fp_fused", of(Class::FpFused)),
            ("core fp_compare", of(Class::FpCompare)),
            ("core fp_convert", of(Class::FpConvert)),
            ("core fp_divide", of(Class::FpDivide)),
            ("core fp_root", of(Class::FpRoot)),
            ("core vector_integer", of(Class::VectorInteger)),
            ("core vector_multiply", of(Class::VectorMultiply)),
            ("core shuffle", of(Class::Shuffle)),
            ("core load", of(Class::Load)),
            ("core store", of(Class::Store)),
            ("core branch", of(Class::Branch)),
            ("core other", of(Class::Other)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::machine_of;
    use crate::machine::Core;
    use alloc::string::{String, ToString};

    #[test]
    fn a_family_is_read_as_it_is_named() {
        let families = [
            Family::Skylake,
            Family::SunnyCove,
            Family::GoldenCove,
            Family::RedwoodCove,
            Family::Zen1,
            Family::Zen2,
            Family::Zen3,
            Family::Zen4,
            Family::NeoverseN1,
        ];
        for family in families {
            assert_eq!(serde_json::to_value(family).unwrap(), family.name());
        }
    }

    #[test]
    fn a_timing_is_read_as_it_is_written() {
        let timing = Family::Zen4.timing(0.25);
        assert_eq!((timing.width, timing.of(Class::Divide).latency), (6, 12.0));
        let text = serde_json::to_string(&timing).unwrap();
        assert!(text.contains("\"multiply\":[3.0,1.0]"), "{text}");
        assert_eq!(serde_json::from_str::<Timing>(&text).unwrap(), timing);
    }

    #[test]
    fn a_file_without_a_class_has_that_of_its_family() {
        let text = serde_json::to_string(&Family::GoldenCove.timing(0.25)).unwrap();
        let text = text.replace(",\"fp_root\":[18.0,6.0]", "");
        let timing: Timing = serde_json::from_str(&text).unwrap();
        assert_eq!((timing.fp_root, timing.of(Class::FpRoot).latency), (None, 18.0));
    }

    #[test]
    fn options_that_no_instruction_takes_are_named() {
        let timing = |change: fn(&mut Timing)| {
            let mut timing = Family::Zen4.timing(0.25);
            change(&mut timing);
            let mut machine = machine_of("cpus=0,memory=1G,distances=10");
            machine.core = Some(Core { timing: Some(timing), ..Core::TYPICAL });
            machine.check().map_or_else(|error| error.to_string(), |()| String::new())
        };
        assert_eq!(timing(|_| {}), "");
        assert_eq!(timing(|timing| timing.width = 0), "0 instructions a cycle, expected 1 to 64");
        assert_eq!(
            timing(|timing| timing.divide.latency = -1.0),
            "`core divide` has -1, expected 0 to 1000"
        );
        assert!(timing(|timing| timing.cycle_ns = 0.0).starts_with("`core cycle_ns` has 0"));
    }
}
