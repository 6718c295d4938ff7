//! A workload that is ready to run.

use std::path::PathBuf;

use numalab_record::study::{Quantity, Reading};

use serde::{Deserialize, Serialize};

use crate::catalogue::{self, ToolReader, kernel_needs, strings};
use crate::command::{NUMALAB, SCRATCH, Service};
use crate::error::{OutputError, SpecError};
use crate::finished::{Ending, Finished};
use crate::need::{KernelNeed, Tool};
use crate::reader::Reader;

/// A command that prints its performance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Name, unique within a study.
    pub name: String,
    /// The service that is started before it and stopped after it.
    pub service: Option<Service>,
    /// The command line; the runner replaces [`SCRATCH`] and [`NUMALAB`].
    pub command: Vec<String>,
    /// The file for its standard input, which is empty by default.
    pub stdin: Option<PathBuf>,
    /// Timeout in seconds, after which it is stopped and has failed.
    pub timeout_s: u64,
    /// The programs that must be installed.
    pub tools: Vec<Tool>,
    /// The requirements on the kernel and the machine.
    pub kernel_needs: Vec<KernelNeed>,
    /// The relevant metrics; all in the output if empty.
    pub wanted: Vec<String>,
    pub reader: Reader,
}

impl Workload {
    /// Creates the workload of a tool of the catalogue with these arguments, or the default ones.
    pub(crate) fn of_tool(
        tool: &catalogue::ToolEntry,
        name: String,
        arguments: Option<&[String]>,
    ) -> Self {
        let arguments = arguments.map_or_else(|| strings(tool.arguments), <[String]>::to_vec);
        let command = [strings(tool.command), arguments.clone(), strings(tool.end)].concat();
        let packaged = |&(program, package, version): &_| Tool::packaged(program, package, version);
        Self {
            name,
            service: tool.service.map(|service| service()),
            timeout_s: tool.timeout_s,
            tools: tool.programs.iter().map(packaged).collect(),
            kernel_needs: kernel_needs(&command),
            wanted: strings(tool.metrics),
            reader: Reader::Tool(ToolReader { tool: tool.name.to_owned(), arguments }),
            stdin: None,
            command,
        }
    }

    /// Returns the readings of a run: the wanted ones in their order.
    ///
    /// # Errors
    /// [`OutputError::Failed`] if the command did not exit with 0, otherwise the problem with its
    /// output.
    pub fn read(&self, finished: &Finished<'_>) -> Result<Vec<Reading>, OutputError> {
        if finished.ending != Ending::Exited(0) {
            let last_words = finished.last_words();
            return Err(OutputError::failed(&self.command, finished.ending, last_words));
        }
        let mut readings = self.reader.read(finished)?;
        if self.wanted.is_empty() {
            return Ok(readings);
        }
        let available: Vec<&str> =
            readings.iter().map(|reading| reading.quantity.metric.as_str()).collect();
        let available = available.join(", ");
        let take = |wanted: &String| {
            let found = readings.iter().position(|reading| reading.quantity.metric == *wanted);
            let (wanted, available) = (wanted.clone(), available.clone());
            let index = found.ok_or(OutputError::NoMetric { wanted, available })?;
            Ok(readings.swap_remove(index))
        };
        self.wanted.iter().map(take).collect()
    }

    /// Returns the relevant metrics, before it has run; empty for a tool with metrics that depend
    /// on its output (`wanted` is empty, and they are not user-defined).
    ///
    /// # Errors
    /// [`SpecError::NoSuchMetric`] for a wanted metric that its output never has.
    pub fn metrics(&self) -> Result<Vec<Quantity>, SpecError> {
        if let Reader::Own(metrics) = &self.reader {
            return Ok(metrics.iter().map(|own| own.quantity.clone()).collect());
        }
        let known = |metric: &String| {
            let (name, metric) = (self.name.clone(), metric.clone());
            self.reader.metric(&metric).ok_or(SpecError::NoSuchMetric { name, metric })
        };
        self.wanted.iter().map(known).collect()
    }

    /// Returns the command line with the placeholders replaced. `scratch` is the run's directory,
    /// `numalab` the program of this name.
    pub fn filled_in(words: &[String], scratch: &str, numalab: &str) -> Vec<String> {
        let fill = |(index, word): (usize, &String)| match (index, word.as_str()) {
            (0, NUMALAB) => numalab.to_owned(),
            _ => word.replace(SCRATCH, scratch),
        };
        words.iter().enumerate().map(fill).collect()
    }

    /// Returns true if the workload needs a scratch directory.
    pub fn needs_scratch(&self) -> bool {
        let service = self.service.iter().flat_map(|service| &service.command);
        self.command.iter().chain(service).any(|word| word.contains(SCRATCH))
    }
}
