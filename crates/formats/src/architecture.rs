//! Architecture files of the NUMA benchmark suite: a few shell assignments, followed by
//! the output of `lscpu` pasted below them.
//!
//! ```text
//! SYSTEM_NAME="LUMI"
//! PARTITION="PART-G"
//! CCDS_PER_NUMA=2          # L3 groups in each node
//! SKIP_CORES=0,8,16        # optional: cpus that the system keeps
//! ```

use numalab_topology::{CpuSet, Machine};

use crate::error::ReadError;
use crate::lscpu::read_with_l3_groups;
use crate::reading::Reading;

const FORMAT: &str = "architecture file";

/// Known architecture files, written for this project: name and text.
pub const KNOWN: [(&str, &str); 2] = [
    ("lumi_partc", include_str!("../architectures/lumi_partc")),
    ("lumi_partg", include_str!("../architectures/lumi_partg")),
];

/// Returns the text of the known architecture file with this name.
pub fn known(name: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(known, _)| *known == name).map(|&(_, text)| text)
}

/// A partition of a cluster, as described by an architecture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Architecture {
    /// Name of the system, such as `LUMI`.
    pub system: String,
    /// Name of the partition, such as `PART-C`.
    pub partition: String,
    /// Cpus that must not be used for work.
    pub skip_cores: CpuSet,
    /// L3 groups in each node.
    pub ccds_per_numa: u32,
    /// One machine of the partition; its memory and distances are unknown.
    pub machine: Machine,
}

/// Parses an architecture file. Unknown lines are skipped, including lines after the `lscpu`
/// output, where copies often have terminal output.
///
/// # Errors
/// [`ReadError::Absent`] without system, partition, L3 groups per node or nodes;
/// [`ReadError::Syntax`] for a damaged value.
pub fn read(text: &str) -> Result<Reading<Architecture>, ReadError> {
    let system = required(text, "SYSTEM_NAME", "SYSTEM_NAME= line")?;
    let partition = required(text, "PARTITION", "PARTITION= line")?;
    let (line, value) = assignment(text, "CCDS_PER_NUMA")
        .ok_or(ReadError::Absent { format: FORMAT, what: "CCDS_PER_NUMA= line" })?;
    let ccds = value.parse().ok().filter(|ccds| (1..=1024).contains(ccds));
    let ccds_per_numa: u32 =
        ccds.ok_or_else(|| malformed(line, value, "a number from 1 to 1024"))?;
    let skip_cores = match assignment(text, "SKIP_CORES") {
        None => CpuSet::new(),
        Some((line, value)) => {
            value.parse().map_err(|_| malformed(line, value, "a list of cpus such as 0,8,16"))?
        }
    };
    let reading = read_with_l3_groups(text, Some(ccds_per_numa))?;
    if reading.value.nodes.is_empty() {
        let what = "`NUMA node0 CPU(s):` line";
        return Err(ReadError::Absent { format: FORMAT, what });
    }
    Ok(Reading {
        value: Architecture {
            system,
            partition,
            skip_cores,
            ccds_per_numa,
            machine: reading.value,
        },
        findings: reading.findings,
    })
}

fn required(text: &str, name: &str, what: &'static str) -> Result<String, ReadError> {
    match assignment(text, name) {
        Some((_, value)) if !value.is_empty() => Ok(value.to_owned()),
        _ => Err(ReadError::Absent { format: FORMAT, what }),
    }
}

/// Returns the line number and value of the first `NAME=value`, without quotes and comment.
fn assignment<'t>(text: &'t str, name: &str) -> Option<(usize, &'t str)> {
    text.lines().enumerate().find_map(|(index, line)| {
        let value = line.trim().strip_prefix(name)?.strip_prefix('=')?;
        Some((index + 1, unquote(value)))
    })
}

fn unquote(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote) {
            return rest.split(quote).next().unwrap_or(rest);
        }
    }
    value.split('#').next().unwrap_or(value).trim()
}

fn malformed(line: usize, found: &str, expected: &str) -> ReadError {
    ReadError::syntax(FORMAT, line, found, expected)
}
