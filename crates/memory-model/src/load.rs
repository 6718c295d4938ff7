//! Delays accesses by load: the rise of latency caused by all traffic, from measured curves.
//!
//! One meter before each node's memory and each link counts the bytes of all vCPUs in windows of
//! virtual time. The rise of latency in a window follows from the traffic two windows earlier,
//! after every vCPU has passed through that one: vCPUs run in turns of half a window, so in any
//! order all of them see the same latency at the same time. Latency moves a part of the way to the
//! value at which the observed traffic would settle ([`Curve::settled_ns`]), as in the Mess
//! simulator (see [`crate::curve`]); in saturation it is the latency at which the demand is the
//! curve's highest bandwidth.

use crate::bandwidth::whole;
use crate::channels::Channels;
use crate::curve::Curve;
use crate::machine::{Core, Machine};
use alloc::vec::Vec;

/// Length of a window.
const WINDOW_PS: u64 = 10_000_000;
/// One byte in a window, in 10^6 bytes per second.
const MB_S_OF_BYTE: f64 = 1e6 / 10_000_000.0;
/// A byte in flight, in 10^6 bytes per second times ns.
const MB_S_NS_OF_BYTE: f64 = 1000.0;
/// Windows that are kept; a vCPU further behind was waiting, and uses the oldest.
const WINDOWS: usize = 4;
/// Traffic changes latency after a delay of two windows. With this fraction per window, latency
/// settles as fast as possible without overshooting (the double root of z² - z + 1/4).
const PART: f64 = 0.25;

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Bytes read and written.
    bytes: [u64; 2],
    /// Latency above that without load.
    rise_ns: f64,
}

/// The load of one memory or link.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Sorted by share of writes.
    curves: Vec<Curve>,
    /// The maximum amount of data that all vCPUs can have in flight, in MB/s times ns.
    most_under_way: f64,
    newest: u64,
    windows: [Window; WINDOWS],
}

impl Meter {
    /// Creates a meter for validated curves and vCPUs with at most this number of bytes in flight;
    /// `None` without curves.
    pub fn new(curves: &[Curve], most_bytes: f64) -> Option<Self> {
        let (windows, most_under_way) = (Default::default(), most_bytes * MB_S_NS_OF_BYTE);
        let curves = curves.to_vec();
        (!curves.is_empty()).then_some(Self { curves, most_under_way, newest: 0, windows })
    }

    /// Counts bytes read and written at a vCPU's own time; returns the increase of latency due to
    /// load.
    pub fn rise_ps(&mut self, time_ps: u64, bytes: [u64; 2]) -> u64 {
        let number = time_ps / WINDOW_PS;
        if number > self.newest {
            self.enter(number);
        }
        // Late bytes count in the oldest window that has not been evaluated, the one before the
        // newest.
        let counted = self.at(number.max(self.newest.saturating_sub(1)));
        counted.bytes[0] += bytes[0];
        counted.bytes[1] += bytes[1];
        let window = self.at(number.max(self.newest.saturating_sub(WINDOWS as u64 - 1)));
        whole(window.rise_ns * 1000.0)
    }

    /// Resets the meter.
    pub fn clear(&mut self) {
        self.newest = 0;
        self.windows = Default::default();
    }

    fn at(&mut self, number: u64) -> &mut Window {
        &mut self.windows[usize::try_from(number % WINDOWS as u64).unwrap_or(0)]
    }

    fn enter(&mut self, number: u64) {
        if number - self.newest >= WINDOWS as u64 {
            self.windows = Default::default();
            self.newest = number;
        }
        while self.newest < number {
            self.newest += 1;
            let judged = *self.at(self.newest.saturating_sub(2));
            let before_ns = self.at(self.newest - 1).rise_ns;
            let step_ns = PART * (self.settled_rise_ns(judged) - judged.rise_ns);
            let rise_ns = f64::max(0.0, before_ns + step_ns);
            *self.at(self.newest) = Window { bytes: [0; 2], rise_ns };
        }
    }

