//! Plans the steps of a scaling run.

use numalab_formats::{ReadError, Reading, architecture};
use numalab_host::{Root, read_machine};
use numalab_topology::{Allowed, Chosen, CpuSet, Finding, Machine, NodeId};

use super::manifest::Manifest;
use super::step::{PlacementError, steps};

/// Facts about a planned run that its user must know.
#[derive(Debug)]
pub struct PlanRemarks {
    /// Findings about the architecture file.
    pub findings: Vec<Finding>,
    /// The cpus that this process may not use.
    pub left_out: CpuSet,
}

/// Reason why a scaling run cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The architecture file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The machine does not have these domains or cores.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error(
        "it has cpus {absent}, and this machine, where the local launcher runs ranks, has {present}: \
         expected this machine's file, or another launcher"
    )]
    OtherMachine { absent: CpuSet, present: CpuSet },
}

impl Manifest {
    /// Reads the architecture, and plans the steps over these domains: on the cpus that this
    /// process may use, if it runs them.
    pub fn plan(
        &mut self,
        domains: &Chosen<NodeId>,
        is_run_here: bool,
    ) -> Result<PlanRemarks, PlanError> {
        let Reading { value: mut architecture, findings } = architecture::read(&self.arch)?;
        let machine = &mut architecture.machine;
        machine.allowed = is_run_here.then(|| allowed_on(machine)).flatten();
        let allowed = machine.allowed.as_ref();
        let left_out = allowed.map(|of| machine.online_cpus().difference(&of.cpus));
        let left_out = left_out.unwrap_or_default();
        let all = machine.nodes.iter().map(|node| node.id).collect();
        self.domains = domains.select_from(&all).iter().collect();
        let sizes = &self.memory_sizes;
        self.steps = steps(&architecture, self.mode, &self.domains, sizes, self.with_smt)?;
        (self.system, self.partition) = (architecture.system, architecture.partition);
        Ok(PlanRemarks { findings, left_out })
    }
}

impl Manifest {
    /// Checks that the steps' cpus are on this machine, as the local launcher needs.
    pub fn check_local(&self) -> Result<(), PlanError> {
        // Without a readable machine, binding fails and says why.
        let Ok(here) = read_machine(&Root::live()) else { return Ok(()) };
        let planned: CpuSet = self.steps.iter().flat_map(|step| step.cpus.clone()).collect();
        let present = here.machine.online_cpus();
        let absent = planned.difference(&present);
        if absent.is_empty() { Ok(()) } else { Err(PlanError::OtherMachine { absent, present }) }
    }
}

/// Returns the part of the machine that this process may use, if the run is planned for this
/// machine: a job may have only some of its hardware threads, and binding to others fails.
fn allowed_on(planned: &Machine) -> Option<Allowed> {
    let here = read_machine(&Root::live()).ok()?.machine;
    let cpus = |of: &Machine| -> Vec<_> {
        let online = of.cpus.iter().filter(|cpu| cpu.online);
        online.map(|cpu| (cpu.id, cpu.node)).collect()
    };
    here.allowed.clone().filter(|_| cpus(planned) == cpus(&here))
}
