//! Finds the processor's unit that takes memory samples, from its description in sysfs
//! (`Documentation/ABI/testing/sysfs-bus-event_source-devices-{events,format}`).

use numalab_record::profile::{Hindrance, SampledEvent, SamplingUnit};
use numalab_topology::CpuSet;

use crate::root::Root;

const UNITS: &str = "sys/bus/event_source/devices";
/// Loads with a lower latency are not sampled, as in `perf mem`, because near caches serve them.
const LEAST_LATENCY_CYCLES: u64 = 30;
/// The inverse of the share of loads or stores that are sampled: a prime, so that no loop stays in
/// step with it.
const LOAD_PERIOD: u64 = 10_007;
const STORE_PERIOD: u64 = 100_003;
/// The inverse of the share of operations that are sampled; the unit accepts multiples of 16.
const OPERATION_PERIOD: u64 = 16 * 16_381;

/// The sampling unit of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryUnit {
    pub kind: SamplingUnit,
    pub events: Vec<MemoryEvent>,
}

/// An event that samples memory accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryEvent {
    /// Name in `perf`: `cpu/mem-loads/`.
    pub name: String,
    /// The `type` of the unit's events.
    pub unit_type: u32,
    /// `config`, `config1` and `config2`.
    pub config: [u64; 3],
    /// The inverse of the share of accesses that are sampled.
    pub period: u64,
    /// Loads with a lower latency are not sampled.
    pub least_latency_cycles: Option<u64>,
    /// Highest precision of the instruction address (`precise_ip`).
    pub precise: u64,
    /// An event that must count first (Intel, from Sapphire Rapids on).
    pub helper: Option<[u64; 3]>,
    /// The cpus that have it; `None` for all.
    pub cpus: Option<CpuSet>,
    /// True if the unit can leave out the kernel's accesses.
    pub may_exclude_kernel: bool,
}

impl MemoryEvent {
    /// Returns the event's description for records.
    pub fn description(&self) -> SampledEvent {
        SampledEvent {
            event: self.name.clone(),
            period: self.period,
            least_latency_cycles: self.least_latency_cycles,
        }
    }
}

/// Finds the unit that takes memory samples, and its events.
///
/// # Errors
/// The reason why there is none, or none that numalab supports.
pub fn memory_unit(root: &Root) -> Result<MemoryUnit, Hindrance> {
    let names = root.names(UNITS);
    let loads: Vec<MemoryEvent> = names.iter().flat_map(|unit| pebs(root, unit)).collect();
    if !loads.is_empty() {
        return Ok(MemoryUnit { kind: SamplingUnit::Pebs, events: loads });
    }
    if let Some(event) = names.iter().find(|unit| *unit == "ibs_op").and_then(|u| ibs(root, u)) {
        return Ok(MemoryUnit { kind: SamplingUnit::Ibs, events: vec![event] });
    }
    if let Some(unit) = names.iter().find(|unit| unit.starts_with("arm_spe")) {
        return Err(Hindrance::UnreadForm { unit: unit.clone() });
    }
    let is_of_cpus = |name: &&String| {
        name.starts_with("cpu") || name.starts_with("armv") || name.starts_with("ibs")
    };
    let units: Vec<String> = names.iter().filter(is_of_cpus).cloned().collect();
    Err(if units.is_empty() { Hindrance::NoPmu } else { Hindrance::NoMemoryEvents { units } })
}

/// Returns `mem-loads` and `mem-stores` of an Intel unit, as far as it has them.
fn pebs(root: &Root, unit: &str) -> Vec<MemoryEvent> {
    let described = Described { root, unit };
    let Some(unit_type) = described.unit_type() else { return Vec::new() };
    let precise = described.value("caps/max_precise").and_then(|value| value.parse().ok());
    let event = |name: &str, period, least: Option<u64>| {
        let mut terms = described.terms(&format!("events/{name}"))?;
        if let Some(cycles) = least {
            // The event's description includes a threshold, which would be placed twice.
            terms.retain(|(term, _)| term != "ldlat");
            terms.push(("ldlat".to_owned(), cycles));
        }
        Some(MemoryEvent {
            name: format!("{unit}/{name}/"),
            unit_type,
            config: described.config(&terms)?,
            period,
            least_latency_cycles: least,
            precise: precise.unwrap_or(2),
            helper: None,
            cpus: described.cpus(),
            may_exclude_kernel: true,
        })
    };
    let least = Some(LEAST_LATENCY_CYCLES).filter(|_| described.has("format/ldlat"));
    let mut loads = event("mem-loads", LOAD_PERIOD, least);
    if let Some(loads) = &mut loads {
        let helper = described.terms("events/mem-loads-aux");
        loads.helper = helper.and_then(|terms| described.config(&terms));
    }
    let stores = event("mem-stores", STORE_PERIOD, None);
    [loads, stores].into_iter().flatten().collect()
}

