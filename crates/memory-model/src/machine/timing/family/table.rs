//! Published timing of families of cores, and the units that classes share.

use super::Family;
use crate::machine::timing::{Class, Takes};

/// Groups of classes that share execution units, with the units' throughput: a number of
/// instructions in a number of cycles.
pub(crate) type Units = (&'static [&'static [Class]], (u64, u64));

const FP_MULTIPLIES: &[Class] = &[
    Class::FpMultiply,
    Class::FpFused,
    Class::FpCompare,
    Class::FpDivide,
    Class::SingleDivide,
    Class::FpRoot,
    Class::SingleRoot,
];
const FP_ADDS: &[Class] = &[Class::FpAdd, Class::FpConvert];
/// Classes on the multipliers of Intel's cores, but not on those of Zen.
const CONVERSIONS: &[Class] = &[Class::FpConvert, Class::VectorMultiply];
const SHUFFLES: &[Class] = &[Class::Shuffle, Class::ByteShuffle, Class::Lanes, Class::VectorShift];
const OTHER_VECTORS: &[Class] = &[
    Class::FpAdd,
    Class::VectorInteger,
    Class::Shuffle,
    Class::ByteShuffle,
    Class::Lanes,
    Class::VectorShift,
];
const INTEGERS: &[Class] = &[
    Class::Integer,
    Class::Scaled,
    Class::ThreeParts,
    Class::ScaledParts,
    Class::Shift,
    Class::Select,
    Class::TwoFlags,
    Class::BitCount,
    Class::TrailingZeros,
    Class::BitScan,
    Class::Multiply,
    Class::WideMultiply,
];
const PRODUCTS: &[Class] = &[Class::Multiply, Class::WideMultiply];
/// Integer classes on any of the four units of Zen.
const ANYWHERE: &[Class] = &[
    Class::Integer,
    Class::Constant,
    Class::Scaled,
    Class::ThreeParts,
    Class::ScaledParts,
    Class::BitCount,
];
/// Integer classes on any of the four units of Zen 1 and Zen 2.
const ANYWHERE_EARLY: &[Class] =
    &[Class::Integer, Class::Constant, Class::Shift, Class::Select, Class::BitCount];
const ADDRESSES: &[Class] = &[Class::Scaled, Class::ThreeParts, Class::ScaledParts];
/// Classes on the multipliers of Zen 1 and Zen 2, and on their adders.
const EARLY_MULTIPLIES: &[Class] = &[Class::FpMultiply, Class::FpFused, Class::FpCompare];
const EARLY_ADDS: &[Class] = &[
    Class::FpAdd,
    Class::FpConvert,
    Class::FpDivide,
    Class::SingleDivide,
    Class::FpRoot,
    Class::SingleRoot,
];
const SELECTS: &[Class] = &[Class::Select, Class::TwoFlags];
const SHIFTERS: &[Class] = &[Class::Shift, Class::TrailingZeros, Class::BitScan];
const SHIFTS: &[Class] = &[Class::Shift];
/// Classes on the units of Intel's cores that also execute branches.
const BRANCHERS: &[Class] = &[Class::Shift, Class::Select, Class::TwoFlags, Class::Branch];
const ACCESSES: &[Class] = &[Class::Load, Class::Store];

const MULTIPLIERS: &[&[Class]] = &[FP_MULTIPLIES, CONVERSIONS];
const VECTORS: &[&[Class]] = &[FP_MULTIPLIES, CONVERSIONS, OTHER_VECTORS];
/// Groups that run on any arithmetic unit of Intel's cores.
const COMPUTING: &[&[Class]] =
    &[INTEGERS, &[Class::Branch], FP_MULTIPLIES, CONVERSIONS, OTHER_VECTORS];

/// Returns the units of Zen 1 and Zen 2, which differ in the number of accesses begun per cycle.
///
/// Each of the four units for integers has its own scheduler, and instructions are assigned before it is
/// known when they will run: independent ones begin at the full rate, but 3.1 to 3.2 a cycle in loops in
/// which they wait for one another (measured on a Zen 1).
const fn early(accesses: (u64, u64)) -> [Units; 7] {
    [
        (&[INTEGERS, &[Class::Constant, Class::Branch]], (16, 5)),
        (&[ADDRESSES], (2, 1)),
        (&[EARLY_MULTIPLIES], (2, 1)),
        (&[EARLY_ADDS], (2, 1)),
        (&[SHUFFLES], (2, 1)),
        (VECTORS, (4, 1)),
        (&[ACCESSES], accesses),
    ]
}

/// Width; integer, shift, multiply, divide; FP add, multiply, fused, compare, convert; FP divide
/// and root in double and in single precision; vector, vector multiply, shuffle; cycles between
/// loads, and between stores.
type Table = (u32, [(f64, f64); 4], [(f64, f64); 5], [(f64, f64); 4], [(f64, f64); 3], (f64, f64));