    /// Returns the rise of latency at which the traffic of a window would settle. If the share of
    /// writes is below that of every curve, only the limit of the writes is known: reads count at
    /// most in the first curve's proportion to them.
    fn settled_rise_ns(&self, window: Window) -> f64 {
        let [read, written] = window.bytes.map(|bytes| bytes as f64);
        let bytes = read + written;
        if bytes == 0.0 {
            return 0.0;
        }
        let rise_of_ns = |curve: &Curve, bytes: f64| {
            let unloaded_ns = curve.unloaded_ns();
            let under_way = bytes * MB_S_OF_BYTE * (unloaded_ns + window.rise_ns);
            // Bytes of vCPUs that lag by several windows count in one window. Without a limit they
            // would raise the latency, which would make the vCPUs lag more.
            curve.settled_ns(under_way.min(self.most_under_way)) - unloaded_ns
        };
        let rise_ns = |curve: &Curve| rise_of_ns(curve, bytes);
        let percent = 100.0 * written / bytes;
        let above = self.curves.iter().position(|curve| curve.writes_percent >= percent);
        let Some(above) = above else { return self.curves.last().map_or(0.0, rise_ns) };
        let high = &self.curves[above];
        let Some(low) = above.checked_sub(1).map(|below| &self.curves[below]) else {
            let has_more_writes = high.writes_percent > percent;
            let limited = if has_more_writes { percent / high.writes_percent } else { 1.0 };
            return rise_of_ns(high, bytes * limited);
        };
        let part = (percent - low.writes_percent) / (high.writes_percent - low.writes_percent);
        (1.0 - part) * rise_ns(low) + part * rise_ns(high)
    }
}

/// Returns the maximum number of bytes that all vCPUs can have in flight: lines that are fetched,
/// prefetched, and written back.
fn most_bytes(machine: &Machine) -> f64 {
    let core = machine.core.unwrap_or(Core::TYPICAL);
    let fetched = f64::from(core.misses) + f64::from(core.prefetch.unwrap_or(0));
    let written = core.writes.map_or(fetched, f64::from);
    let line = machine.caches.first().map_or(64, |cache| cache.line_bytes);
    (fetched + written) * f64::from(line) * machine.cpus.len() as f64
}