/// Returns the event of AMD's unit, which tags operations: loads, stores and all others.
fn ibs(root: &Root, unit: &str) -> Option<MemoryEvent> {
    let described = Described { root, unit };
    // Counts operations rather than cycles if possible: with cycles, slow operations are tagged
    // more often.
    let counted = [("cnt_ctl".to_owned(), 1)];
    let config = described.config(&counted).unwrap_or_default();
    Some(MemoryEvent {
        name: format!("{unit}//"),
        unit_type: described.unit_type()?,
        config,
        period: OPERATION_PERIOD,
        least_latency_cycles: None,
        precise: 0,
        helper: None,
        cpus: None,
        may_exclude_kernel: false,
    })
}

struct Described<'a> {
    root: &'a Root,
    unit: &'a str,
}

impl Described<'_> {
    fn value(&self, file: &str) -> Option<String> {
        self.root.value(&format!("{UNITS}/{}/{file}", self.unit)).ok()
    }

    fn has(&self, file: &str) -> bool {
        self.value(file).is_some()
    }

    fn unit_type(&self) -> Option<u32> {
        self.value("type")?.parse().ok()
    }

    /// Returns the cpus that the unit counts on; `None` if the machine has one kind of cpu.
    fn cpus(&self) -> Option<CpuSet> {
        self.value("cpus")?.parse().ok()
    }

    /// Parses `event=0xcd,umask=0x1,ldlat=3`; a term without a value is 1.
    fn terms(&self, file: &str) -> Option<Vec<(String, u64)>> {
        let text = self.value(file)?;
        let term = |term: &str| {
            let (name, value) = term.split_once('=').unwrap_or((term, "1"));
            Some((name.trim().to_owned(), number(value.trim())?))
        };
        text.split(',').map(term).collect()
    }

    /// Places the terms' values into the bits that the unit's format gives.
    fn config(&self, terms: &[(String, u64)]) -> Option<[u64; 3]> {
        let mut config = [0; 3];
        for (name, value) in terms {
            let format = self.value(&format!("format/{name}"))?;
            let (word, ranges) = format.split_once(':')?;
            let word = match word {
                "config" => 0,
                "config1" => 1,
                "config2" => 2,
                _ => return None,
            };
            place(&mut config[word], ranges, *value)?;
        }
        Some(config)
    }
}

