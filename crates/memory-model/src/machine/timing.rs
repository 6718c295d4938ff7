//! What instructions of a core take, by class.

use serde::{Deserialize, Serialize};

/// Kinds of instructions that take different times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Class {
    /// A move between registers, which renaming does, and what does nothing.
    Move,
    /// Integer arithmetic and logic, shifts, conditional moves.
    #[default]
    Integer,
    /// Integer multiplication.
    Multiply,
    /// Integer division.
    Divide,
    /// Addition and comparison of floating-point numbers, and their conversion.
    FpAdd,
    /// Their multiplication, with or without an addition.
    FpMultiply,
    /// Their division and square root.
    FpDivide,
    /// Integer arithmetic and logic of vectors.
    VectorInteger,
    /// Elements of vectors moved among themselves, or to and from general registers.
    Shuffle,
    /// An access that reads memory, beyond what the nearest cache takes.
    Load,
    /// An access that writes memory.
    Store,
    /// A branch.
    Branch,
    /// Anything else.
    Other,
}

/// Number of classes.
pub const CLASSES: usize = 13;

impl Class {
    /// All of them, in order.
    pub const ALL: [Self; CLASSES] = [
        Self::Move,
        Self::Integer,
        Self::Multiply,
        Self::Divide,
        Self::FpAdd,
        Self::FpMultiply,
        Self::FpDivide,
        Self::VectorInteger,
        Self::Shuffle,
        Self::Load,
        Self::Store,
        Self::Branch,
        Self::Other,
    ];
}

/// What an instruction of a class takes, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, f64)", into = "(f64, f64)")]
pub struct Takes {
    /// From its operands to its result.
    pub latency: f64,
    /// From one to the next, if they do not depend on each other.
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

/// A family of cores with a published table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Intel's Skylake, Cascade Lake, Cooper Lake.
    Skylake,
    /// Intel's Sunny Cove and Cypress Cove: Ice Lake, Rocket Lake.
    SunnyCove,
    /// Intel's Golden Cove and later ones: Sapphire, Emerald and Granite Rapids.
    GoldenCove,
    /// AMD's Zen 3.
    Zen3,
    /// AMD's Zen 4 and later ones.
    Zen4,
    /// Arm's Neoverse N1.
    #[serde(rename = "neoverse-n1")]
    NeoverseN1,
}

/// What instructions take: cycles by class, each as latency and reciprocal throughput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// The family that the table is of.
    pub family: Family,
    /// A cycle, in ns, 0.001 to 1000.
    pub cycle_ns: f64,
    /// Instructions that it can begin in a cycle, 1 to 64.
    pub width: u32,
    /// By class.
    pub integer: Takes,
    /// As above.
    pub multiply: Takes,
    /// As above.
    pub divide: Takes,
    /// As above.
    pub fp_add: Takes,
    /// As above.
    pub fp_multiply: Takes,
    /// As above.
    pub fp_divide: Takes,
    /// As above.
    pub vector_integer: Takes,
    /// As above.
    pub shuffle: Takes,
    /// As above.
    pub load: Takes,
    /// As above.
    pub store: Takes,
    /// As above.
    pub branch: Takes,
    /// As above.
    pub other: Takes,
}

/// Width, and cycles of each class in the order of [`Class`], from integers on.
type Table = (u32, [(f64, f64); CLASSES - 1]);

impl Family {
    /// The family of a vendor's cores (as CPUID names it) with an L2 of so many bytes, which hypervisors show
    /// where they hide the model; of Arm's, none.
    pub fn of(vendor: &str, l2_bytes: u64) -> Option<Self> {
        let kib = l2_bytes >> 10;
        match vendor {
            "GenuineIntel" if kib >= 2048 => Some(Self::GoldenCove),
            "GenuineIntel" if kib == 1280 || kib == 512 => Some(Self::SunnyCove),
            "GenuineIntel" if kib == 1024 || kib == 256 => Some(Self::Skylake),
            "AuthenticAMD" if kib >= 1024 => Some(Self::Zen4),
            "AuthenticAMD" if kib == 512 => Some(Self::Zen3),
            _ => None,
        }
    }

