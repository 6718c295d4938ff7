//! Disturbances of cpus, measured for every cell.

use std::fs::File;
use std::os::unix::fs::FileExt;

use numalab_record::study::Load;
use numalab_topology::CpuSet;

use crate::clock::{children_cpu_ns, monotonic_raw_ns, process_cpu_ns};
use crate::disturbance::children::living_children_ticks;

/// Largest part read of a counter file: `/proc/stat` of a thousand cpus has about 120 KiB before
/// its long line of interrupts.
const LIMIT_BYTES: usize = 1 << 20;

/// Allowed shares of the cpus' time, as divisors: 2 % stolen, 5 % used by other processes, and 1 %
/// waiting for memory.
const STOLEN_SHARE: u64 = 50;
const FOREIGN_SHARE: u64 = 20;
const PRESSURE_SHARE: u64 = 100;

/// Watches cpus for disturbances. Keeps the kernel's counter files open.
#[derive(Debug)]
pub struct SystemWatch {
    cpus: CpuSet,
    stat: Option<File>,
    memory_pressure: Option<File>,
    throttle_counts: Vec<File>,
    counts_living_children: bool,
    tick_ns: u64,
    buffer: Vec<u8>,
}

/// Counters of the watched cpus at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemSnapshot {
    cpus: u64,
    tick_ns: u64,
    wall_ns: u64,
    own_ns: u64,
    busy_ns: u64,
    stolen_ns: u64,
    throttle_events: u64,
    memory_wait_ns: u64,
}

impl SystemWatch {
    /// Watches these cpus. A counter that the kernel lacks reads as 0.
    pub fn new(cpus: &CpuSet) -> Self {
        let count_files = cpus.iter().flat_map(|cpu| {
            ["core_throttle_count", "package_throttle_count"]
                .map(|name| format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{name}"))
        });
        Self {
            cpus: cpus.clone(),
            stat: File::open("/proc/stat").ok(),
            memory_pressure: File::open("/proc/pressure/memory").ok(),
            throttle_counts: count_files.filter_map(|path| File::open(path).ok()).collect(),
            counts_living_children: false,
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            buffer: Vec::new(),
        }
    }

    /// Counts the time of running children, such as a guest, as this process's own.
    pub fn with_living_children(self) -> Self {
        Self { counts_living_children: true, ..self }
    }

    /// Reads the counters. Every thread of this process should run on a watched cpu, since the time
    /// of other processes is the cpus' time less that of this process and of the children that it
    /// has waited for.
    pub fn snapshot(&mut self) -> SystemSnapshot {
        let buffer = &mut self.buffer;
        let mut snapshot = SystemSnapshot {
            cpus: self.cpus.len() as u64,
            tick_ns: self.tick_ns,
            wall_ns: monotonic_raw_ns(),
            own_ns: process_cpu_ns().saturating_add(children_cpu_ns()),
            ..SystemSnapshot::default()
        };
        // getrusage(2) covers only children that have been waited for.
        if self.counts_living_children {
            let living_ns = living_children_ticks().saturating_mul(self.tick_ns);
            snapshot.own_ns = snapshot.own_ns.saturating_add(living_ns);
        }
        if let Some(times) = self.stat.as_ref().and_then(|file| text(file, buffer)) {
            let ticks = cpu_ticks(times, &self.cpus);
            snapshot.busy_ns = ticks.busy.saturating_mul(self.tick_ns);
            snapshot.stolen_ns = ticks.stolen.saturating_mul(self.tick_ns);
        }
        if let Some(pressure) = self.memory_pressure.as_ref().and_then(|file| text(file, buffer)) {
            snapshot.memory_wait_ns = some_total_us(pressure).saturating_mul(1000);
        }
        for file in &self.throttle_counts {
            let events = text(file, buffer).and_then(|text| text.trim().parse::<u64>().ok());
            let sum = snapshot.throttle_events.saturating_add(events.unwrap_or(0));
            snapshot.throttle_events = sum;
        }
        snapshot
    }
}

impl SystemSnapshot {
    /// Returns the disturbance of the watched cpus since `before`, if there was one: the first that
    /// applies of a throttled cpu, more than 2 % of the time stolen, more than 5 % used by other
    /// processes, and more than 1 % with processes waiting for memory. One tick per cpu is allowed
    /// in addition, because the kernel counts in ticks. No rule looks at the measured value.
    pub fn disturbance_since(&self, before: &Self) -> Option<Load> {
        const NS_PER_MS: u64 = 1_000_000;
        let events = self.throttle_events.saturating_sub(before.throttle_events);
        if events > 0 {
            return Some(Load::Throttled { events });
        }
        let wall_ns = self.wall_ns.saturating_sub(before.wall_ns);
        let of_ns = wall_ns.saturating_mul(self.cpus);
        let of_ms = of_ns / NS_PER_MS;
        // `/proc/stat` counts in ticks, so each cpu can be off by one.
        let granularity_ns = self.cpus.saturating_mul(self.tick_ns);
        let stolen_ns = self.stolen_ns.saturating_sub(before.stolen_ns);
        if stolen_ns > granularity_ns + of_ns / STOLEN_SHARE {
            let stolen_ms = stolen_ns / NS_PER_MS;
            return Some(Load::Stolen { stolen_ms, of_ms });
        }
        let busy_ns = self.busy_ns.saturating_sub(before.busy_ns);
        // Busy time is in ticks and own time is exact, so their difference can be below zero.
        let foreign_ns = busy_ns.saturating_sub(self.own_ns.saturating_sub(before.own_ns));
        if foreign_ns > granularity_ns + of_ns / FOREIGN_SHARE {
            let foreign_ms = foreign_ns / NS_PER_MS;
            return Some(Load::Foreign { foreign_ms, of_ms });
        }
        let waited_ns = self.memory_wait_ns.saturating_sub(before.memory_wait_ns);
        (waited_ns > wall_ns / PRESSURE_SHARE).then_some(Load::Pressure {
            waited_ms: waited_ns / NS_PER_MS,
            wall_ms: wall_ns / NS_PER_MS,
        })
    }
}

/// Reads a file again from its beginning into `buffer`.
fn text<'a>(file: &File, buffer: &'a mut Vec<u8>) -> Option<&'a str> {
    if buffer.is_empty() {
        buffer.resize(8192, 0);
    }
    let mut length = 0;
    loop {
        let read = file.read_at(&mut buffer[length..], length as u64).ok()?;
        length += read;
        if read == 0 || length >= LIMIT_BYTES {
            break;
        }
        if length == buffer.len() {
            buffer.resize(2 * length, 0);
        }
    }
    // Keeps the part before the first invalid byte rather than nothing.
    let bytes = &buffer[..length];
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok(),
    }
}