/// Places the bits of a value at `0-7,32-35`, lowest first.
fn place(word: &mut u64, ranges: &str, mut value: u64) -> Option<()> {
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        let width = last.checked_sub(first)? + 1;
        if last >= u64::BITS {
            return None;
        }
        let mask = u64::MAX >> (u64::BITS - width);
        *word |= (value & mask) << first;
        // A range of 64 bits leaves nothing to place.
        value = value.checked_shr(width).unwrap_or(0);
    }
    (value == 0).then_some(())
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::write;

    /// Creates a tree with these files of units.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        for (file, text) in files {
            write(&top, &format!("{UNITS}/{file}"), &format!("{text}\n"));
        }
        top
    }

    fn found(files: &[(&str, &str)]) -> Result<MemoryUnit, Hindrance> {
        let top = tree(files);
        memory_unit(&Root::at(top.path()))
    }

    const SKYLAKE: [(&str, &str); 8] = [
        ("cpu/type", "4"),
        ("cpu/caps/max_precise", "3"),
        ("cpu/format/event", "config:0-7"),
        ("cpu/format/umask", "config:8-15"),
        ("cpu/format/ldlat", "config1:0-15"),
        ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
        ("cpu/events/mem-stores", "event=0xd0,umask=0x82"),
        ("software/type", "1"),
    ];

    #[test]
    fn loads_and_stores_of_intel_are_found_with_the_least_latency_in_its_place() {
        let unit = found(&SKYLAKE).unwrap();
        assert_eq!(unit.kind, SamplingUnit::Pebs);
        let [loads, stores] = &unit.events[..] else { panic!("{unit:?}") };
        assert_eq!((loads.unit_type, loads.config), (4, [0x1cd, 30, 0]));
        assert_eq!((&*loads.name, loads.precise), ("cpu/mem-loads/", 3));
        assert_eq!((loads.least_latency_cycles, loads.helper), (Some(30), None));
        assert_eq!((stores.config, stores.least_latency_cycles), ([0x82d0, 0, 0], None));
        let described = loads.description();
        assert_eq!((described.period, described.least_latency_cycles), (10_007, Some(30)));
    }

    #[test]
    fn each_kind_of_core_has_separate_events_and_the_helper_that_loads_need() {
        let mut files: Vec<(String, &str)> = Vec::new();
        for (unit, number, cpus) in [("cpu_core", "4", "0-15"), ("cpu_atom", "10", "16-23")] {
            for (file, text) in &SKYLAKE[2..7] {
                files.push((file.replace("cpu/", &format!("{unit}/")), text));
            }
            files.push((format!("{unit}/type"), number));
            files.push((format!("{unit}/cpus"), cpus));
        }
        files.push(("cpu_core/events/mem-loads-aux".to_owned(), "event=0x03,umask=0x82"));
        let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (&**file, *text)).collect();
        let unit = found(&files).unwrap();
        let helpers: Vec<_> = unit.events.iter().map(|event| event.helper).collect();
        assert_eq!(helpers, [None, None, Some([0x8203, 0, 0]), None]);
        let cpus = |event: &MemoryEvent| event.cpus.as_ref().map(ToString::to_string);
        assert_eq!(cpus(&unit.events[0]).as_deref(), Some("16-23"));
        assert_eq!(cpus(&unit.events[3]).as_deref(), Some("0-15"));
    }

    #[test]
    fn operations_of_amd_are_counted_by_operation_with_the_kernel_among_them() {
        let amd = [
            ("cpu/type", "4"),
            ("cpu/format/event", "config:0-7,32-35"),
            ("ibs_fetch/type", "10"),
            ("ibs_op/type", "11"),
            ("ibs_op/format/cnt_ctl", "config:19"),
        ];
        let unit = found(&amd).unwrap();
        assert_eq!(unit.kind, SamplingUnit::Ibs);
        let [event] = &unit.events[..] else { panic!("{unit:?}") };
        assert_eq!((event.unit_type, event.config), (11, [1 << 19, 0, 0]));
        assert!(!event.may_exclude_kernel && event.period % 16 == 0);
    }

    #[test]
    fn the_reasons_for_a_missing_unit_differ() {
        let virtual_machine = [("software/type", "1"), ("breakpoint/type", "5")];
        assert_eq!(found(&virtual_machine), Err(Hindrance::NoPmu));
        let units = vec!["cpu".to_owned()];
        let plain = [("cpu/type", "4"), ("cpu/events/cpu-cycles", "event=0x3c")];
        assert_eq!(found(&plain), Err(Hindrance::NoMemoryEvents { units }));
        let arm = [("armv8_pmuv3_0/type", "8"), ("arm_spe_0/type", "9")];
        let unit = "arm_spe_0".to_owned();
        assert_eq!(found(&arm), Err(Hindrance::UnreadForm { unit }));
        assert_eq!(found(&[]), Err(Hindrance::NoPmu));
    }

    #[test]
    fn values_are_spread_over_all_ranges_of_a_format_without_truncation() {
        let placed = |ranges, value| {
            let mut word = 0;
            place(&mut word, ranges, value).map(|()| word)
        };
        assert_eq!(placed("0-7,32-35", 0xabc), Some(0xa_0000_00bc));
        assert_eq!(placed("19", 1), Some(1 << 19));
        assert_eq!(placed("0-63", u64::MAX), Some(u64::MAX));
        assert_eq!(placed("0-7", 0x100), None, "it does not fit");
        assert_eq!((placed("8-3", 1), placed("0-64", 1), placed("x", 1)), (None, None, None));
        let broken = [("cpu/type", "4"), ("cpu/events/mem-loads", "event=0xcd,umask=0x1")];
        assert!(matches!(found(&broken), Err(Hindrance::NoMemoryEvents { .. })));
    }
}
