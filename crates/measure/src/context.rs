//! What every cell of a run shares: the machine, the clock, the rules.

use std::time::{Duration, Instant};

use numalab_host::{Interrupt, monotonic_raw_ns};
use numalab_membench::{Clock, virtual_time};
use numalab_stats::Precision;
use numalab_topology::{CpuId, Machine};

use crate::error::MeasureError;

/// How long the clock is compared with the system's before the first cell.
const CALIBRATION_NS: u64 = 20_000_000;

/// The rules of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The seed of everything random.
    pub seed: u64,
    /// Relative half width of a cell's interval at which it ends: 0.01 is 1 %.
    pub precision: f64,
    /// Time for all cells together.
    pub budget: Duration,
}

/// What every cell of a run shares.
#[derive(Debug)]
pub struct MeasureContext {
    /// The machine.
    pub machine: Machine,
    /// The rules.
    pub settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) interrupt: Interrupt,
    pub(crate) precision: Precision,
    started_ns: u64,
    started: Instant,
}

impl MeasureContext {
    /// Calibrates the clock and makes ready for cells.
    ///
    /// # Errors
    /// [`MeasureError::Clock`] if the clock steps or stops, [`MeasureError::Statistics`]
    /// if the precision is no ratio between 0 and 1.
    pub fn new(
        machine: Machine,
        settings: Settings,
        interrupt: Interrupt,
    ) -> Result<Self, MeasureError> {
        let precision = Precision::relative(settings.precision)?;
        // In a guest whose memory is emulated, each vCPU has its own time.
        numalab_host::emulator_counters().map(virtual_time::use_counters);
        let clock = Clock::calibrate(monotonic_raw_ns, CALIBRATION_NS)?;
        let (started_ns, started) = (monotonic_raw_ns(), Instant::now());
        Ok(Self { machine, settings, clock, interrupt, precision, started_ns, started })
    }

    /// Whether the clock keeps its rate in every power state.
    #[must_use]
    pub fn clock_is_invariant(&self) -> bool {
        self.clock.is_invariant()
    }

    /// Whether times are those that a memory emulator keeps for each vCPU.
    #[must_use]
    pub fn time_is_virtual(&self) -> bool {
        virtual_time::in_use()
    }

    /// When the run started, by the clock that the processes of a host share
    /// (`CLOCK_MONOTONIC_RAW`), in nanoseconds.
    #[must_use]
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// The clock of its windows.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Time since the run's start in nanoseconds.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        monotonic_raw_ns().saturating_sub(self.started_ns)
    }

    /// Time that is left of the budget.
    pub(crate) fn time_left(&self) -> Duration {
        self.settings.budget.saturating_sub(self.started.elapsed())
    }

    /// Fails once the user asked to stop.
    pub(crate) fn check_interrupt(&self) -> Result<(), MeasureError> {
        if self.interrupt.requested() { Err(MeasureError::Interrupted) } else { Ok(()) }
    }

    /// The cpus of the node that `cpu` belongs to, itself first: those which may help it
    /// to fill memory.
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
    /// One for tests of single parts.
    pub(crate) fn for_tests() -> Self {
        let settings = Settings { seed: 3, precision: 0.5, budget: Duration::from_secs(1) };
        Self::new(Machine::default(), settings, Interrupt::never()).expect("a clock")
    }
}
