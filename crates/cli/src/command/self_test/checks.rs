//! The checks of a self-test.

use numalab_host::base_pages;
use numalab_host::knobs::ChangedSettings;
use numalab_measure::kind::latency::{LatencySpec, latency_cells, plain_pattern};
use numalab_measure::{BalancingFound, BalancingProbe, self_test};
use numalab_measure::{MatrixShape, matrix_workers};
use numalab_record::Pages;
use numalab_record::Team;
use numalab_record::self_test::{Check, CheckFound};
use numalab_results::run::Summary;
use numalab_results::self_test::pairs;
use numalab_topology::{CpuId, NodeId};

use super::guest;
use crate::args::{Measuring, Rules, Selection, SelfTestArgs};
use crate::command::measuring::{Target, context_for, new_run, run_plan};
use crate::failure::{Code, Failure};

/// Memory that should follow its thread: the kernel scans up to 256 MiB in each of its rounds.
const FOLLOWING_BYTES: u64 = 32 << 20;
/// Reserved huge pages added to the pool of each node.
const RESERVED_PAGES: u64 = 2;
/// Relative precision that is narrow enough to tell distances apart.
const PRECISION: f64 = 0.02;

/// Context of every check.
pub(super) struct Checks<'a> {
    pub args: &'a SelfTestArgs,
    pub target: &'a Target,
}

impl Checks<'_> {
    pub(super) fn run(
        &self,
        check: Check,
        settings: &mut ChangedSettings,
    ) -> Result<CheckFound, Failure> {
        let (machine, scope) = (&self.target.machine, &self.target.scope);
        match check {
            Check::Pins => Ok(self_test::pinned_everywhere(machine, &scope.cpus)?),
            Check::Bound => Ok(self_test::bound_to_each(&scope.nodes, base_pages())?),
            Check::FirstTouch => Ok(self_test::touched_by_each(&self.cpus_with_memory())?),
            Check::Proof => {
                let (first, last) = self.two_nodes()?;
                Ok(self_test::claimed_elsewhere(first, last)?)
            }
            Check::TransparentHugePages => {
                if settings.value("thp_enabled")? == "never" {
                    settings.set("thp_enabled", "madvise")?;
                }
                Ok(self_test::bound_to_each(&scope.nodes, Pages::Transparent)?)
            }
            Check::ReservedHugePages => self.reserved(settings),
            Check::Balancing => self.balancing(settings),
            Check::Matrix => self.matrix(),
            Check::Guest => guest::pinned(machine, &scope.nodes),
            Check::Settings => Ok(settings.put_back()?),
        }
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

    fn two_nodes(&self) -> Result<(NodeId, NodeId), Failure> {
        match self.target.scope.nodes[..] {
            [first, .., last] => Ok((first, last)),
            _ => Err(Failure::new(Code::Lacking, "it needs two nodes with memory")),
        }
    }

    fn reserved(&self, settings: &mut ChangedSettings) -> Result<CheckFound, Failure> {
        let nodes = &self.target.scope.nodes;
        for node in nodes {
            let name = format!("huge_2m_pages_node{node}");
            let pages: u64 = settings.value(&name)?.parse().unwrap_or_default();
            settings.set(&name, &(pages + RESERVED_PAGES).to_string())?;
        }
        Ok(self_test::bound_to_each(nodes, Pages::HUGE_2M)?)
    }

    /// Runs the same probe without and with NUMA balancing.
    fn balancing(&self, settings: &mut ChangedSettings) -> Result<CheckFound, Failure> {
        self.two_nodes()?;
        let off = self.probe(settings, "0")?;
        let on = self.probe(settings, "1")?;
        Ok(CheckFound::Balancing {
            from: on.from,
            to: on.to,
            off_percent: off.local_percent,
            on_percent: on.local_percent,
            begin_ns: on.begin_ns,
            end_ns: on.end_ns,
        })
    }

    fn probe(
        &self,
        settings: &mut ChangedSettings,
        value: &str,
    ) -> Result<BalancingFound, Failure> {
        settings.set("numa_balancing", value)?;
        let time = self.args.time;
        let run = new_run("selftest", self.target, &rules(), &self.args.output, time);
        let context = context_for(&run)?;
        let size_bytes = FOLLOWING_BYTES.min(self.args.size);
        let probe = BalancingProbe::on(&context, size_bytes, time, None, None)?;
        Ok(probe.run(&context)?)
    }

    fn matrix(&self) -> Result<CheckFound, Failure> {
        self.two_nodes()?;
        let Target { machine, scope, pages } = self.target;
        if !machine.distances.is_complete() {
            return Err(Failure::new(Code::Lacking, "the firmware gives no distances (SLIT)"));
        }
        let workers = matrix_workers(machine, scope, MatrixShape::PerNode);
        let pattern = plain_pattern(*pages);
        let spec = LatencySpec { pattern, pages: *pages, team: Team::Serial };
        let cells = latency_cells(&workers, &[self.args.size], spec);
        let output = self.args.output.clone();
        let given = Measuring { selection: Selection::default(), rules: rules(), output };
        let (document, _) = run_plan("selftest", self.target, &given, &cells, |_| Vec::new())?;
        let summary = Summary::of(&document);
        let matrix = summary.matrices.first();
        let matrix = matrix.ok_or_else(|| Failure::new(Code::Failed, "no pair was measured"))?;
        Ok(CheckFound::Matrix { pairs: pairs(&matrix.by_node, machine) })
    }
}

fn rules() -> Rules {
    Rules { precision: PRECISION, budget: None, seed: None }
}
