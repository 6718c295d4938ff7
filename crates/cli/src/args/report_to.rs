//! The file and the format of a report about a program.

use std::path::PathBuf;

use clap::Args;
use numalab_page::Style;
use numalab_results::{Report, TakenReport};

use super::{Format, value};
use crate::failure::Failure;
use crate::output::{render, save, taken};

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
    /// Writes a report to the file, or else shows it in this style by `print`.
    pub fn deliver(
        &self,
        report: &dyn Report,
        style: Style,
        print: impl FnOnce(&str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let taken = taken();
        let report = &TakenReport { taken: &taken, report };
        match &self.output {
            Some(file) => {
                let format = self.format.unwrap_or(Format::Json);
                save(file, &render(report, format, Style::Plain)?)
            }
            None => print(&render(report, self.format.unwrap_or(Format::Text), style)?),
        }
    }
}
