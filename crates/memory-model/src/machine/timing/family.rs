//! Families of cores, with their published figures.

use serde::{Deserialize, Serialize};

use super::{Class, Takes, Timing};

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
    /// AMD's Zen 3.
    Zen3,
    /// AMD's Zen 4 and later ones.
    Zen4,
    /// Arm's Neoverse N1.
    #[serde(rename = "neoverse-n1")]
    NeoverseN1,
}

/// Groups of classes that share units, and the number of units.
pub(crate) type Units = (&'static [&'static [Class]], u32);

const FP_MULTIPLIES: &[Class] =
    &[Class::FpMultiply, Class::FpFused, Class::FpCompare, Class::FpDivide, Class::FpRoot];
/// Classes on the multipliers of Intel's cores, but not on those of Zen.
const CONVERSIONS: &[Class] = &[Class::FpConvert, Class::VectorMultiply];
const OTHER_VECTORS: &[Class] = &[Class::FpAdd, Class::VectorInteger, Class::Shuffle];
const INTEGERS: &[Class] = &[
    Class::Integer,
    Class::Scaled,
    Class::Shift,
    Class::TwoFlags,
    Class::BitCount,
    Class::Multiply,
];
/// Classes on the units of Intel's cores that also execute branches.
const BRANCHERS: &[Class] = &[Class::Shift, Class::TwoFlags, Class::Branch];
const ACCESSES: &[Class] = &[Class::Load, Class::Store];

const MULTIPLIERS: &[&[Class]] = &[FP_MULTIPLIES, CONVERSIONS];
const VECTORS: &[&[Class]] = &[FP_MULTIPLIES, CONVERSIONS, OTHER_VECTORS];
/// Groups that run on any arithmetic unit of Intel's cores.
const COMPUTING: &[&[Class]] =
    &[INTEGERS, &[Class::Branch], FP_MULTIPLIES, CONVERSIONS, OTHER_VECTORS];

/// Width; integer, shift, multiply, divide; FP add, multiply, both, compare, convert; FP divide, root;
/// vector, vector multiply, shuffle; between loads, and stores.
type Table = (u32, [(f64, f64); 4], [(f64, f64); 5], [(f64, f64); 2], [(f64, f64); 3], (f64, f64));

impl Family {
    /// Returns the family of a vendor's cores, by the vendor's name in CPUID, the size of the L2,
    /// which hypervisors show even if they hide the model, and support for code prefetches
    /// (PREFETCHIT0, new in Granite Rapids); `None` for Arm.
    pub fn of(vendor: &str, l2_bytes: u64, prefetches_code: bool) -> Option<Self> {
        let kib = l2_bytes >> 10;
        match vendor {
            "GenuineIntel" if kib >= 2048 && prefetches_code => Some(Self::RedwoodCove),
            "GenuineIntel" if kib >= 2048 => Some(Self::GoldenCove),
            "GenuineIntel" if kib == 1280 || kib == 512 => Some(Self::SunnyCove),
            "GenuineIntel" if kib == 1024 || kib == 256 => Some(Self::Skylake),
            "AuthenticAMD" if kib >= 1024 => Some(Self::Zen4),
            "AuthenticAMD" if kib == 512 => Some(Self::Zen3),
            _ => None,
        }
    }

