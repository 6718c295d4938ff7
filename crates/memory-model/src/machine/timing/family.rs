//! Families of cores, with their published figures.

use serde::{Deserialize, Serialize};

mod buffers;
pub mod identity;
mod pauses;
pub(crate) mod table;

use super::{Class, Timing};
use crate::pipeline::streams::Reach;

/// A family of cores with a published table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Intel's Skylake, Cascade Lake, Cooper Lake.
    Skylake,
    /// Intel's Sunny Cove and Cypress Cove: Ice Lake, Rocket Lake.
    SunnyCove,
    /// Intel's Golden Cove and Raptor Cove: Sapphire and Emerald Rapids.
    GoldenCove,
    /// Intel's Redwood Cove: Granite Rapids.
    RedwoodCove,
    /// AMD's Zen 1 and Zen+.
    Zen1,
    /// AMD's Zen 2.
    Zen2,
    /// AMD's Zen 3.
    Zen3,
    /// AMD's Zen 4 and later ones.
    Zen4,
    /// Arm's Neoverse N1.
    #[serde(rename = "neoverse-n1")]
    NeoverseN1,
}

/// The addresses at which values pass from a store to a load at renaming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renaming {
    Never,
    /// A register plus a constant.
    Plain,
    Any,
}

impl Family {
    /// Returns the name used in machine files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Skylake => "skylake",
            Self::SunnyCove => "sunny-cove",
            Self::GoldenCove => "golden-cove",
            Self::RedwoodCove => "redwood-cove",
            Self::Zen1 => "zen1",
            Self::Zen2 => "zen2",
            Self::Zen3 => "zen3",
            Self::Zen4 => "zen4",
            Self::NeoverseN1 => "neoverse-n1",
        }
    }

    /// Returns the family's timing at this length of a cycle.
    pub fn timing(self, cycle_ns: f64) -> Timing {
        let of = |class| self.takes(class);
        Timing {
            family: self,
            cycle_ns,
            width: self.width(),
            integer: of(Class::Integer),
            shift: Some(of(Class::Shift)),
            multiply: of(Class::Multiply),
            divide: of(Class::Divide),
            fp_add: of(Class::FpAdd),
            fp_multiply: of(Class::FpMultiply),
            fp_fused: Some(of(Class::FpFused)),
            fp_compare: Some(of(Class::FpCompare)),
            fp_convert: Some(of(Class::FpConvert)),
            fp_divide: of(Class::FpDivide),
            fp_root: Some(of(Class::FpRoot)),
            vector_integer: of(Class::VectorInteger),
            vector_multiply: Some(of(Class::VectorMultiply)),
            shuffle: of(Class::Shuffle),
            load: of(Class::Load),
            store: of(Class::Store),
            branch: of(Class::Branch),
            other: of(Class::Other),
        }
    }

    fn is_golden(self) -> bool {
        matches!(self, Self::GoldenCove | Self::RedwoodCove)
    }

    pub(crate) fn is_zen(self) -> bool {
        self.is_early_zen() || matches!(self, Self::Zen3 | Self::Zen4)
    }

    /// Returns true for the cores of AMD's family 17h.
    pub(crate) fn is_early_zen(self) -> bool {
        matches!(self, Self::Zen1 | Self::Zen2)
    }

    /// Returns true if only a comparison or a test fuses with the branch after it, and arithmetic
    /// does not (AMD's guide for family 17h, 2.10; measured on a Zen 1 in loops that count down).
    pub(crate) fn fuses_comparisons_only(self) -> bool {
        self.is_early_zen()
    }

    /// Returns true if a read-modify-write of memory computes its address once (measured on a Zen 1: with
    /// one further load, 1.3 cycles).
    pub(crate) fn changes_by_one_access(self) -> bool {
        self.is_early_zen()
    }

    /// Returns true if an instruction on 32 bytes is two on 16 (AMD's guide for family 17h, 2.11; measured
    /// on a Zen 1 for additions and loads).
    pub(crate) fn halves_vectors(self) -> bool {
        self == Self::Zen1
    }

    /// Returns the addresses at which a store forwards its value to a load of a general register at
    /// renaming, without the latency of a cache.
    ///
    /// On Golden Cove both are a register plus a constant (measured on a Granite Rapids: such a pair
    /// adds nothing to a chain). On Zen 3 any address will do (AMD, "Security Analysis of AMD
    /// Predictive Store Forwarding", 2021: the store that a load gets its value from is predicted),
    /// even if the store is part of a read-modify-write, but the load must not be part of other
    /// arithmetic, or extend a byte (measured: 8 cycles around a byte in memory). While the other
    /// thread of the core works, both addresses must use the stack pointer (measured). Zen 2 does it
    /// for a register plus a constant (A. Fog, "The microarchitecture of Intel, AMD, and VIA CPUs",
    /// "Mirroring memory operands"), Zen 1 for none (measured, also for the stack pointer).
    pub(crate) fn renaming(self) -> Renaming {
        match self {
            Self::GoldenCove | Self::RedwoodCove | Self::Zen2 => Renaming::Plain,
            Self::Zen3 | Self::Zen4 => Renaming::Any,
            Self::Skylake | Self::SunnyCove | Self::Zen1 | Self::NeoverseN1 => Renaming::Never,
        }
    }

    /// Returns the extra cycles of a floating-point addition without an operand from another one
    /// (LLVM's X86SchedAlderlakeP.td: 3 cycles in total; measured on an Emerald Rapids in chains of
    /// additions and products).
    pub(crate) fn first_add_cycles(self) -> f64 {
        if self.is_golden() { 1.0 } else { 0.0 }
    }

    /// Returns the size of the pieces of code that the core gets from its cache of decoded
    /// instructions, one each cycle, if it matters: measured on an Emerald Rapids, where a loop of
    /// four instructions takes two cycles if it spans two such pieces, and on a Zen 3.
    pub fn window_bytes(self) -> Option<u64> {
        (self.is_golden() || self.is_zen()).then_some(64)
    }

    /// Returns the number of instructions in an entry of the cache of decoded instructions, if an
    /// entry is read each cycle: a loop of nine to eleven moves takes two cycles on a Zen 3 (AMD's
    /// guide for family 19h, 2.9.1).
    pub(crate) fn window_instructions(self) -> Option<u64> {
        match self {
            Self::Zen4 => Some(9),
            _ => self.is_zen().then_some(8),
        }
    }

    /// Returns the schedulers, if known: entries, and for integer arithmetic, vectors and loads the
    /// one that holds them. Golden Cove's are from C. Lam, "Popping the Hood on Golden Cove"
    /// (chipsandcheese.com, 2021, by measurement); those of Zen 3 from AMD's guide for family 19h, 2.10.1
    /// and 2.11: four of 24 entries for integers and addresses, a quarter of which are assumed to
    /// be free when one is full, and two of 32 for vectors; instructions that wait in the queue
    /// before these do not run. Those of Zen 1 and Zen 2 are four of 14 and of 16 entries for integers, and
    /// 36 for vectors (AMD's guide for family 17h, 2.10 and 2.11); the ones for addresses are separate, but
    /// count as part of the first.
    pub(crate) fn schedulers(self) -> Option<([u64; 2], [usize; 3])> {
        match self {
            Self::GoldenCove | Self::RedwoodCove => Some(([97, 70], [0, 0, 1])),
            Self::Zen1 => Some(([42, 36], [0, 1, 0])),
            Self::Zen2 => Some(([48, 36], [0, 1, 0])),
            Self::Zen3 | Self::Zen4 => Some(([72, 64], [0, 1, 0])),
            Self::Skylake | Self::SunnyCove | Self::NeoverseN1 => None,
        }
    }

    /// Returns the cycles from the resolution of a mispredicted branch to the first instruction after
    /// it: a core's pipeline from fetch to execution. A. Fog, "The microarchitecture of Intel, AMD, and
    /// VIA CPUs" (agner.org/optimize, "branch misprediction penalty"); AMD's guide for family 19h, 2.8,
    /// gives 11 to 18, and 14.4 were measured on a Zen 3 and 19 on a Zen 1, with branches on a chain of
    /// shifts; Zen 2 is assumed to be like the latter.
    pub(crate) fn branch_cycles(self) -> f64 {
        match self {
            Self::Zen1 | Self::Zen2 => 19.0,
            Self::Zen3 | Self::Zen4 => 14.4,
            Self::Skylake => 16.0,
            _ => 17.0,
        }
    }

    /// Returns the cycles lost to the prediction of an indirect branch that has had several targets:
    /// short interpreted code takes 4 to 6 cycles an instruction on a Zen 3, and alternating jumps took
    /// 2 on a Granite Rapids and on a Zen 1; not known for other families.
    pub(crate) fn late_cycles(self) -> f64 {
        match self {
            Self::Zen3 => 3.0,
            Self::Zen4 => 2.5,
            Self::GoldenCove | Self::RedwoodCove | Self::Zen1 | Self::Zen2 => 1.0,
            Self::Skylake | Self::SunnyCove | Self::NeoverseN1 => 0.0,
        }
    }

    /// Returns the cycles of a call and of a return (A. Fog, "Instruction tables"): 3.6 together,
    /// measured on a Granite Rapids in loops long enough that the core does not cache them, 3.9 to
    /// 4.9 on a Zen 3, and 4.2 on a Zen 1; assumed for other families.
    pub(crate) fn call_cycles(self) -> f64 {
        match self {
            Self::Zen1 | Self::Zen2 | Self::Zen3 => 2.2,
            Self::Zen4 => 1.9,
            _ => 1.8,
        }
    }

    /// Returns true if branches, and comparisons that are one with them, have a separate unit: four
    /// additions, a comparison and its branch take one cycle on a Zen 4, and 1.25 with a
    /// decrement in place of the comparison.
    pub(crate) fn has_branch_unit(self) -> bool {
        self == Self::Zen4
    }

    /// Returns the cycles of a store to another line than the one before: a Zen 4 takes two stores a cycle
    /// into one line, but two and three read-modify-writes of different lines take 2 and 3 cycles. Not
    /// measured on other families.
    pub(crate) fn stored_line_cycles(self) -> f64 {
        if self == Self::Zen4 { 1.0 } else { 0.0 }
    }

    /// Returns the extra cycles of a store whose value a load gets at renaming: a Zen 4 takes one such store
    /// a cycle, and two others. Not measured on other families.
    pub(crate) fn renamed_store_cycles(self) -> f64 {
        if self == Self::Zen4 { 0.5 } else { 0.0 }
    }

    /// Returns true if several addresses of one line in memory share no line of the nearest cache: it looks a
    /// line up by a hash of its linear address (AMD's guide for family 17h, "Microtags"). On a Zen 4, dependent
    /// loads from 1, 2, 4 and 16 pages that were never written take 5, 13, 18 and 21 cycles.
    pub(crate) fn tells_addresses_apart(self) -> bool {
        self.is_zen()
    }

    /// Returns the units of which each takes the oldest instruction from a separate scheduler, if a
    /// counter waits for them: a loop in which four to six additions read a counter before it is
    /// incremented takes 2 cycles on a Zen 4, not 1.25 to 1.75, and with eight or twelve 2.5 to 3 and 4.
    pub(crate) fn crowded_units(self) -> Option<u64> {
        (self == Self::Zen4).then_some(4)
    }

    /// Returns the slots of arithmetic units that a taken branch leaves empty: the schedulers of Zen 3
    /// have one unit each, and loops of four to twenty-four additions take this much longer.
    pub(crate) fn lost_slots(self) -> u64 {
        u64::from(self.is_zen() && self != Self::Zen4)
    }

    /// Returns the cycles of a taken branch: no core fetches past one in the same cycle. Loops and jumps
    /// took 1.12 to 1.2 on a Zen 3.
    pub(crate) fn taken_cycles(self) -> f64 {
        if self == Self::Zen3 { 1.12 } else { 1.0 }
    }

    /// Returns the extra cycles over a hit for a load that recent stores cover only in part, from the
    /// time their data are known: it waits until they are in the cache. Measured on Emerald and Granite
    /// Rapids, 20 in total, on a Zen 3, 18 in total, and on a Zen 1, 17; assumed for other families.
    pub(crate) fn blocked_cycles(self) -> f64 {
        match self {
            Self::Zen1 | Self::Zen2 => 13.0,
            Self::Zen3 => 12.0,
            Self::Zen4 => 13.0,
            _ => 15.0,
        }
    }

    /// Returns the extra cycles over a hit for a load that gets the value of a recent store, except at
    /// renaming: measured on a Zen 3, 6 in total, or 9 for vectors, and on a Zen 1, 7 and 8; none were
    /// found on Golden Cove.
    pub(crate) fn forward_cycles(self) -> f64 {
        match self {
            Self::Zen1 | Self::Zen2 => 2.9,
            Self::Zen3 => 1.8,
            Self::Zen4 => 2.2,
            _ => 0.0,
        }
    }

    /// Returns the extra cycles of a vector instruction that reads or writes a general register or the
    /// flags, apart from plain moves: measured on a Zen 1 and a Zen 3 in chains of conversions and comparisons; in
    /// the tables of other families they are part of the class.
    pub(crate) fn crossing_cycles(self) -> f64 {
        if self.is_zen() { 3.0 } else { 0.0 }
    }

    /// Returns the extra cycles of VPMOVMSKB and the like on vectors of more than 16 bytes: measured on a
    /// Zen 4.
    pub(crate) fn wide_mask_cycles(self) -> f64 {
        if self == Self::Zen4 { 2.0 } else { 0.0 }
    }

    /// Returns the extra cycles of a load at an address that has a scaled register, or two registers and
    /// a constant (AMD's guide for family 19h, 2.12; measured on a Zen 3).
    pub(crate) fn address_cycles(self) -> f64 {
        if self.is_zen() { 1.0 } else { 0.0 }
    }

    /// Returns true if every address with two registers costs these extra cycles (measured on a Zen
    /// 1).
    pub(crate) fn delays_pairs(self) -> bool {
        self.is_early_zen()
    }

    /// Returns the startup cycles of MOVS and of STOS with REP, and their bytes per cycle after that:
    /// measured on Emerald and Granite Rapids, a Zen 1 and a Zen 3, for 64 bytes to 16 KiB in the L1;
    /// assumed for other families.
    pub(crate) fn repeated_cycles(self) -> ([f64; 2], f64) {
        match self {
            Self::Zen1 | Self::Zen2 => ([74.0, 80.0], 16.0),
            Self::Zen3 => ([24.0, 60.0], 32.0),
            Self::Zen4 => ([24.0, 8.0], 32.0),
            _ => ([20.0, 20.0], 64.0),
        }
    }

    /// Returns true if a read-modify-write of memory takes two slots of the width.
    pub(crate) fn splits_changes(self) -> bool {
        !self.is_zen()
    }

    /// Returns the extra cycles of a vector load over a load of a general register (`LoadLatency`
    /// in LLVM's models, and uops.info; with a move to a general register behind it, 5 on a Zen 1).
    pub(crate) fn vector_load_cycles(self) -> f64 {
        match self {
            Self::Zen1 | Self::Zen2 => 2.0,
            Self::Zen3 | Self::Zen4 => 3.0,
            _ => 1.0,
        }
    }

    /// Returns the cycles between lines from the L2, for lines that are read and lines that are
    /// written: Intel's Optimization Reference Manual gives 48 bytes per cycle sustained (table
    /// "Cache Parameters"), AMD's guide for family 19h and Arm's for Neoverse N1 32. A written line
    /// also goes back to the L2: measured on an Emerald Rapids, 4 cycles in total, and on a Zen 3,
    /// 2.1 to 3.1, on a Zen 1 2.1; for other families, both ways are assumed to take the same time.
    pub(crate) fn line_cycles(self) -> [f64; 2] {
        match self {
            Self::GoldenCove | Self::RedwoodCove => [64.0 / 48.0, 4.0],
            Self::Skylake | Self::SunnyCove => [64.0 / 48.0, 2.0 * 64.0 / 48.0],
            Self::Zen1 | Self::Zen2 => [2.0, 2.1],
            Self::Zen3 | Self::Zen4 => [2.0, 2.4],
            Self::NeoverseN1 => [2.0, 4.0],
        }
    }

    /// Returns true if prefetchers follow the distances of instructions, at any distance ("L1
    /// Stride", "L1 Stream" and "L2 Stream" of AMD's guide for family 19h, 2.12.2).
    pub(crate) fn prefetches_strides(self) -> bool {
        self.is_zen()
    }

    /// Returns the cycles from a miss to the requests for nearby lines that have followed earlier
    /// misses: measured on a Zen 4, where such lines are 22 to 27 ns late. A Zen 3 was only seen to
    /// fetch the next line.
    pub(crate) fn neighbours_cycles(self) -> Option<f64> {
        (self == Self::Zen4).then_some(75.0)
    }

    /// Returns the distances of such a core's prefetcher: on a Zen 4 it was measured to look 14 to 19
    /// lines past the end of a page after at least eight lines in a row, and across pages after two of
    /// them; not past a page on a Zen 3, assumed for earlier ones.
    pub(crate) fn reach(self) -> Reach {
        match self {
            Self::Zen4 => Reach { past_page: 16, long: Some(128) },
            _ => Reach { past_page: 0, long: None },
        }
    }

    /// Returns the cycles between lines from beyond the L2, if known: measured on a Zen 3, 1.27 to
    /// 1.35 ns at 3.1 GHz for reads of 1 to 4 MiB in order, and by 20 and 24 chases side by side, and on a
    /// Zen 4, 2.4 for reads and for stores of 2 to 8 MiB in order; assumed for earlier Zens. The second is for
    /// other lines: on a Zen 4, 3.6 for independent loads of 4 to 6 MiB at random, and 3.4 to 4.2 of 8 MiB with
    /// lines between them.
    pub(crate) fn far_line_cycles(self) -> [f64; 2] {
        match self {
            Self::Zen4 => [2.4, 3.6],
            _ if self.is_zen() => [4.0; 2],
            _ => [0.0; 2],
        }
    }

    /// Returns the cycles between lines that arrive in one set of the nearest cache, if known: measured
    /// on a Zen 4, 9.3 to 9.6 for loads of 64 and 512 such lines.
    pub(crate) fn set_line_cycles(self) -> f64 {
        if self == Self::Zen4 { 9.4 } else { 0.0 }
    }
}
