//! The agent's reports, as one JSON object per line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The first domain's name, in `xl list` and here.
pub const FIRST_DOMAIN: &str = "Domain-0";

/// An action or an observation of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XenEvent {
    Toolstack {
        /// Duration of the domain's start, in seconds.
        seconds: f64,
        /// The output of `xl info -n`.
        info: String,
        /// The lines of the hypervisor's log about NUMA.
        log: Vec<String>,
    },
    /// Every node has a separate cpupool: `xl cpupool-list -c`.
    Split {
        /// A title, then a line for each pool with its name and its cpus.
        listed: String,
    },
    Created {
        domain: String,
        id: u32,
        /// Duration of `xl create` or `xl restore`, in seconds.
        seconds: f64,
    },
    /// A domain is excluded from the following steps.
    Lost {
        domain: String,
        phase: LostPhase,
        reason: String,
    },
    Placed(DomainPlace),
    /// A domain has finished a job.
    Answered(DomainAnswer),
    /// All domains have been destroyed.
    Ended {
        /// Time from the start of the agent, in seconds.
        seconds: f64,
    },
}

/// The phase in which a domain was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LostPhase {
    /// During its creation.
    Create,
    /// Before its first response.
    Boot,
    Job,
}

/// The placement of a domain's memory and cpus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainPlace {
    pub domain: String,
    /// Frames on each node of the machine, from the domain's own table of machine frames
    /// (`xen-mfndump dump-p2m`) and the machine's memory map.
    pub frames: BTreeMap<u32, u64>,
    /// Frames with an address outside every node's memory.
    pub elsewhere: u64,
    /// Frames on each node according to the hypervisor (debug key `u`); with `numa=off` it treats
    /// the machine as one node.
    pub hypervisor: BTreeMap<u32, u64>,
    pub vcpus: Vec<VcpuPlace>,
    /// Reasons why some values are unknown.
    pub unknown: Vec<String>,
}

/// The placement of a vCPU (`xl vcpu-list`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VcpuPlace {
    pub vcpu: u32,
    /// The machine's cpu it last ran on, if it has run.
    pub cpu: Option<u32>,
    /// Hard affinity: the cpus that the vCPU may run on.
    pub hard: String,
}

/// The result of a job in one domain, including [`FIRST_DOMAIN`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainAnswer {
    pub domain: String,
    /// The job's index in the plan.
    pub job: usize,
    /// The command's exit code; 128 and above is a signal.
    pub exit: u8,
    /// Output of the command, both streams together.
    pub output: String,
    /// Start time, by the clock that all domains share, in ns.
    pub begin_ns: u64,
    /// End time, by the same clock, in ns.
    pub end_ns: u64,
}

impl DomainPlace {
    /// Returns the total number of frames that were found.
    pub fn total(&self) -> u64 {
        self.frames.values().sum::<u64>() + self.elsewhere
    }

    /// Returns the share of the domain's frames on this node; `None` if no frames were found.
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
            XenEvent::Placed(DomainPlace {
                domain: "d1".to_owned(),
                frames: BTreeMap::from([(0, 3), (2, 1)]),
                ..DomainPlace::default()
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
    fn a_share_includes_frames_outside_every_node() {
        let place = DomainPlace {
            frames: BTreeMap::from([(0, 6), (1, 2)]),
            elsewhere: 2,
            ..DomainPlace::default()
        };
        assert_eq!(place.share_on(0), Some(0.6));
        assert_eq!(place.share_on(7), Some(0.0));
        assert_eq!(DomainPlace::default().share_on(0), None);
    }
}
