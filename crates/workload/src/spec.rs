//! The description of a workload by a user.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::catalogue::{self, ToolEntry};
use crate::error::SpecError;
use crate::need::Tool;
use crate::own::{MetricSpec, OwnMetric};
use crate::reader::Reader;
use crate::workload::Workload;

/// Default timeout of a user's own command, in seconds.
const OWN_TIMEOUT_S: u64 = 600;

/// A workload as written in TOML: a tool of the catalogue, or a command with metrics.
///
/// ```toml
/// [[workload]]
/// tool = "perf-sched-pipe"
/// arguments = ["-l", "20000"]
///
/// [[workload]]
/// name = "solver"
/// command = ["./solver", "--quick"]
/// [[workload.metric]]
/// name = "rate"
/// better = "higher"
/// pattern = "Rate: {steps/s} steps per second"
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WorkloadSpec {
    /// Name within the study; by default that of the tool or the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The tool's arguments in place of the default ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<String>>,
    /// The relevant metrics of the tool, in place of the default ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
    /// A user's own command; `{scratch}` in it is an empty directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The file for the command's standard input, which is empty by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<PathBuf>,
    /// The Debian package of the command's program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metric: Vec<MetricSpec>,
    /// Timeout in seconds, after which it is stopped and has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
}

impl WorkloadSpec {
    /// Creates the workload of a tool with its default arguments.
    pub fn of_tool(tool: &str) -> Self {
        Self { tool: Some(tool.to_owned()), ..Self::default() }
    }

    /// Returns the workload's name within its study.
    pub fn name(&self) -> &str {
        let program = self.command.as_ref().and_then(|command| command.first());
        let named = self.name.as_ref().or(self.tool.as_ref()).or(program);
        named.map_or("", String::as_str)
    }

    /// Resolves it to a workload that is ready to run.
    ///
    /// # Errors
    /// [`SpecError`], with the workload, the value found and the expected form.
    pub fn resolve(&self) -> Result<Workload, SpecError> {
        let name = self.name().to_owned();
        if self.timeout_s == Some(0) {
            return Err(SpecError::NoTime { name });
        }
        match (&self.tool, &self.command) {
            (Some(tool), None) => self.resolve_tool(name, tool),
            (None, Some(command)) if !command.is_empty() => self.resolve_command(name, command),
            (None, Some(_)) => {
                Err(SpecError::ToolOrCommand { name, found: "a command without a program" })
            }
            (Some(_), Some(_)) => Err(SpecError::ToolOrCommand { name, found: "both" }),
            (None, None) => Err(SpecError::ToolOrCommand { name, found: "neither" }),
        }
    }

    fn resolve_tool(&self, name: String, tool: &str) -> Result<Workload, SpecError> {
        let misplaced = |key| SpecError::Misplaced { name: name.clone(), key, with: "command" };
        if !self.metric.is_empty() {
            return Err(misplaced("metric"));
        }
        if self.package.is_some() {
            return Err(misplaced("package"));
        }
        if self.stdin.is_some() {
            return Err(misplaced("stdin"));
        }
        let entry: &ToolEntry = catalogue::entry(tool).ok_or_else(|| SpecError::NoTool {
            name: name.clone(),
            tool: tool.to_owned(),
            known: catalogue::names().collect::<Vec<_>>().join(", "),
        })?;
        let mut workload = Workload::of_tool(entry, name, self.arguments.as_deref());
        if !self.metrics.is_empty() {
            workload.wanted.clone_from(&self.metrics);
        }
        workload.timeout_s = self.timeout_s.unwrap_or(workload.timeout_s);
        workload.metrics()?;
        Ok(workload)
    }

    fn resolve_command(&self, name: String, command: &[String]) -> Result<Workload, SpecError> {
        let misplaced = |key| SpecError::Misplaced { name: name.clone(), key, with: "tool" };
        if self.arguments.is_some() {
            return Err(misplaced("arguments"));
        }
        if !self.metrics.is_empty() {
            return Err(misplaced("metrics"));
        }
        if self.metric.is_empty() {
            return Err(SpecError::NoMetric { name });
        }
        let metrics: Result<Vec<OwnMetric>, SpecError> =
            self.metric.iter().map(|metric| metric.check(&name)).collect();
        let metrics = metrics?;
        for (index, own) in metrics.iter().enumerate() {
            if metrics[..index].iter().any(|earlier| earlier.quantity.metric == own.quantity.metric)
            {
                let metric = own.quantity.metric.clone();
                return Err(SpecError::MetricTwice { name, metric });
            }
        }
        let tool = Tool {
            program: command[0].clone(),
            package: self.package.clone(),
            version_arguments: None,
        };
        Ok(Workload {
            name,
            service: None,
            command: command.to_vec(),
            stdin: self.stdin.clone(),
            timeout_s: self.timeout_s.unwrap_or(OWN_TIMEOUT_S),
            tools: vec![tool],
            kernel_needs: Vec::new(),
            wanted: Vec::new(),
            reader: Reader::Own(metrics),
        })
    }
}
