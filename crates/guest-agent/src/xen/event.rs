//! What the agent reports, as one JSON object a line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The first domain's name, in `xl list` as here.
pub const FIRST_DOMAIN: &str = "Domain-0";

/// Something that the agent did or found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XenEvent {
    /// The toolstack answers.
    Toolstack {
        /// How long it took to start, in seconds.
        seconds: f64,
        /// `xl info -n`.
        info: String,
        /// The lines of the hypervisor's log that are about NUMA.
        log: Vec<String>,
    },
    /// Every node has a cpupool of its own: `xl cpupool-list -c`.
    Split {
        /// A title, then a line for each pool: its name and its cpus.
        listed: String,
    },
    /// A domain has been made.
    Created {
        /// Its name.
        domain: String,
        /// Its number.
        id: u32,
        /// How long `xl create` or `xl restore` took, in seconds.
        seconds: f64,
    },
    /// A domain is no part of what follows, for a reason.
    Lost {
        /// Its name.
        domain: String,
        /// What was being done.
        phase: LostPhase,
        /// Why.
        reason: String,
    },
    /// Where a domain is.
    Placed(Place),
    /// A domain has done a job.
    Answered(DomainAnswer),
    /// All domains are gone again.
    Ended {
        /// From the start of the agent, in seconds.
        seconds: f64,
    },
}

/// When a domain was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LostPhase {
    /// While it was made.
    Create,
    /// Before its first word.
    Boot,
    /// While it ran a job.
    Job,
}

/// Where a domain's memory and cpus are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its name.
    pub domain: String,
    /// Frames on each node of the machine, from the domain's own table of machine frames
    /// (`xen-mfndump dump-p2m`) and the machine's memory map.
    pub frames: BTreeMap<u32, u64>,
    /// Frames whose address is in no node's memory.
    pub elsewhere: u64,
    /// Frames on each node as the hypervisor has it (debug key `u`); with `numa=off` it
    /// takes all for one node.
    pub hypervisor: BTreeMap<u32, u64>,
    /// The virtual cpus.
    pub vcpus: Vec<VcpuPlace>,
    /// The node affinity that `xl list -n` shows.
    pub node_affinity: String,
    /// Why something is not known.
    pub unknown: Vec<String>,
}

/// Where a virtual cpu is (`xl vcpu-list`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VcpuPlace {
    /// Its number.
    pub vcpu: u32,
    /// The machine's cpu it last ran on, if it has run.
    pub cpu: Option<u32>,
    /// Where it may run.
    pub hard: String,
    /// Where it should run.
    pub soft: String,
}

/// What came of a job in one domain, [`FIRST_DOMAIN`] included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainAnswer {
    /// The domain's name.
    pub domain: String,
    /// The job's place in the plan.
    pub job: usize,
    /// The command's exit code; 128 and more is a signal.
    pub exit: u8,
    /// What it printed, both outputs together.
    pub output: String,
    /// When it began, by the clock all domains share, in ns.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

impl Place {
    /// All frames that were found.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.frames.values().sum::<u64>() + self.elsewhere
    }

    /// The share of the domain's frames that lie on this node; `None` if none were found.
    #[must_use]
    pub fn share_on(&self, node: u32) -> Option<f64> {
        let total = self.total();
        let here = self.frames.get(&node).copied().unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "frames of a machine fit in 53 bits")]
        (total > 0).then(|| here as f64 / total as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_lines_of_json_and_back() {
        let events = [
            XenEvent::Created { domain: "d1".to_owned(), id: 1, seconds: 5.5 },
            XenEvent::Lost {
                domain: "d2".to_owned(),
                phase: LostPhase::Create,
                reason: "not enough memory".to_owned(),
            },
            XenEvent::Placed(Place {
                domain: "d1".to_owned(),
                frames: BTreeMap::from([(0, 3), (2, 1)]),
                ..Place::default()
            }),
            XenEvent::Answered(DomainAnswer { output: "a\nb".to_owned(), ..Default::default() }),
        ];
        for event in events {
            let line = serde_json::to_string(&event).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<XenEvent>(&line).unwrap(), event);
        }
    }

    #[test]
    fn a_share_counts_frames_that_are_nowhere() {
        let place =
            Place { frames: BTreeMap::from([(0, 6), (1, 2)]), elsewhere: 2, ..Place::default() };
        assert_eq!(place.share_on(0), Some(0.6));
        assert_eq!(place.share_on(7), Some(0.0));
        assert_eq!(Place::default().share_on(0), None);
    }
}