    /// Its name in machine files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Skylake => "skylake",
            Self::SunnyCove => "sunny-cove",
            Self::GoldenCove => "golden-cove",
            Self::Zen3 => "zen3",
            Self::Zen4 => "zen4",
            Self::NeoverseN1 => "neoverse-n1",
        }
    }

    /// The table of a family.
    ///
    /// Latencies and reciprocal throughputs are those of 64-bit and scalar double-precision forms: of
    /// Intel and AMD from A. Abel and J. Reineke, "uops.info: Characterizing Latency, Throughput, and
    /// Port Usage of Instructions on Intel Microarchitectures" (ASPLOS 2019, uops.info/table.html), and
    /// A. Fog, "Instruction tables" (agner.org/optimize), of Arm from "Arm Neoverse N1 Software
    /// Optimization Guide" (chapter 3). Where a form's figures are a range, as those of divisions are, it
    /// is the middle. A load's latency is its cache's.
    fn table(self) -> Table {
        let (third, quarter, fifth) = (1.0 / 3.0, 0.25, 0.2);
        // Integer, multiply, divide; FP add, multiply, divide; vectors, shuffle; load, store.
        let (width, [a, b, c], [d, e, f], [g, h], [load, store]) = match self {
            Self::Skylake => (
                4,
                [(1.0, quarter), (3.0, 1.0), (41.0, 24.0)],
                [(4.0, 0.5), (4.0, 0.5), (13.5, 4.0)],
                [(1.0, third), (1.0, 1.0)],
                [0.5, 1.0],
            ),
            Self::SunnyCove => (
                5,
                [(1.0, quarter), (3.0, 1.0), (15.0, 10.0)],
                [(4.0, 0.5), (4.0, 0.5), (13.5, 4.0)],
                [(1.0, third), (1.0, 0.5)],
                [0.5, 0.5],
            ),
            Self::GoldenCove => (
                6,
                [(1.0, fifth), (3.0, 1.0), (14.0, 6.0)],
                // An addition behind another one takes two cycles, else three.
                [(2.0, 0.5), (4.0, 0.5), (14.0, 4.0)],
                [(1.0, third), (1.0, 0.5)],
                [third, 0.5],
            ),
            Self::Zen3 | Self::Zen4 => (
                6,
                [(1.0, quarter), (3.0, 1.0), (12.0, 7.0)],
                [(3.0, 0.5), (3.0, 0.5), (13.0, 5.0)],
                [(1.0, quarter), (1.0, 0.5)],
                [third, 0.5],
            ),
            Self::NeoverseN1 => (
                4,
                [(1.0, third), (2.0, 1.0), (12.0, 12.0)],
                [(2.0, 0.5), (3.0, 0.5), (11.0, 7.0)],
                [(2.0, 0.5), (2.0, 0.5)],
                [0.5, 0.5],
            ),
        };
        let others = [(1.0, 0.5), (1.0, 1.0)];
        (width, [a, b, c, d, e, f, g, h, (0.0, load), (0.0, store), others[0], others[1]])
    }

    /// What instructions of the family take at a cycle of so many ns.
    pub fn timing(self, cycle_ns: f64) -> Timing {
        let (width, table) = self.table();
        let [integer, multiply, divide, fp_add, fp_multiply, fp_divide, vector_integer, ..] =
            table.map(Takes::from);
        let [.., shuffle, load, store, branch, other] = table.map(Takes::from);
        Timing {
            family: self,
            cycle_ns,
            width,
            integer,
            multiply,
            divide,
            fp_add,
            fp_multiply,
            fp_divide,
            vector_integer,
            shuffle,
            load,
            store,
            branch,
            other,
        }
    }
}

impl Timing {
    /// What an instruction of a class takes.
    pub fn of(&self, class: Class) -> Takes {
        match class {
            Class::Move => Takes { latency: 0.0, each: 0.0 },
            Class::Integer => self.integer,
            Class::Multiply => self.multiply,
            Class::Divide => self.divide,
            Class::FpAdd => self.fp_add,
            Class::FpMultiply => self.fp_multiply,
            Class::FpDivide => self.fp_divide,
            Class::VectorInteger => self.vector_integer,
            Class::Shuffle => self.shuffle,
            Class::Load => self.load,
            Class::Store => self.store,
            Class::Branch => self.branch,
            Class::Other => self.other,
        }
    }

    /// All classes by name.
    pub(super) fn all(&self) -> [(&'static str, Takes); CLASSES - 1] {
        [
            ("core integer", self.integer),
            ("core multiply", self.multiply),
            ("core divide", self.divide),
            ("core fp_add", self.fp_add),
            ("core fp_multiply", self.fp_multiply),
            ("core fp_divide", self.fp_divide),
            ("core vector_integer", self.vector_integer),
            ("core shuffle", self.shuffle),
            ("core load", self.load),
            ("core store", self.store),
            ("core branch", self.branch),
            ("core other", self.other),
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
    fn a_family_is_read_as_it_is_named_and_is_known_by_its_vendor_and_l2() {
        let families = [
            (Family::Skylake, "GenuineIntel", 1 << 20),
            (Family::SunnyCove, "GenuineIntel", 1280 << 10),
            (Family::GoldenCove, "GenuineIntel", 2 << 20),
            (Family::Zen3, "AuthenticAMD", 512 << 10),
            (Family::Zen4, "AuthenticAMD", 1 << 20),
        ];
        for (family, vendor, bytes) in families {
            assert_eq!(serde_json::to_value(family).unwrap(), family.name());
            assert_eq!(Family::of(vendor, bytes), Some(family));
        }
        assert_eq!(serde_json::to_value(Family::NeoverseN1).unwrap(), Family::NeoverseN1.name());
        assert_eq!(Family::of("Other", 1 << 20), None);
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
    fn what_no_instruction_takes_is_named() {
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
