//! Whether a change of a knob can have an effect on this machine.

use super::damon;
use super::file::{self, FileState};
use super::knob::{Knob, Nature};
use crate::root::Root;

/// Whether a change of a knob can have an effect here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acts {
    /// It can.
    Yes,
    /// It cannot, for this reason.
    No(String),
}

impl Knob {
    /// Whether a change can have an effect on this machine. Looks at the machine, not at the
    /// knob's value.
    #[must_use]
    pub fn acts(&self, root: &Root) -> Acts {
        let no = |reason: &str| Acts::No(reason.to_owned());
        let Some(path) = self.files().first() else {
            return no("this machine has none");
        };
        match self.state(root) {
            FileState::Absent => return no("this kernel does not have it"),
            FileState::Denied(reason) => return Acts::No(reason),
            FileState::WriteOnly if self.nature != Nature::Trigger => {
                return no("it can only be written, so that nobody could put it back");
            }
            FileState::WriteOnly | FileState::Value(_) => {}
        }
        if !file::is_writable(root, path) {
            return no("it can only be read");
        }
        let name = self.name();
        let file = path.rsplit('/').next().unwrap_or(path);
        match (name, file) {
            ("damon_migrate", _) => match tiers(root) {
                Acts::Yes => damon::hindrance(root).map_or(Acts::Yes, Acts::No),
                no @ Acts::No(_) => no,
            },
            ("demotion" | "promote_rate_limit", _)
            | (_, "demotion_enabled" | "numa_balancing_promote_rate_limit_MBps") => tiers(root),
            (weight, _) if weight.starts_with("interleave_weight_node") => several_nodes(root),
            (_, "numa_balancing" | "zone_reclaim_mode" | "merge_across_nodes") => {
                several_nodes(root)
            }
            (_, "swappiness") if !has_swap(root) => {
                no("there is no swap, so that reclaim has no choice")
            }
            ("smt", _) => match self.state(root) {
                FileState::Value(value) if value == "on" || value == "off" => Acts::Yes,
                FileState::Value(value) => Acts::No(format!("the kernel says {value}")),
                _ => no("this machine has no sibling threads"),
            },
            _ => Acts::Yes,
        }
    }
}

fn several_nodes(root: &Root) -> Acts {
    match crate::memory_limit::nodes_with_memory(root).len() {
        0 | 1 => Acts::No("memory is on one node".to_owned()),
        _ => Acts::Yes,
    }
}

/// Memory tiers as Linux 6.1 and later show them; they follow from the hardware.
fn tiers(root: &Root) -> Acts {
    let tiers = root.names("sys/devices/virtual/memory_tiering");
    match tiers.iter().filter(|name| name.starts_with("memory_tier")).count() {
        0 | 1 => Acts::No("all memory is of one tier".to_owned()),
        _ => Acts::Yes,
    }
}

fn has_swap(root: &Root) -> bool {
    root.document("proc/swaps").is_ok_and(|text| text.lines().count() > 1)
}