/// Ticks summed over the watched cpus.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    stolen: u64,
}

/// Sums `/proc/stat` over the watched cpus (`proc(5)`): `cpu3 user nice system idle iowait irq
/// softirq steal guest guest_nice`; user already includes guest.
fn cpu_ticks(stat: &str, cpus: &CpuSet) -> Ticks {
    let mut ticks = Ticks::default();
    for line in stat.lines().take_while(|line| line.starts_with("cpu")) {
        let mut words = line.split_ascii_whitespace();
        let number = words.next().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
        if !number.is_some_and(|number| cpus.contains(numalab_topology::CpuId(number))) {
            continue;
        }
        let mut field = || -> u64 { words.next().and_then(|word| word.parse().ok()).unwrap_or(0) };
        // The fields that follow, for guests, are included in user and nice (proc_stat(5)).
        let [user, nice, system, _idle, _iowait, irq, softirq, stolen] =
            std::array::from_fn(|_| field());
        let busy = [user, nice, system, irq, softirq];
        ticks.busy = busy.into_iter().fold(ticks.busy, u64::saturating_add);
        ticks.stolen = ticks.stolen.saturating_add(stolen);
    }
    ticks
}

/// Returns the `total` of the line `some` in a pressure file, in microseconds (Linux
/// `Documentation/accounting/psi.rst`).
fn some_total_us(pressure: &str) -> u64 {
    pressure
        .lines()
        .find_map(|line| line.strip_prefix("some "))
        .and_then(|line| {
            let mut words = line.split_ascii_whitespace();
            words.find_map(|word| word.strip_prefix("total=")?.parse().ok())
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 400 5 6 7 8 9 10\n\
                        cpu1 10 20 30 400 50 60 70 80 90 100\ncpu12 1 1 1 1 1 1 1 1 1 1\nintr 5 5\n";

    #[test]
    fn only_watched_cpus_count() {
        let ticks = cpu_ticks(STAT, &"1,12".parse().unwrap());
        assert_eq!(ticks, Ticks { busy: 190 + 5, stolen: 81 });
    }

    #[test]
    fn memory_pressure_is_the_total_of_the_line_some() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 total=9\n";
        assert_eq!(some_total_us(text), 1234);
        assert_eq!(some_total_us("nonsense"), 0);
    }

    fn second_of_two_cpus() -> (SystemSnapshot, SystemSnapshot) {
        let before = SystemSnapshot { cpus: 2, tick_ns: 10_000_000, ..SystemSnapshot::default() };
        let after = SystemSnapshot {
            wall_ns: 1_000_000_000,
            own_ns: 1_500_000_000,
            busy_ns: 1_500_000_000,
            ..before
        };
        (before, after)
    }

    #[test]
    fn a_second_of_own_work_is_not_a_disturbance() {
        let (before, after) = second_of_two_cpus();
        assert_eq!(after.disturbance_since(&before), None);
    }

    #[test]
    fn more_than_the_allowance_of_foreign_time_is_a_disturbance() {
        let (before, mut after) = second_of_two_cpus();
        after.busy_ns += 120_000_000;
        assert_eq!(after.disturbance_since(&before), None);
        after.busy_ns += 10_000_000;
        let load = after.disturbance_since(&before);
        assert_eq!(load, Some(Load::Foreign { foreign_ms: 130, of_ms: 2000 }));
    }

    #[test]
    fn stolen_time_throttling_and_pressure_are_disturbances() {
        let (before, after) = second_of_two_cpus();
        let stolen = SystemSnapshot { stolen_ns: 70_000_000, ..after };
        let load = stolen.disturbance_since(&before);
        assert_eq!(load, Some(Load::Stolen { stolen_ms: 70, of_ms: 2000 }));
        let throttled = SystemSnapshot { throttle_events: 1, ..after };
        let load = throttled.disturbance_since(&before);
        assert_eq!(load, Some(Load::Throttled { events: 1 }));
        let waiting = SystemSnapshot { memory_wait_ns: 11_000_000, ..after };
        let load = waiting.disturbance_since(&before);
        assert_eq!(load, Some(Load::Pressure { waited_ms: 11, wall_ms: 1000 }));
    }
}
