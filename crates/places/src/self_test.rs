//! The checks of numalab's self-test on the nodes of this machine.

mod guest;

use std::path::Path;
use std::time::Duration;

use numalab_guest::GuestError;
use numalab_host::{Classed, ErrorClass, Interrupt, Root, SignalError, base_pages};
use numalab_knobs::{ChangedSettings, KnobError};
use numalab_measure::kind::latency::{latency_matrix, plain_pattern};
use numalab_measure::{
    BalancingProbe, LiveRun, MatrixShape, MeasureContext, MeasureError, Observe, RunRules, Target,
    facts_now, self_test, usual_budget,
};
use numalab_record::Pages;
use numalab_record::self_test::{Check, CheckFound, CheckOutcome, Checked, SelfTest};
use numalab_record::system::BalancingProbed;
use numalab_results::run::Summary;
use numalab_results::self_test::{judge, pairs};
use numalab_topology::{CpuId, NodeId};

use crate::machine::MachineError;

/// Order of the checks: those that change nothing come first, the check that everything was
/// restored last.
pub const ORDER: [Check; 10] = [
    Check::Pins,
    Check::Bound,
    Check::FirstTouch,
    Check::Proof,
    Check::Matrix,
    Check::TransparentHugePages,
    Check::ReservedHugePages,
    Check::Balancing,
    Check::Guest,
    Check::Settings,
];

/// Memory that should follow its thread: the kernel scans up to 256 MiB in each of its rounds.
const FOLLOWING_BYTES: u64 = 32 << 20;
/// Reserved huge pages added to the pool of each node.
const RESERVED_PAGES: u64 = 2;
/// Relative precision that is narrow enough to distinguish distances.
const PRECISION: f64 = 0.02;

/// A self-test of this machine.
#[derive(Debug)]
pub struct RealNodes<'a> {
    pub target: &'a Target,
    /// Buffer of the latency matrix.
    pub size_bytes: u64,
    /// Time limit for memory to follow its thread.
    pub time: Duration,
    /// Parent of the directory that keeps the matrix, if any.
    pub results: Option<&'a Path>,
    pub version: &'a str,
}

/// Reason why a check found nothing.
#[derive(Debug, thiserror::Error)]
pub enum SelfTestError {
    #[error("it needs two nodes with memory")]
    OneNode,
    #[error("the firmware gives no distances (SLIT)")]
    NoDistances,
    #[error("{reason}")]
    NoPair { class: ErrorClass, reason: String },
    #[error("interrupted; all settings were restored")]
    Interrupted,
    #[error(transparent)]
    Measure(#[from] MeasureError),
    #[error(transparent)]
    Knob(#[from] KnobError),
    #[error(transparent)]
    Signal(#[from] SignalError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Guest(#[from] GuestError),
}

impl Classed for SelfTestError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::OneNode | Self::NoDistances => ErrorClass::Lacking,
            Self::NoPair { class, .. } => *class,
            Self::Interrupted => ErrorClass::Failed,
            Self::Measure(error) => error.class(),
            Self::Knob(error) => error.class(),
            Self::Signal(error) => error.class(),
            Self::Machine(error) => error.class(),
            Self::Guest(error) => error.class(),
        }
    }

    fn remedy(&self) -> Option<String> {
        let Self::Guest(error) = self else { return None };
        error.remedy()
    }
}

