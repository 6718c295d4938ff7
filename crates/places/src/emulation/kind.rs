//! The settings of a study for an emulated machine, and the program that a treatment makes of a
//! command there.

use std::collections::BTreeMap;
use std::iter::repeat_n;

use numalab_formats::memory_emulator::{EmulatedMachine, MemoryCosts, PagePlacement, Policy};
use numalab_guest::program::{EmulatedProgram, ThreadPlacement};
use numalab_knobs::HUGE_PAGES;
use numalab_record::study::Setting;
use numalab_study::{BackendError, BackendKind, BackendSpec, SampleRequest};
use numalab_topology::placement::POLICY;
use numalab_topology::{Cpu, CpuId, Machine, MemoryPolicy, Node, NodeId, Placement};
use serde::Deserialize;

use crate::common_settings::{
    CPUS, DISTANCES, EMULATE, EMULATE_BANDWIDTH, EMULATE_CACHE, EMULATE_LATENCY, EMULATE_LIKE,
    EMULATE_STAGES, EMULATE_TIERS, MEMORY, WATCH_OUTPUT, bad, settings,
};
use crate::described_machine::MachineSettings;
use crate::live_guest::failed;
use crate::{exec, placement};

/// Prefix of the settings for nodes' weights, which are knobs in other backends.
const WEIGHT: &str = "interleave_weight_node";
/// The policy that only emulation has: pages move at no cost to the threads that use them.
const USERS: &str = "users";

settings! {
    /// The cpus that threads take in turn.
    THREAD_ORDER = "thread-order", Text("spread, pack or cpus such as 0-3,8"), "spread",
        "CPUs that threads take in turn: spread (over the nodes), pack (node by node), or a list";
    /// The whole machine in the emulator's form.
    MODEL = "model", Text("a machine in the memory emulator's JSON"), "",
        "the machine in the memory emulator's JSON; replaces all settings of its size and costs";
}

pub(crate) const KIND: BackendKind = BackendKind {
    name: "emulation",
    about: "one program on an emulated machine, without a guest: factors are placements, or parts \
            of commands",
    settings: &[
        EMULATE,
        CPUS,
        MEMORY,
        DISTANCES,
        EMULATE_TIERS,
        EMULATE_LIKE,
        EMULATE_LATENCY,
        EMULATE_BANDWIDTH,
        EMULATE_CACHE,
        EMULATE_STAGES,
        MODEL,
        WATCH_OUTPUT,
    ],
    levels: &[placement::CPUS, placement::NODES, placement::POLICY, THREAD_ORDER],
    is_virtual: |_| true,
    ..BackendKind::PLAIN
};

/// Settings of `[backend.emulation]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Options {
    #[serde(flatten)]
    machine: MachineSettings,
    model: Option<String>,
    watch_output: bool,
}

/// The machine of a study's programs.
#[derive(Clone, Debug)]
pub(super) struct Imitated {
    pub(super) model: EmulatedMachine,
    /// Nodes and cpus, which placements name.
    machine: Machine,
    pub(super) watch_output: bool,
}

/// The placement of a program's threads and pages, in the form of [`EmulatedProgram`].
pub(super) struct Placed {
    pub(super) threads: Vec<usize>,
    pub(super) policy: Option<Policy>,
    pub(super) huge_always: bool,
}

/// Returns the settings of a study on this machine.
///
/// # Errors
/// The serialiser's error.
pub fn emulation_of(model: &EmulatedMachine) -> Result<BackendSpec, serde_json::Error> {
    let model = (MODEL.name.to_owned(), serde_json::to_string(model)?.into());
    Ok(BackendSpec { kind: KIND.name.to_owned(), settings: [model].into_iter().collect() })
}

impl Imitated {
    pub(super) fn of(spec: &BackendSpec) -> Result<Self, BackendError> {
        let Options { machine: described, model, watch_output } = KIND.read(spec)?;
        let model = match &model {
            Some(text) => EmulatedMachine::from_json(text)
                .map_err(|error| bad(KIND.name, MODEL.name, text, &error))?,
            None => {
                let machine = described.machine(KIND.name)?;
                described.costs.described(KIND.name, &machine, MemoryCosts::usual)?
            }
        };
        Ok(Self { machine: nodes_and_cpus(&model), model, watch_output })
    }

    pub(super) fn words(&self) -> String {
        format!("a program on an emulated machine of {} nodes", self.model.nodes.len())
    }

    pub(super) fn program(&self, of: &SampleRequest<'_>) -> Result<EmulatedProgram, BackendError> {
        let settings = &of.treatment.settings;
        let Placed { threads, policy, huge_always } = self.placed(settings)?;
        let command = of.workload.command.iter().map(|word| exec::filled(word, settings)).collect();
        let program = EmulatedProgram::new(self.model.clone(), threads, command);
        let program = program.map_err(|error| failed(&error))?;
        Ok(EmulatedProgram { policy, huge_always, ..program })
    }

