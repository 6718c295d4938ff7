//! Decides whether a change of a knob can have an effect on this machine.

use numalab_record::NoEffect;
use numalab_record::system::KnobNow;

use super::damon;
use super::file::{self, FileState};
use super::knob::{Knob, Nature};
use numalab_host::Root;

/// True if a change of a knob can have an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acts {
    /// A change can have an effect.
    Yes,
    /// A change cannot have an effect, for this reason.
    No(NoEffect),
}

impl Knob {
    /// Returns the knob's current value, and whether a change can have an effect, with its
    /// description `summary`.
    pub fn now(&self, root: &Root, summary: String) -> KnobNow {
        let why_not = match self.acts(root) {
            Acts::Yes => None,
            Acts::No(why) => Some(why),
        };
        let (state, value) = self.state(root).into_parts();
        KnobNow {
            name: self.name().to_owned(),
            files: self.files().iter().map(|file| format!("/{file}")).collect(),
            state,
            value,
            acts: why_not.is_none(),
            why_not,
            summary,
        }
    }

    /// Reports whether a change can have an effect on this machine. The knob's value does not
    /// matter.
    pub fn acts(&self, root: &Root) -> Acts {
        let Some(path) = self.files().first() else {
            return Acts::No(NoEffect::NothingToSet);
        };
        match self.state(root) {
            FileState::Absent => return Acts::No(NoEffect::NotInKernel),
            FileState::Denied(reason) => return Acts::No(NoEffect::Denied(reason)),
            FileState::WriteOnly if self.nature != Nature::Trigger => {
                return Acts::No(NoEffect::WriteOnly);
            }
            FileState::WriteOnly | FileState::Value(_) => {}
        }
        if !file::is_writable(root, path) {
            return Acts::No(NoEffect::ReadOnly);
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
            (_, "swappiness") if !has_swap(root) => Acts::No(NoEffect::NoSwap),
            ("smt", _) => match self.state(root) {
                // `forceoff` lasts until the next boot; `notsupported` and `notimplemented` are
                // final.
                FileState::Value(value) if value == "on" || value == "off" => Acts::Yes,
                FileState::Value(value) => Acts::No(NoEffect::Fixed(value)),
                _ => Acts::No(NoEffect::NoSiblings),
            },
            _ => Acts::Yes,
        }
    }
}

fn several_nodes(root: &Root) -> Acts {
    match numalab_host::nodes_with_memory(root).len() {
        0 | 1 => Acts::No(NoEffect::OneNode),
        _ => Acts::Yes,
    }
}

/// Reports whether memory has several tiers, which are visible from Linux 6.1 on and follow from
/// the hardware.
fn tiers(root: &Root) -> Acts {
    let tiers = root.names("sys/devices/virtual/memory_tiering");
    match tiers.iter().filter(|name| name.starts_with("memory_tier")).count() {
        0 | 1 => Acts::No(NoEffect::OneTier),
        _ => Acts::Yes,
    }
}

fn has_swap(root: &Root) -> bool {
    // The first line is the heading.
    root.document("proc/swaps").is_ok_and(|text| text.lines().count() > 1)
}
