//! The file and the format of a report about a program.

use std::path::PathBuf;

use clap::Args;
use numalab_results::Report;

use super::{Format, value};
use crate::failure::Failure;
use crate::output::{render, save};

/// The format of a report about a program, and its file.
#[derive(Debug, Args)]
pub(crate) struct ReportTo {
    /// Format of the report [default: text; json with --output]
    #[arg(long, value_parser = value::format_of_memory())]
    pub format: Option<Format>,
    /// Write the report to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl ReportTo {
    /// Writes a report to the file, or else shows it by `print`.
    pub fn deliver(
        &self,
        report: &dyn Report,
        print: impl FnOnce(&str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match &self.output {
            Some(file) => save(file, &render(report, self.format.unwrap_or(Format::Json))?),
            None => print(&render(report, self.format.unwrap_or(Format::Text))?),
        }
    }
}