    /// Returns the name used in machine files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Skylake => "skylake",
            Self::SunnyCove => "sunny-cove",
            Self::GoldenCove => "golden-cove",
            Self::RedwoodCove => "redwood-cove",
            Self::Zen3 => "zen3",
            Self::Zen4 => "zen4",
            Self::NeoverseN1 => "neoverse-n1",
        }
    }

    /// Returns the table of a family.
    ///
    /// Latencies and reciprocal throughputs are those of 64-bit and scalar double-precision forms: of
    /// Intel and AMD from A. Abel and J. Reineke, "uops.info: Characterizing Latency, Throughput, and
    /// Port Usage of Instructions on Intel Microarchitectures" (ASPLOS 2019, uops.info/table.html),
    /// A. Fog, "Instruction tables" (agner.org/optimize), and LLVM's models of its schedulers
    /// (llvm/lib/Target/X86: the forms used here were looked up in X86SchedAlderlakeP.td and
    /// X86ScheduleZnver4.td); of Arm from "Arm Neoverse N1 Software Optimization Guide" (chapter 3). Where a form's
    /// figures are a range, as those of divisions are, it is the middle. A load's latency is its
    /// cache's.
    fn table(self) -> Table {
        let (third, quarter, fifth) = (1.0 / 3.0, 0.25, 0.2);
        match self {
            Self::Skylake => (
                4,
                [(1.0, quarter), (1.0, 0.5), (3.0, 1.0), (41.0, 24.0)],
                [(4.0, 0.5), (4.0, 0.5), (4.0, 0.5), (4.0, 0.5), (5.5, 1.0)],
                [(13.5, 4.0), (17.0, 6.0)],
                [(1.0, third), (5.0, 0.5), (1.0, 1.0)],
                (0.5, 1.0),
            ),
            Self::SunnyCove => (
                5,
                [(1.0, quarter), (1.0, 0.5), (3.0, 1.0), (15.0, 10.0)],
                [(4.0, 0.5), (4.0, 0.5), (4.0, 0.5), (4.0, 0.5), (5.5, 1.0)],
                [(13.5, 4.0), (18.0, 6.0)],
                [(1.0, third), (5.0, 0.5), (1.0, 0.5)],
                (0.5, 0.5),
            ),
            Self::GoldenCove | Self::RedwoodCove => {
                // Measured: a chain of MULSD on a Granite Rapids.
                let multiply = if self == Self::RedwoodCove { 3.0 } else { 4.0 };
                (
                    6,
                    [(1.0, fifth), (1.0, 0.5), (3.0, 1.0), (14.0, 10.0)],
                    // Two cycles after another addition; see `first_add_cycles`.
                    [(2.0, 0.5), (multiply, 0.5), (4.0, 0.5), (4.0, 0.5), (5.5, 1.0)],
                    [(14.0, 4.0), (18.0, 6.0)],
                    [(1.0, third), (5.0, 0.5), (1.0, 0.5)],
                    (third, 0.5),
                )
            }
            Self::Zen3 | Self::Zen4 => (
                6,
                [(1.0, quarter), (1.0, 0.5), (3.0, 1.0), (14.0, 9.0)],
                [(3.0, 0.5), (3.0, 0.5), (4.0, 0.5), (1.0, 0.5), (5.0, 1.0)],
                [(13.0, 5.0), (21.0, 9.0)],
                [(1.0, quarter), (3.0, 0.5), (1.0, 0.5)],
                (third, 0.5),
            ),
            Self::NeoverseN1 => (
                4,
                [(1.0, third), (1.0, third), (2.0, 1.0), (12.0, 12.0)],
                [(2.0, 0.5), (3.0, 0.5), (4.0, 0.5), (2.0, 0.5), (3.0, 1.0)],
                [(11.0, 7.0), (12.0, 8.0)],
                [(2.0, 0.5), (4.0, 1.0), (2.0, 0.5)],
                (0.5, 0.5),
            ),
        }
    }

    /// Returns the timing of a class.
    pub(super) fn takes(self, class: Class) -> Takes {
        let (_, [integer, shift, multiply, divide], floats, slow, vectors, (load, store)) =
            self.table();
        let [fp_add, fp_multiply, fp_fused, fp_compare, fp_convert] = floats;
        let [vector_integer, vector_multiply, shuffle] = vectors;
        let is_golden = matches!(self, Self::GoldenCove | Self::RedwoodCove);
        let is_zen = matches!(self, Self::Zen3 | Self::Zen4);
        Takes::from(match class {
            Class::Move => (0.0, 0.0),
            Class::Integer => integer,
            // M. A. Ertl, "Zero-cycle constant adds" (complang.tuwien.ac.at/anton/additions): up to
            // four per cycle on Golden Cove.
            Class::Constant if is_golden => (0.0, 0.25),
            Class::Constant => integer,
            // uops.info, and LLVM's "slow LEA" for Zen.
            Class::Scaled if is_golden || is_zen => (2.0, integer.1),
            Class::Scaled => integer,
            Class::Shift => shift,
            // Intel splits them into two micro-operations, each of which waits for flags.
            Class::TwoFlags if is_zen => shift,
            Class::TwoFlags => (2.0, 0.5),
            Class::BitCount if is_zen => integer,
            Class::BitCount | Class::Multiply => multiply,
            Class::Divide => divide,
            // 64 bits were measured on an Emerald Rapids; uops.info gives 26 and 6 for 32 bits on Skylake.
            Class::NarrowDivide if is_golden => (divide.0, 6.0),
            Class::NarrowDivide if self == Self::Skylake => (26.0, 6.0),
            Class::NarrowDivide => divide,
            Class::FpAdd => fp_add,
            Class::FpMultiply => fp_multiply,
            Class::FpFused => fp_fused,
            Class::FpCompare => fp_compare,
            Class::FpConvert => fp_convert,
            Class::FpDivide => slow[0],
            Class::FpRoot => slow[1],
            Class::VectorInteger => vector_integer,
            Class::VectorMultiply => vector_multiply,
            Class::Shuffle => shuffle,
            Class::Load => (0.0, load),
            Class::Store => (0.0, store),
            Class::Branch => (1.0, 0.5),
            Class::Other => (1.0, 1.0),
        })
    }

    /// Returns the family's timing at this length of a cycle.
    pub fn timing(self, cycle_ns: f64) -> Timing {
        let of = |class| self.takes(class);
        Timing {
            family: self,
            cycle_ns,
            width: self.table().0,
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

    /// Returns the units that classes share, from the ports in LLVM's models; those of Skylake and
    /// Sunny Cove are in X86SchedSkylakeServer.td and X86SchedIceLake.td.
    pub(crate) fn units(self) -> &'static [Units] {
        match self {
            Self::Skylake | Self::SunnyCove => {
                &[(&[BRANCHERS], 2), (MULTIPLIERS, 2), (VECTORS, 3), (COMPUTING, 4)]
            }
            Self::GoldenCove | Self::RedwoodCove => {
                &[(&[BRANCHERS], 2), (MULTIPLIERS, 2), (VECTORS, 3), (COMPUTING, 5)]
            }
            Self::Zen3 | Self::Zen4 => {
                &[(&[INTEGERS], 4), (&[FP_MULTIPLIES], 2), (VECTORS, 4), (&[ACCESSES], 3)]
            }
            Self::NeoverseN1 => &[(&[INTEGERS], 3), (VECTORS, 2), (&[ACCESSES], 2)],
        }
    }

    /// Returns true if a store forwards its value to a load at renaming, without the latency of a
    /// cache, when both addresses are a register plus a constant. Golden Cove does so for general
    /// registers (measured on a Granite Rapids: such a pair adds nothing to a chain).
    pub(crate) fn renames_memory(self) -> bool {
        matches!(self, Self::GoldenCove | Self::RedwoodCove)
    }

    /// Returns the extra cycles of a floating-point addition without an operand from another one
    /// (LLVM's X86SchedAlderlakeP.td: 3 cycles in all; measured on an Emerald Rapids in chains of
    /// additions and products).
    pub(crate) fn first_add_cycles(self) -> f64 {
        if matches!(self, Self::GoldenCove | Self::RedwoodCove) { 1.0 } else { 0.0 }
    }

    /// Returns the size of the pieces of code that the core gets from its cache of decoded
    /// instructions, one each cycle, if it matters: measured on an Emerald Rapids, where a loop of
    /// four instructions takes two cycles if it lies in two such pieces.
    pub fn window_bytes(self) -> Option<u64> {
        matches!(self, Self::GoldenCove | Self::RedwoodCove).then_some(64)
    }

    /// Returns the entries of the schedulers of arithmetic and of loads, if known (C. Lam, "Popping the
    /// Hood on Golden Cove", chipsandcheese.com, 2021, by measurement).
    pub(crate) fn schedulers(self) -> Option<[u64; 2]> {
        matches!(self, Self::GoldenCove | Self::RedwoodCove).then_some([97, 70])
    }

    /// Returns true if a read-modify-write of memory takes two slots of the width.
    pub(crate) fn splits_changes(self) -> bool {
        !matches!(self, Self::Zen3 | Self::Zen4)
    }

    /// Returns the extra cycles of a vector load over a load of a general register (`LoadLatency`
    /// in LLVM's models, and uops.info).
    pub(crate) fn vector_load_cycles(self) -> f64 {
        if matches!(self, Self::Zen3 | Self::Zen4) { 3.0 } else { 1.0 }
    }

    /// Returns the cycles between lines from the L2, for lines that are read and lines that are
    /// written: Intel's Optimization Reference Manual gives 48 bytes per cycle sustained (table
    /// "Cache Parameters"), AMD's guide for family 19h and Arm's for Neoverse N1 32. A written line
    /// also goes back to the L2: 4 cycles in all, measured on an Emerald Rapids; for other families,
    /// both ways are assumed to take the same time.
    pub(crate) fn line_cycles(self) -> [f64; 2] {
        match self {
            Self::GoldenCove | Self::RedwoodCove => [64.0 / 48.0, 4.0],
            Self::Skylake | Self::SunnyCove => [64.0 / 48.0, 2.0 * 64.0 / 48.0],
            Self::Zen3 | Self::Zen4 | Self::NeoverseN1 => [2.0, 4.0],
        }
    }

    /// Returns the number of concurrent page walks: Intel's Optimization Reference Manual gives two
    /// for Skylake and Sunny Cove and four for Golden Cove, AMD's guide for family 19h six.
    pub fn walkers(self) -> u32 {
        match self {
            Self::Skylake | Self::SunnyCove => 2,
            Self::GoldenCove | Self::RedwoodCove | Self::NeoverseN1 => 4,
            Self::Zen3 | Self::Zen4 => 6,
        }
    }

    /// Returns the number of fill buffers of the nearest cache: Intel's Optimization Reference
    /// Manual, 2.3 to 2.6, AMD's "Software Optimization Guide" for family 19h, 2.12, and Arm's
    /// "Neoverse N1 Technical Reference Manual".
    pub fn fill_buffers(self) -> u32 {
        match self {
            Self::Skylake | Self::SunnyCove => 12,
            Self::GoldenCove | Self::RedwoodCove => 16,
            Self::Zen3 | Self::Zen4 => 24,
            Self::NeoverseN1 => 20,
        }
    }
}
