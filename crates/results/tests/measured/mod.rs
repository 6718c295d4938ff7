//! Synthetic runs.
#![allow(dead_code, clippy::allow_attributes, reason = "each test uses a part of this")]

use numalab_record::{Cell, CellResult, Environment, Kind, Metric, Outcome, Run, Sample};
use numalab_topology::Machine;

/// Returns a run of this machine.
pub fn run_of(machine: Machine) -> Run {
    Run {
        schema: Kind::Run.into(),
        name: "measure".into(),
        label: None,
        version: String::new(),
        command: Vec::new(),
        started_unix_ms: 0,
        seed: 0,
        precision: 0.01,
        budget_ns: 0,
        environment: Environment::default(),
        machine,
        survey: None,
        launch: None,
        plan: Vec::new(),
    }
}

/// Returns a cell that is precise after three windows of these values.
pub fn finished(cell: Cell, metric: Metric, value: impl Fn(u32) -> f64) -> CellResult {
    let sample = |index| Sample {
        cell: cell.id.clone(),
        metric,
        index,
        value: value(index),
        start_ns: 0,
        duration_ns: 1,
        work: 1,
        disturbed: None,
    };
    let samples = (0..3).map(sample).collect();
    CellResult { cell, ended: Some(Outcome::Precise), placements: Vec::new(), samples }
}
