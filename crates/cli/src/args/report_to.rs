//! Where the report about a program goes.

use std::path::PathBuf;

use clap::Args;

use super::{Format, value};

/// The format of a report about a program, and its file.
#[derive(Debug, Args)]
pub(crate) struct ReportTo {
    /// Format of the report [default: text; json with --output]
    #[arg(long, value_parser = value::format())]
    pub format: Option<Format>,
    /// Write the report to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