const ZEN3: Table = (
    6,
    // Divisions take 9 to 15 cycles, and one begins every 7 to 9.
    [(1.0, 0.25), (1.0, 0.5), (3.0, 1.0), (12.0, 8.0)],
    [(3.0, 0.5), (3.0, 0.5), (4.0, 0.5), (1.0, 0.5), (3.0, 0.5)],
    [(13.0, 4.5), (20.0, 8.5), (10.5, 3.5), (14.5, 5.0)],
    [(1.0, 0.25), (3.0, 0.5), (1.0, 0.5)],
    (1.0 / 3.0, 0.5),
);
/// Measured: divisions take 9 to 15 cycles for quotients of 4 to 63 bits.
const ZEN4: Table = (
    6,
    [(1.0, 0.25), (1.0, 0.5), (3.0, 1.0), (12.0, 7.0)],
    [(3.0, 0.5), (3.0, 0.5), (4.0, 0.5), (2.0, 0.5), (3.0, 0.5)],
    [(13.0, 5.0), (21.0, 8.4), (11.0, 3.0), (15.0, 5.0)],
    [(1.0, 0.25), (3.0, 0.5), (1.0, 1.0 / 3.0)],
    (1.0 / 3.0, 0.5),
);

impl Family {
    /// Returns the table of a family.
    ///
    /// Latencies and reciprocal throughputs are those of 64-bit and scalar double-precision forms: of
    /// Intel and AMD from A. Abel and J. Reineke, "uops.info: Characterizing Latency, Throughput, and
    /// Port Usage of Instructions on Intel Microarchitectures" (ASPLOS 2019, uops.info/table.html),
    /// A. Fog, "Instruction tables" (agner.org/optimize), and LLVM's models of its schedulers
    /// (llvm/lib/Target/X86: the forms used here were looked up in X86SchedAlderlakeP.td,
    /// X86ScheduleZnver1.td to X86ScheduleZnver4.td), those of Zen checked in loops on a Zen 1 and a Zen 3
    /// (Zen 2 differs from Zen 1 in products and conversions, by LLVM's models); of Arm from "Arm Neoverse N1 Software Optimization Guide" (chapter 3). Where a form's
    /// figures are a range, as those of divisions are, it is the middle. A load's latency is its
    /// cache's.
    fn table(self) -> Table {
        let (third, quarter, fifth) = (1.0 / 3.0, 0.25, 0.2);
        match self {
            Self::Skylake => (
                4,
                [(1.0, quarter), (1.0, 0.5), (3.0, 1.0), (41.0, 24.0)],
                [(4.0, 0.5), (4.0, 0.5), (4.0, 0.5), (4.0, 0.5), (5.5, 1.0)],
                [(13.5, 4.0), (17.0, 6.0), (11.0, 3.0), (12.0, 3.0)],
                [(1.0, third), (5.0, 0.5), (1.0, 1.0)],
                (0.5, 1.0),
            ),
            Self::SunnyCove => (
                5,
                [(1.0, quarter), (1.0, 0.5), (3.0, 1.0), (15.0, 10.0)],
                [(4.0, 0.5), (4.0, 0.5), (4.0, 0.5), (4.0, 0.5), (5.5, 1.0)],
                [(13.5, 4.0), (18.0, 6.0), (11.0, 3.0), (12.0, 3.0)],
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
                    [(14.0, 4.0), (18.0, 6.0), (11.0, 3.0), (12.0, 3.0)],
                    [(1.0, third), (5.0, 0.5), (1.0, 0.5)],
                    (third, 0.5),
                )
            }
            Self::Zen1 | Self::Zen2 => {
                let [multiply, convert] = if self == Self::Zen1 { [4.0; 2] } else { [3.0; 2] };
                (
                    5,
                    // Measured: 12 cycles and one for each two bits of the quotient, one at a time; these
                    // are for 24 bits, and those of narrow ones for 16.
                    [(1.0, quarter), (1.0, quarter), (3.0, 1.0), (24.0, 24.0)],
                    [(3.0, 0.5), (multiply, 0.5), (5.0, 0.5), (1.0, 0.5), (convert, 1.0)],
                    [(13.0, 4.5), (20.0, 8.5), (10.5, 3.5), (14.0, 5.0)],
                    [(1.0, third), (3.0, 1.0), (1.0, 0.5)],
                    (0.5, 1.0),
                )
            }
            Self::Zen3 => ZEN3,
            Self::Zen4 => ZEN4,
            Self::NeoverseN1 => (
                4,
                [(1.0, third), (1.0, third), (2.0, 1.0), (12.0, 12.0)],
                [(2.0, 0.5), (3.0, 0.5), (4.0, 0.5), (2.0, 0.5), (3.0, 1.0)],
                [(11.0, 7.0), (12.0, 8.0), (8.5, 3.5), (8.5, 3.5)],
                [(2.0, 0.5), (4.0, 1.0), (2.0, 0.5)],
                (0.5, 0.5),
            ),
        }
    }

    /// Returns the maximum number of instructions started per cycle.
    pub(super) fn width(self) -> u32 {
        self.table().0
    }

    pub(crate) fn takes(self, class: Class) -> Takes {
        let (_, [integer, shift, multiply, divide], floats, slow, vectors, (load, store)) =
            self.table();
        let [fp_add, fp_multiply, fp_fused, fp_compare, fp_convert] = floats;
        let [fp_divide, fp_root, single_divide, single_root] = slow;
        let [vector_integer, vector_multiply, shuffle] = vectors;
        Takes::from(match class {
            Class::Move => (0.0, 0.0),
            Class::Integer => integer,
            Class::Constant | Class::Scaled | Class::ThreeParts | Class::ScaledParts => {
                self.address_takes(class, integer)
            }
            Class::Shift | Class::Select => shift,
            // Intel splits them into two micro-operations, each of which waits for flags.
            // Measured on a Zen 1.
            Class::TwoFlags if self.is_early_zen() => (1.0, 1.0),
            Class::TwoFlags if self.is_zen() => shift,
            Class::TwoFlags => (2.0, 0.5),
            Class::BitCount if self.is_zen() => integer,
            // Measured.
            Class::TrailingZeros | Class::BitScan if self == Self::Zen4 => integer,
            // Measured on a Zen 3; BSF takes a cycle less.
            Class::TrailingZeros if self.is_zen() => (2.0, 0.5),
            Class::BitScan if self.is_zen() => (4.0, 4.0),
            Class::BitCount | Class::TrailingZeros | Class::BitScan | Class::Multiply => multiply,
            // The upper half is a cycle later than the lower one: measured on a Zen 4; uops.info gives the
            // same for others.
            Class::WideMultiply => (multiply.0 + 1.0, multiply.1),
            Class::Divide => divide,
            // 64 bits were measured on an Emerald Rapids; uops.info gives 26 and 6 for 32 bits on Skylake.
            Class::NarrowDivide if self.is_golden() => (divide.0, 6.0),
            Class::NarrowDivide if self == Self::Skylake => (26.0, 6.0),
            Class::NarrowDivide if self.is_early_zen() => (20.0, 20.0),
            // Measured on a Zen 3: 9 to 12.
            Class::NarrowDivide if self.is_zen() => (10.5, 6.0),
            Class::NarrowDivide => divide,
            Class::FpAdd => fp_add,
            Class::FpMultiply => fp_multiply,
            Class::FpFused => fp_fused,
            Class::FpCompare => fp_compare,
            Class::FpConvert => fp_convert,
            Class::FpDivide => fp_divide,
            Class::SingleDivide => single_divide,
            Class::FpRoot => fp_root,
            Class::SingleRoot => single_root,
            Class::VectorInteger => vector_integer,
            Class::VectorMultiply => vector_multiply,
            Class::VectorShift if self == Self::NeoverseN1 => (2.0, 1.0),
            Class::VectorShift if self.is_early_zen() => (1.0, 1.0),
            Class::VectorShift => (1.0, 0.5),
            Class::Shuffle => shuffle,
            // Measured: PSHUFB, PACKUSWB, PALIGNR, PSLLDQ.
            Class::ByteShuffle if self == Self::Zen4 => (2.0, 0.5),
            Class::ByteShuffle => shuffle,
            Class::Gather => self.gather(),
            // Measured: VEXTRACTI128 takes three cycles, VPERMQ four.
            Class::Lanes if self == Self::Zen4 => (3.5, 0.5),
            Class::Lanes => (3.0, 1.0),
            Class::ToVector | Class::FromVector => (self.crossing(class), 1.0),
            Class::Load => (0.0, load),
            // AMD's guide for family 19h, 2.12 and 2.11: two loads and one store of vectors a cycle.
            Class::VectorLoad if self.is_zen() => (0.0, 0.5),
            Class::VectorLoad => (0.0, load),
            Class::VectorStore if self.is_zen() => (0.0, 1.0),
            Class::Store | Class::VectorStore => (0.0, store),
            Class::Branch => (1.0, 0.5),
            Class::Other => (1.0, 1.0),
        })
    }

    /// Returns the timing of additions of constants and of LEA, given that of other arithmetic.
    fn address_takes(self, class: Class, integer: (f64, f64)) -> (f64, f64) {
        match class {
            // M. A. Ertl, "Zero-cycle constant adds" (complang.tuwien.ac.at/anton/additions): up to
            // four per cycle on Golden Cove.
            Class::Constant if self.is_golden() => (0.0, 0.25),
            Class::Scaled | Class::ScaledParts if self.is_golden() => (2.0, integer.1),
            // uops.info; measured on a Zen 1.
            Class::Scaled if self.is_early_zen() => (2.0, 0.5),
            // The same; measured on a Zen 3, where a scaled register alone costs nothing.
            Class::ThreeParts | Class::ScaledParts if self.is_zen() => (2.0, 0.5),
            Class::ThreeParts | Class::ScaledParts if self == Self::Skylake => (3.0, 1.0),
            _ => integer,
        }
    }

    /// Returns the timing of a gather, the middle of those of four and eight elements: measured on a Zen 4
    /// (5 and 8 cycles; 16 behind its addresses if a load takes 4), for others from uops.info.
    fn gather(self) -> (f64, f64) {
        match self {
            Self::Zen1 | Self::Zen2 => (16.0, 14.0),
            Self::Zen3 | Self::Zen4 => (16.0, 6.5),
            _ => (16.0, 4.5),
        }
    }

    /// Returns the cycles of a move between a general register and a vector: measured on a Zen 3 and a
    /// Zen 4 (there both ways together, and loads of vectors that end in a general register), in LLVM's
    /// models of Intel's cores, and in Arm's guide.
    fn crossing(self, class: Class) -> f64 {
        match (self, class) {
            (Self::Zen4, Class::FromVector) => 2.0,
            (Self::Zen4, _) => 4.0,
            (Self::Skylake | Self::SunnyCove, _) | (Self::NeoverseN1, Class::FromVector) => 2.0,
            _ => 3.0,
        }
    }

    /// Returns classes by the units that execute them, for cores on which each of four units has a
    /// separate scheduler: those that only one unit executes, those that this unit or a second one
    /// executes, and those that all four execute. The first unit gets a quarter of the last,
    /// because instructions are assigned to schedulers before it is known when they will run (AMD's
    /// guide for family 19h, 2.10). Measured on a Zen 3: two products and six LEA take 3.4 cycles,
    /// four moves to vectors and four conditional moves 6.1, counts of bits with shifts and a
    /// product 5.1; but products and shifts in a chain less.
    /// On a Zen 1, six products and six LEA take 7.
    pub(crate) fn assigned(self) -> &'static [[&'static [Class]; 3]] {
        if self.is_early_zen() {
            &[[PRODUCTS, &[], ANYWHERE_EARLY]]
        } else if self.is_zen() {
            &[[PRODUCTS, SHIFTERS, ANYWHERE], [&[Class::ToVector], SELECTS, ANYWHERE]]
        } else {
            &[]
        }
    }

    /// Returns the units that classes share, from the ports in LLVM's models; those of Skylake and
    /// Sunny Cove are in X86SchedSkylakeServer.td and X86SchedIceLake.td. Zen has three units for
    /// addresses, each with its own scheduler: three, five and six loads took 1.3, 2.2 and 2.4 cycles
    /// on a Zen 3, and 1, 1.67 and 2 on a Zen 4. Zen 1 has two of these: two loads and a store took 1.5
    /// cycles.
    pub(crate) fn units(self) -> &'static [Units] {
        match self {
            Self::Skylake | Self::SunnyCove => &[
                (&[BRANCHERS], (2, 1)),
                (MULTIPLIERS, (2, 1)),
                (VECTORS, (3, 1)),
                (COMPUTING, (4, 1)),
            ],
            Self::GoldenCove | Self::RedwoodCove => &[
                (&[BRANCHERS], (2, 1)),
                (MULTIPLIERS, (2, 1)),
                (VECTORS, (3, 1)),
                (COMPUTING, (5, 1)),
            ],
            Self::Zen1 => const { &early((2, 1)) },
            Self::Zen2 => const { &early((3, 1)) },
            Self::Zen3 => &[
                (&[SHIFTERS], (2, 1)),
                // The second unit for branches shares a scheduler with one of them.
                (&[INTEGERS, &[Class::Constant, Class::Branch]], (4, 1)),
                (&[FP_MULTIPLIES], (2, 1)),
                (&[FP_ADDS], (2, 1)),
                (&[SHUFFLES], (2, 1)),
                (VECTORS, (4, 1)),
                (&[ACCESSES], (5, 2)),
            ],
            Self::Zen4 => &[
                (&[SHIFTS], (2, 1)),
                (&[INTEGERS, &[Class::Constant]], (4, 1)),
                (&[FP_MULTIPLIES], (2, 1)),
                (&[FP_ADDS], (2, 1)),
                (VECTORS, (4, 1)),
                (&[ACCESSES], (3, 1)),
            ],
            Self::NeoverseN1 => &[(&[INTEGERS], (3, 1)), (VECTORS, (2, 1)), (&[ACCESSES], (2, 1))],
        }
    }
}
