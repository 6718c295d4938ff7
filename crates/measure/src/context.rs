//! The shared context of all cells of a run: the machine, the clock, the rules.

use std::time::Duration;

use numalab_host::{Interrupt, UtcTime, monotonic_ns, monotonic_raw_ns};
use numalab_marks::virtual_time;
use numalab_membench::Clock;
use numalab_stats::Precision;
use numalab_topology::{CpuId, Machine};

use crate::error::MeasureError;

/// Duration of the clock's calibration before the first cell.
const CALIBRATION_NS: u64 = 20_000_000;

/// The rules of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The seed of all random orders.
    pub seed: u64,
    /// Relative half width of a cell's confidence interval at which it ends: 0.01 is 1 %.
    pub precision: f64,
    /// Time for all cells together.
    pub budget: Duration,
}

/// The shared context of all cells of a run.
#[derive(Debug)]
pub struct MeasureContext {
    pub machine: Machine,
    pub settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) interrupt: Interrupt,
    pub(crate) precision: Precision,
    started_ns: u64,
    budget: Budget,
}

/// The clock that counts a budget, in nanoseconds.
pub type BudgetClock = fn() -> u64;

/// A clock that counts a budget, and the time at which it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    clock: BudgetClock,
    begun_ns: u64,
}

impl Budget {
    /// Returns a budget that begins now.
    pub fn begin(clock: BudgetClock) -> Self {
        Self { clock, begun_ns: clock() }
    }

    /// Returns a budget with the same clock that begins now, for a part of the run.
    pub fn part(self) -> Self {
        Self::begin(self.clock)
    }

    /// Returns the time since it began.
    pub fn elapsed(self) -> Duration {
        Duration::from_nanos((self.clock)().saturating_sub(self.begun_ns))
    }
}

impl MeasureContext {
    /// Calibrates the clock and prepares for cells.
    ///
    /// # Errors
    /// [`MeasureError::Clock`] if the clock steps or stops, [`MeasureError::Statistics`] if the
    /// precision is not between 0 and 1.
    pub fn new(
        machine: Machine,
        settings: Settings,
        interrupt: Interrupt,
    ) -> Result<Self, MeasureError> {
        let precision = Precision::relative(settings.precision)?;
        // In a guest with emulated memory each vCPU has its own virtual time.
        numalab_host::emulator_counters().map(virtual_time::use_counters);
        // After the counters: they replace the time source that is calibrated.
        let clock = Clock::calibrate(monotonic_raw_ns, CALIBRATION_NS)?;
        let (started_ns, budget) = (monotonic_raw_ns(), Budget::begin(monotonic_ns));
        Ok(Self { machine, settings, clock, interrupt, precision, started_ns, budget })
    }

    /// Prepares for a probe that takes this time; signals end it.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if signals cannot be caught.
    pub fn for_probe(machine: Machine, time: Duration) -> Result<Self, MeasureError> {
        // A probe takes all of its time, however narrow its interval.
        let settings = Settings { seed: UtcTime::now().unix_ms, precision: 0.01, budget: time };
        Self::new(machine, settings, Interrupt::install()?)
    }

    /// Counts the budget with another clock from now on, such as the process's cpu time.
    pub fn counted_by(self, clock: BudgetClock) -> Self {
        Self { budget: Budget::begin(clock), ..self }
    }

    /// Returns the budget that its cells share.
    pub(crate) fn budget(&self) -> Budget {
        self.budget
    }

    /// Reports whether the clock keeps its rate in every power state.
    pub fn clock_is_invariant(&self) -> bool {
        self.clock.is_invariant()
    }

    /// Reports whether times are virtual, kept by a memory emulator for each vCPU.
    pub fn time_is_virtual(&self) -> bool {
        virtual_time::in_use()
    }

    /// Returns the run's start in nanoseconds of `CLOCK_MONOTONIC_RAW`, which all processes of a
    /// host share.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// Returns the clock of its windows.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the time since the run's start in nanoseconds.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        monotonic_raw_ns().saturating_sub(self.started_ns)
    }

    /// Returns the rest of the budget.
    pub(crate) fn time_left(&self) -> Duration {
        self.settings.budget.saturating_sub(self.budget.elapsed())
    }

    /// Fails after the user's request to stop.
    pub(crate) fn check_interrupt(&self) -> Result<(), MeasureError> {
        if self.interrupt.requested() { Err(MeasureError::Interrupted) } else { Ok(()) }
    }

    /// Returns the cpus of the node of `cpu`, starting with `cpu`, which may help to fill memory.
    pub(crate) fn helpers_of(&self, cpu: CpuId) -> Vec<CpuId> {
        let node = self.machine.cpu(cpu).and_then(|cpu| cpu.node);
        let allowed = |other: CpuId| {
            let free = |allowed: &numalab_topology::Allowed| allowed.cpus.contains(other);
            self.machine.allowed.as_ref().is_none_or(free)
        };
        let others = self.machine.cpus.iter().filter(|other| {
            other.online && other.id != cpu && other.node == node && allowed(other.id)
        });
        std::iter::once(cpu).chain(others.map(|other| other.id)).collect()
    }
}

#[cfg(test)]
impl MeasureContext {
    /// Creates a context for tests of single parts.
    pub(crate) fn for_tests() -> Self {
        let settings = Settings { seed: 3, precision: 0.5, budget: Duration::from_secs(1) };
        Self::new(Machine::default(), settings, Interrupt::never()).expect("a clock")
    }
}