    /// Returns the placement that these settings mean.
    pub(super) fn placed(
        &self,
        settings: &BTreeMap<String, Setting>,
    ) -> Result<Placed, BackendError> {
        for (name, setting) in settings.iter().filter(|(name, _)| KIND.has_level(name)) {
            KIND.check_level(name, setting)?;
        }
        let text = |name: &str| settings.get(name).map(ToString::to_string);
        let is_users = text(POLICY).is_some_and(|policy| policy == USERS);
        let common = |name: &str| text(name).filter(|_| name != POLICY || !is_users);
        let placed = Placement::of(common, &self.machine).map_err(placement::refused)?;
        let pages = placed.policy.as_ref().map(|policy| Policy::Stay(self.pages(policy, settings)));
        Ok(Placed {
            threads: self.threads(text(THREAD_ORDER.name), &placed)?,
            policy: if is_users { Some(Policy::Users) } else { pages },
            huge_always: match text(HUGE_PAGES).as_deref() {
                None | Some("madvise") => false,
                Some("always") => true,
                Some(found) => return Err(placement::bad(HUGE_PAGES, found, "always or madvise")),
            },
        })
    }

    /// Returns the cpus of a placement in the order in which threads take them.
    fn threads(
        &self,
        order: Option<String>,
        placed: &Placement,
    ) -> Result<Vec<usize>, BackendError> {
        let text = order.as_deref().unwrap_or(THREAD_ORDER.default);
        let order = text.parse::<ThreadPlacement>().and_then(|order| order.cpus(&self.machine));
        let order = order.map_err(|error| placement::bad(THREAD_ORDER.name, text, &error))?;
        let is_allowed = |at: &usize| {
            let cpu = CpuId(u32::try_from(*at).unwrap_or(u32::MAX));
            placed.cpus.as_ref().is_none_or(|cpus| cpus.contains(cpu))
        };
        Ok(order.into_iter().filter(is_allowed).collect())
    }

    /// Returns a memory policy in the emulator's form, with nodes by position.
    fn pages(&self, policy: &MemoryPolicy, settings: &BTreeMap<String, Setting>) -> PagePlacement {
        let nodes = policy.nodes();
        let all = self.model.nodes.iter().enumerate();
        let named = all.filter(|(_, node)| nodes.contains(NodeId(node.id)));
        let at = named.clone().map(|(at, _)| at);
        match policy {
            MemoryPolicy::Local => PagePlacement::Local,
            MemoryPolicy::Bind(_) => PagePlacement::Bind(at.collect()),
            MemoryPolicy::Preferred(_) => {
                at.clone().next().map_or(PagePlacement::Local, PagePlacement::Preferred)
            }
            MemoryPolicy::Interleave(_) => PagePlacement::Interleave(at.collect()),
            MemoryPolicy::WeightedInterleave(_) => {
                let weight = |id: u32| {
                    let setting = settings.get(&format!("{WEIGHT}{id}")).map(ToString::to_string);
                    setting.and_then(|weight| weight.parse().ok()).unwrap_or(1)
                };
                let turns = named.flat_map(|(at, node)| repeat_n(at, weight(node.id)));
                PagePlacement::Interleave(turns.collect())
            }
        }
    }
}

/// Returns true for settings of levels that are knobs of a real kernel.
pub(super) fn is_knob(name: &str) -> bool {
    name == HUGE_PAGES || name.starts_with(WEIGHT)
}

/// Returns the nodes and cpus of an emulated machine; a cpu's number is its position.
fn nodes_and_cpus(model: &EmulatedMachine) -> Machine {
    let id = |node: usize| NodeId(model.nodes[node].id);
    let cpu = |(number, node): (u32, &usize)| Cpu {
        id: CpuId(number),
        online: true,
        node: Some(id(*node)),
        ..Cpu::default()
    };
    let cpus: Vec<Cpu> = (0..).zip(&model.cpus).map(cpu).collect();
    let nodes = model.nodes.iter().map(|node| {
        let of = cpus.iter().filter(|cpu| cpu.node == Some(NodeId(node.id)));
        Node {
            id: NodeId(node.id),
            online: true,
            cpus: of.map(|cpu| cpu.id).collect(),
            memory_bytes: node.ranges.iter().map(|(start, end)| end.saturating_sub(*start)).sum(),
            ..Node::default()
        }
    });
    let mut nodes: Vec<Node> = nodes.collect();
    nodes.sort_by_key(|node| node.id);
    Machine { nodes, cpus, ..Machine::default() }
}