/// Creates the meters of a machine; `None` if it has no curves.
pub(crate) fn meters(machine: &Machine) -> Option<Channels<Meter>> {
    let (nodes, links, most) = (&machine.node_load, &machine.link_load, most_bytes(machine));
    Channels::new(nodes.as_ref(), links.as_ref(), |curves: &Vec<Curve>| Meter::new(curves, most))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINE: u64 = 64;
    const UNLOADED_PS: u64 = 100_000;
    const PEAK_MB_S: f64 = 10_000.0;

    fn meter() -> Meter {
        Meter::new(&Curve::typical(PEAK_MB_S, 100.0), 8.0 * 32.0 * LINE as f64).unwrap()
    }

    /// Simulates readers with this number of lines in flight each, in turns of 5 µs in this order;
    /// returns their bandwidth in 10^6 bytes per second, and the final latency in ns.
    fn closed(order: &[usize], under_way: u64, writes_percent: u64) -> (f64, f64) {
        let mut meter = meter();
        let mut times = vec![0_u64; order.len()];
        let (mut bytes, mut last_ps, from) = (0, 0, 1_000_000_000);
        let end = 3_000_000_000;
        for turn in 1..=end / 5_000_000 {
            for &vcpu in order {
                while times[vcpu] < turn * 5_000_000 {
                    let written = if (times[vcpu] / 97) % 100 < writes_percent { LINE } else { 0 };
                    last_ps = UNLOADED_PS + meter.rise_ps(times[vcpu], [LINE - written, written]);
                    bytes += if times[vcpu] > from { LINE } else { 0 };
                    times[vcpu] += last_ps / under_way;
                }
            }
        }
        (bytes as f64 / (end - from) as f64 * 1e6, last_ps as f64 / 1000.0)
    }

    #[test]
    fn bandwidth_and_latency_are_on_the_curve_for_any_number_of_readers() {
        for (readers, under_way) in [(1, 2), (2, 4), (4, 3), (8, 2)] {
            let order: Vec<usize> = (0..readers).collect();
            let (mb_s, ns) = closed(&order, under_way, 0);
            let expected_ns = Curve::typical(PEAK_MB_S, 100.0)[0].at_ns(mb_s);
            assert!((ns / expected_ns - 1.0).abs() < 0.03, "{mb_s} MB/s: {ns}, {expected_ns} ns");
        }
    }

    #[test]
    fn more_readers_than_the_memory_serves_share_its_peak_and_wait_for_each_other() {
        let (mb_s, ns) = closed(&[0, 1, 2, 3, 4, 5, 6, 7], 16, 0);
        assert!((mb_s / PEAK_MB_S - 1.0).abs() < 0.02, "{mb_s}");
        // Little's law: 8 readers, 16 lines of 64 bytes each, at 10 GB/s.
        assert!((ns / 819.2 - 1.0).abs() < 0.05, "{ns}");
    }

    #[test]
    fn writes_cost_bandwidth() {
        let (mb_s, _) = closed(&[0, 1, 2, 3], 16, 42);
        // The end of the second curve.
        assert!((mb_s / (PEAK_MB_S * 250_548.0 / 284_524.0) - 1.0).abs() < 0.03, "{mb_s}");
    }

    /// A machine that two cores cannot saturate with reads is captured with a curve of writes alone.
    #[test]
    fn reads_mixed_with_writes_are_not_limited_by_a_curve_of_writes_alone() {
        let mut writes = Curve::typical(PEAK_MB_S, 100.0).remove(0);
        writes.writes_percent = 100.0;
        let settled = |bytes| {
            let meter = Meter::new(&[writes.clone()], 1e6).unwrap();
            meter.settled_rise_ns(Window { bytes, rise_ns: 0.0 })
        };
        // 8 GB/s.
        assert_eq!(settled([80_000, 0]), 0.0);
        assert_eq!(settled([80_000, 80_000]), settled([0, 80_000]));
        assert!(settled([80_000, 80_000]) > 10.0);
    }

    #[test]
    fn the_order_of_turns_makes_no_difference() {
        assert_eq!(closed(&[0, 1, 2, 3], 8, 20), closed(&[3, 1, 0, 2], 8, 20));
    }

    #[test]
    fn a_vcpu_that_is_behind_loads_the_memory_equally() {
        // A single reader, with its bytes arriving when another one is up to two windows ahead.
        let rise_ns = |ahead_ps: u64| {
            let mut meter = meter();
            for turn in 0..2000 {
                let time_ps = turn * 5_000_000;
                meter.rise_ps(time_ps + ahead_ps, [0, 0]);
                meter.rise_ps(time_ps, [5 * 8000, 0]);
            }
            meter.rise_ps(2000 * 5_000_000, [0, 0])
        };
        assert!(rise_ns(0) > 10_000);
        assert_eq!(rise_ns(16_000_000), rise_ns(0));
    }

    #[test]
    fn an_idle_memory_returns_to_its_unloaded_latency() {
        let mut meter = meter();
        let mut time_ps = 0;
        while time_ps < 100 * WINDOW_PS {
            time_ps += (UNLOADED_PS + meter.rise_ps(time_ps, [LINE, 0])) / 64;
        }
        assert!(meter.rise_ps(time_ps, [LINE, 0]) > UNLOADED_PS);
        assert_eq!(meter.rise_ps(time_ps + 4 * WINDOW_PS, [LINE, 0]), 0);
    }

    /// Regression: four threads that streamed from one node took days of virtual time.
    #[test]
    fn vcpus_that_lag_by_several_windows_do_not_raise_latency_without_limit() {
        let mut meter = meter();
        let mut most_ps = 0;
        for turn in 1..5_000_u64 {
            let time_ps = turn * 5 * WINDOW_PS;
            meter.rise_ps(time_ps, [0, 0]);
            // Five windows at the peak's rate arrive at once.
            let bytes = [5 * 100_000, 0];
            most_ps = most_ps.max(meter.rise_ps(time_ps - 4 * WINDOW_PS, bytes));
        }
        // Little's law: 8 vCPUs with 32 lines each, at 10 GB/s.
        assert!(most_ps <= 8 * 32 * 6_400, "{most_ps}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn no_request_gets_more_than_there_is(readers in 1_usize..9, under_way in 1_u64..24) {
            let order: Vec<usize> = (0..readers).collect();
            let (mb_s, _) = closed(&order, under_way, 0);
            prop_assert!(mb_s <= PEAK_MB_S * 1.03, "{mb_s}");
        }
    }
}