impl RealNodes<'_> {
    /// Makes all checks, announcing each, and restores every setting.
    ///
    /// # Errors
    /// [`SelfTestError`] if settings of another run are left, or the user interrupts.
    pub fn run(
        &self,
        starting: &mut dyn FnMut(Check),
        observe: Observe<'_>,
    ) -> Result<SelfTest, SelfTestError> {
        let mut settings = ChangedSettings::new(&Root::live())?;
        let interrupt = Interrupt::install()?;
        let mut checks = Vec::new();
        for check in ORDER {
            starting(check);
            let answer = self.check(check, &mut settings, &mut *observe);
            if interrupt.requested() {
                return Err(SelfTestError::Interrupted);
            }
            checks.push(self.concluded(check, answer));
        }
        Ok(SelfTest { environment: facts_now(), machine: self.target.machine.clone(), checks })
    }

    /// Converts an answer: a check that the machine cannot run is skipped, one with another error
    /// has failed.
    fn concluded(&self, check: Check, answer: Result<CheckFound, SelfTestError>) -> Checked {
        match answer {
            Ok(found) => {
                let outcome = judge(&found, &self.target.machine);
                Checked { check, outcome, found: Some(found), reason: None }
            }
            Err(error) => {
                let outcome = match error.class() {
                    ErrorClass::Failed => CheckOutcome::Failed,
                    _ => CheckOutcome::NotChecked,
                };
                Checked { check, outcome, found: None, reason: Some(error.explained()) }
            }
        }
    }

    fn check(
        &self,
        check: Check,
        settings: &mut ChangedSettings,
        observe: Observe<'_>,
    ) -> Result<CheckFound, SelfTestError> {
        let (machine, scope) = (&self.target.machine, &self.target.scope);
        Ok(match check {
            Check::Pins => self_test::pinned_everywhere(machine, &scope.cpus)?,
            Check::Bound => self_test::bound_to_each(&scope.nodes, base_pages())?,
            Check::FirstTouch => self_test::touched_by_each(&self.cpus_with_memory())?,
            Check::Proof => {
                let (first, last) = self.two_nodes()?;
                self_test::claimed_elsewhere(first, last)?
            }
            Check::TransparentHugePages => {
                if settings.value("thp_enabled")? == "never" {
                    settings.set("thp_enabled", "madvise")?;
                }
                self_test::bound_to_each(&scope.nodes, Pages::Transparent)?
            }
            Check::ReservedHugePages => self.reserved(settings)?,
            Check::Balancing => self.balancing(settings)?,
            Check::Matrix => self.matrix(observe)?,
            Check::Guest => guest::pinned(machine, &scope.nodes)?,
            Check::Settings => settings.put_back()?,
        })
    }

    /// Returns a CPU of each node that also has memory.
    fn cpus_with_memory(&self) -> Vec<CpuId> {
        let Target { machine, scope, .. } = self.target;
        let has_memory = |cpu: &CpuId| {
            let node = machine.cpu(*cpu).and_then(|cpu| cpu.node);
            node.is_none_or(|node| scope.nodes.contains(&node))
        };
        scope.one_cpu_per_node(machine).into_iter().filter(has_memory).collect()
    }

    fn two_nodes(&self) -> Result<(NodeId, NodeId), SelfTestError> {
        match self.target.scope.nodes[..] {
            [first, .., last] => Ok((first, last)),
            _ => Err(SelfTestError::OneNode),
        }
    }

    fn reserved(&self, settings: &mut ChangedSettings) -> Result<CheckFound, SelfTestError> {
        let nodes = &self.target.scope.nodes;
        for node in nodes {
            let name = format!("huge_2m_pages_node{node}");
            let pages: u64 = settings.value(&name)?.parse().unwrap_or_default();
            settings.set(&name, &(pages + RESERVED_PAGES).to_string())?;
        }
        Ok(self_test::bound_to_each(nodes, Pages::HUGE_2M)?)
    }

    /// Runs the same probe without and with NUMA balancing.
    fn balancing(&self, settings: &mut ChangedSettings) -> Result<CheckFound, SelfTestError> {
        self.two_nodes()?;
        let off = self.probe(settings, "0")?;
        let on = self.probe(settings, "1")?;
        let figure = |of: &BalancingProbed, name| of.value(name).unwrap_or(f64::NAN);
        Ok(CheckFound::Balancing {
            from: on.from.node,
            to: on.to.node,
            off_percent: figure(&off, "local"),
            on_percent: figure(&on, "local"),
            begin_ns: figure(&on, "latency-begin"),
            end_ns: figure(&on, "latency-end"),
        })
    }

    fn probe(
        &self,
        settings: &mut ChangedSettings,
        value: &str,
    ) -> Result<BalancingProbed, SelfTestError> {
        settings.set("numa_balancing", value)?;
        let context = MeasureContext::for_probe(self.target.machine.clone(), self.time)?;
        let size_bytes = FOLLOWING_BYTES.min(self.size_bytes);
        let probe = BalancingProbe::on(&context, size_bytes, self.time, None, None)?;
        Ok(probe.run(&context)?)
    }

    fn matrix(&self, observe: Observe<'_>) -> Result<CheckFound, SelfTestError> {
        self.two_nodes()?;
        let machine = &self.target.machine;
        if !machine.distances.is_complete() {
            return Err(SelfTestError::NoDistances);
        }
        let (sizes, pattern) = ([self.size_bytes], plain_pattern(self.target.pages));
        let cells = latency_matrix(self.target, MatrixShape::PerNode, &sizes, pattern);
        let rules = RunRules { precision: PRECISION, budget: usual_budget(&cells), seed: None };
        let run = self.target.run("selftest", None, rules, self.version);
        let mut live = LiveRun::begin(run, self.results)?;
        let tally = live.measure((&cells, &[]), |_| Vec::new(), observe)?;
        let no_pair = |(class, reason)| SelfTestError::NoPair { class, reason };
        if let Some(failure) = tally.nothing_measured() {
            return Err(no_pair(failure.clone()));
        }
        let document = live.document();
        let summary = Summary::of(&document);
        let matrix = summary
            .matrices
            .first()
            .ok_or_else(|| no_pair((ErrorClass::Failed, "no pair was measured".to_owned())))?;
        Ok(CheckFound::Matrix { pairs: pairs(&matrix.by_node, machine) })
    }
}
