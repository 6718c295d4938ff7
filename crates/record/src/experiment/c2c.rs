//! A cache line that bounces between two cpus.

use numalab_topology::{CpuId, NodeId};
use serde::{Deserialize, Serialize};

use super::worker::WorkerPlan;
use super::{Description, Family};
use crate::metric::Metric;

/// A core-to-core cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct C2cCell {
    /// The cpu that sends first.
    pub from: CpuId,
    /// The cpu that answers.
    pub to: CpuId,
    /// The node that holds the line's page.
    pub home: NodeId,
}

impl Description for C2cCell {
    fn kind(&self) -> &'static str {
        "core-to-core"
    }

    fn id(&self) -> String {
        format!("c2c/cpu{}/cpu{}/home{}", self.from, self.to, self.home)
    }

    fn workers(&self) -> Vec<WorkerPlan> {
        [self.from, self.to].map(|cpu| WorkerPlan { cpu, node: self.home }).to_vec()
    }

    fn family(&self, metric: Metric, _: u64) -> Option<Family> {
        metric.is_compared().then_some(Family::CoreToCore)
    }
}
