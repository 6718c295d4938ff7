//! A study of two commands.

use numalab_record::study::{FactorKind, Rules, Setting};
use numalab_workload::{MetricSpec, WorkloadSpec};

use super::{BackendSpec, Factor, Level, NamedLevel, Study};

impl Study {
    /// Returns a study that runs two shell commands alternately on this machine.
    pub fn of_commands(commands: [&str; 2], metric: MetricSpec, rules: Rules) -> Self {
        let level = |(name, command): (&str, &str)| {
            let set = [("command".to_owned(), Setting::Text(command.to_owned()))].into();
            Level::Named(NamedLevel { name: name.to_owned(), set })
        };
        let [baseline, candidate] = commands;
        Self {
            name: "compare".to_owned(),
            question: format!("Is `{candidate}` better than `{baseline}`?"),
            note: None,
            backend: BackendSpec::default(),
            rules,
            factors: vec![Factor {
                name: "command".to_owned(),
                kind: FactorKind::Choice,
                levels: ["A", "B"].into_iter().zip(commands).map(level).collect(),
            }],
            workloads: vec![WorkloadSpec {
                name: Some("shell".to_owned()),
                command: Some(["sh", "-c", "{command}"].map(str::to_owned).to_vec()),
                metric: vec![metric],
                ..WorkloadSpec::default()
            }],
            published: Vec::new(),
        }
    }
}
