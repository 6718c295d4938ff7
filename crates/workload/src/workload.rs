//! A workload, ready to be run.

use std::path::PathBuf;

use numalab_record::study::{Quantity, Reading};

use serde::{Deserialize, Serialize};

use crate::catalogue::{self, ToolReader, kernel_needs, strings};
use crate::command::{NUMALAB, SCRATCH, Service};
use crate::error::{OutputError, SpecError};
use crate::finished::{Ending, Finished};
use crate::need::{KernelNeed, Tool};
use crate::reader::Reader;

/// Something to run that prints how well it went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Its name, unique within a study.
    pub name: String,
    /// What must be up before, and is ended afterwards.
    pub service: Option<Service>,
    /// The command line; [`SCRATCH`] and [`NUMALAB`] are filled in by the runner.
    pub command: Vec<String>,
    /// The file that it reads on standard input; nothing without it.
    pub stdin: Option<PathBuf>,
    /// After how many seconds it is ended and has failed.
    pub timeout_s: u64,
    /// The programs that must be installed.
    pub tools: Vec<Tool>,
    /// What the kernel and the machine must have.
    pub kernel_needs: Vec<KernelNeed>,
    /// The metrics that matter; all that the output has if empty.
    pub wanted: Vec<String>,
    /// How the output is read.
    pub reader: Reader,
}

impl Workload {
    /// What a tool of the catalogue does with these arguments, or the usual ones.
    pub(crate) fn of_tool(
        tool: &catalogue::Entry,
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

    /// The readings of a run: the wanted ones in their order.
    ///
    /// # Errors
    /// [`OutputError::Failed`] if the command did not end with 0, else what is wrong
    /// with its output.
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

    /// The metrics that matter, known before it has run; none for a tool whose metrics
    /// depend on what it finds (`wanted` is empty, and they are not the user's own).
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

    /// The command line with the places filled in. `scratch` is the run's own directory,
    /// `numalab` the program of this name.
    #[must_use]
    pub fn filled_in(words: &[String], scratch: &str, numalab: &str) -> Vec<String> {
        let fill = |(index, word): (usize, &String)| match (index, word.as_str()) {
            (0, NUMALAB) => numalab.to_owned(),
            _ => word.replace(SCRATCH, scratch),
        };
        words.iter().enumerate().map(fill).collect()
    }

    /// Whether a directory of its own must be made for it.
    #[must_use]
    pub fn needs_scratch(&self) -> bool {
        let service = self.service.iter().flat_map(|service| &service.command);
        self.command.iter().chain(service).any(|word| word.contains(SCRATCH))
    }
}
