//! The output of `likwid-topology`: hardware threads, caches and NUMA domains.
//!
//! The text of versions 3 to 5 is read, with `-c` and `-g`, and the table of `-O`. Sizes of memory have
//! six digits. GPUs and drawings are left out.

mod list;
mod whole;

use std::collections::BTreeMap;

use numalab_topology::{CacheKind, CpuId, Findings, NodeId};

use crate::error::ReadError;
use crate::pasted;
use crate::reading::Reading;
use list::{List, is_part, number, size};

const FORMAT: &str = "likwid-topology";

/// Labels with nothing that a machine has, or that follows from the tables.
const IGNORED: [&str; 10] = [
    "CPU type",
    "CPU stepping",
    "CPU clock",
    "CPU dies",
    "Cores per socket",
    "Threads per core",
    "Number of sets",
    "Cache type",
    "Shared by threads",
    "Shared among threads",
];

/// Reads the output of `likwid-topology`.
///
/// # Errors
/// [`ReadError::Syntax`] for a damaged line and for an unrecognised line within the output,
/// [`ReadError::Cut`] if fewer sockets, cpus or domains are described than announced,
/// [`ReadError::Row`] if a domain does not have a distance to each, [`ReadError::Several`] for the lines
/// of several machines, [`ReadError::Absent`] if a part is missing, or the tool saw a part of the machine.
pub fn read(text: &str) -> Result<Reading, ReadError> {
    let mut reader = Reader::default();
    let lines = pasted::lines(text, &mut reader.findings);
    pasted::check_one_machine(FORMAT, &lines)?;
    let is_within = |line: &str| !["GPU Topology", "Graphical"].iter().any(|of| line.contains(of));
    for (number, line) in lines.iter().take_while(|(_, line)| is_within(line)) {
        reader.line(*number, line.trim())?;
    }
    reader.finish()
}

/// The list that a line with only numbers continues, after a wrapped line.
#[derive(Clone, Copy, Debug)]
enum Open {
    Socket,
    CacheGroups,
    Processors,
    Distances,
}

/// A line with a label.
#[derive(Clone, Copy, Debug)]
struct Field<'t> {
    /// Number of the line in the text.
    line: usize,
    text: &'t str,
    label: &'t str,
    value: &'t str,
}

impl Field<'_> {
    fn wrong(&self, expected: &str) -> ReadError {
        malformed(self.line, self.text, expected)
    }
}

#[derive(Debug)]
struct Row {
    core: u32,
    socket: u32,
}

#[derive(Debug, Default)]
struct Domain {
    id: NodeId,
    /// Number of its line in the text.
    line: usize,
    processors: List,
    distances: List,
    total_bytes: Option<u64>,
    free_bytes: Option<u64>,
}

#[derive(Debug)]
struct Level {
    level: u8,
    kind: CacheKind,
    size_bytes: Option<u64>,
    line_bytes: Option<u32>,
    ways: Option<u32>,
    groups: List,
}

#[derive(Debug, Default)]
struct Reader {
    findings: Findings,
    /// True once the output has begun.
    has_begun: bool,
    /// The columns of the table of hardware threads, while its rows are read.
    columns: Option<Vec<String>>,
    rows: BTreeMap<CpuId, Row>,
    socket_count: Option<usize>,
    sockets: Vec<List>,
    levels: Vec<Level>,
    domain_count: Option<usize>,
    domains: Vec<Domain>,
    open: Option<Open>,
    /// Lines before and after the output.
    around: Vec<(usize, String)>,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), ReadError> {
        if line.is_empty() {
            return Ok(());
        }
        // The table of `-O` has the same labels, with commas.
        let is_ruler = line.chars().all(|c| c == '-' || c == '*') && line != "*";
        let is_heading = ["STRUCT,", "TABLE,"].iter().any(|start| line.starts_with(start))
            || line.trim_end_matches(',').ends_with(" Topology");
        if is_ruler || is_heading {
            (self.columns, self.open) = (None, None);
            return Ok(());
        }
        if line.starts_with("HWThread") {
            if !self.rows.is_empty() {
                return Err(malformed(number, line, "the output of one machine"));
            }
            self.has_begun = true;
            let columns = line.split([' ', '\t', ',']).filter(|word| !word.is_empty());
            self.columns = Some(columns.map(str::to_owned).collect());
            return Ok(());
        }
        if let Some((label, value)) = line.split_once(':') {
            let value = value.trim_matches([',', ' ', '\t']);
            return self.field(Field { line: number, text: line, label: label.trim(), value });
        }
        if is_part(line) {
            return match self.columns.take() {
                Some(columns) => {
                    self.row(number, line, &columns)?;
                    self.columns = Some(columns);
                    Ok(())
                }
                None => self.continued(number, line),
            };
        }
        if ["No NUMA", "NUMA is not supported"].iter().any(|start| line.starts_with(start)) {
            self.domain_count = Some(0);
            return Ok(());
        }
        self.other(number, line)
    }

    /// Keeps a line before or after the output; within it the line is an error.
    fn other(&mut self, number: usize, line: &str) -> Result<(), ReadError> {
        let is_within = self.has_begun && self.check_domains().is_err();
        if is_within && !pasted::is_prompt(line) {
            return Err(malformed(number, line, "a line of likwid-topology"));
        }
        self.around.push((number, line.to_owned()));
        Ok(())
    }

    fn row(&mut self, line: usize, text: &str, columns: &[String]) -> Result<(), ReadError> {
        let words: Vec<&str> =
            text.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
        if words == ["*"] {
            // Wrapped before the last column.
            return Ok(());
        }
        let of = |name: &str| {
            let column = columns.iter().position(|column| column == name);
            let word = column.and_then(|column| words.get(column)).copied().unwrap_or_default();
            number(word).ok_or_else(|| malformed(line, text, &format!("a number for {name}")))
        };
        let row = Row { core: of("Core")?, socket: of("Socket")? };
        match self.rows.insert(CpuId(of("HWThread")?), row) {
            None => Ok(()),
            Some(_) => Err(malformed(line, text, "each hardware thread once")),
        }
    }

    fn field(&mut self, of: Field<'_>) -> Result<(), ReadError> {
        let Field { line, text, label, value } = of;
        self.open = None;
        let (name, id) = label.rsplit_once(' ').unwrap_or((label, ""));
        match (name, number(id)) {
            ("Socket", Some(_)) => {
                self.sockets.push(List::default());
                self.open = Some(Open::Socket);
                return self.continued(line, value);
            }
            ("Domain", Some(id)) => return self.domain(line, text, id),
            _ => {}
        }
        let count = || value.parse().map_err(|_| of.wrong("a number"));
        match label {
            "CPU name" => self.has_begun = true,
            "Sockets" => self.socket_count = Some(count()?),
            "NUMA domains" => self.domain_count = Some(count()?),
            "Domain" => {
                let id = number(value).ok_or_else(|| of.wrong("the number of a domain"))?;
                return self.domain(line, text, id);
            }
            "Level" => {
                let level = value.parse().map_err(|_| of.wrong("the level of a cache"))?;
                let kind = if level == 1 { CacheKind::Data } else { CacheKind::Unified };
                let (size_bytes, line_bytes, ways) = (None, None, None);
                let groups = List::default();
                self.levels.push(Level { level, kind, size_bytes, line_bytes, ways, groups });
            }
            "Size" | "Type" | "Associativity" | "Cache line size" | "Cache groups" => {
                return self.of_level(of);
            }
            "Processors"
            | "Distances"
            | "Relative distance to nodes"
            | "Free memory"
            | "Total memory"
            | "Memory" => return self.of_domain(of),
            label if IGNORED.contains(&label) => {}
            _ => self.around.push((line, text.to_owned())),
        }
        Ok(())
    }

    fn domain(&mut self, line: usize, text: &str, id: u32) -> Result<(), ReadError> {
        let id = NodeId(id);
        if self.domains.iter().any(|domain| domain.id == id) {
            return Err(malformed(line, text, "each domain once"));
        }
        self.domains.push(Domain { id, line, ..Domain::default() });
        Ok(())
    }

    fn of_level(&mut self, of: Field<'_>) -> Result<(), ReadError> {
        let Field { line, label, value, .. } = of;
        let level = self.levels.last_mut().ok_or_else(|| of.wrong("`Level:` before it"))?;
        let positive = || value.parse().ok().filter(|&value: &u32| value > 0);
        match label {
            "Size" => {
                let bytes = size(value).ok_or_else(|| of.wrong("a size such as 32 kB"))?;
                level.size_bytes = Some(bytes).filter(|&bytes| bytes > 0);
            }
            "Type" if value.starts_with("Unified") => level.kind = CacheKind::Unified,
            "Type" if value.starts_with("Data") => level.kind = CacheKind::Data,
            "Type" => level.kind = CacheKind::Instruction,
            "Associativity" => level.ways = positive(),
            "Cache line size" => level.line_bytes = positive(),
            _ => {
                self.open = Some(Open::CacheGroups);
                return self.continued(line, value);
            }
        }
        Ok(())
    }

    fn of_domain(&mut self, of: Field<'_>) -> Result<(), ReadError> {
        let Field { line, label, value, .. } = of;
        let domain = self.domains.last_mut().ok_or_else(|| of.wrong("`Domain:` before it"))?;
        let bytes = |text: &str| size(text).ok_or_else(|| of.wrong("a size such as 24105.1 MB"));
        match label {
            "Processors" => self.open = Some(Open::Processors),
            "Free memory" => domain.free_bytes = Some(bytes(value)?),
            "Total memory" => domain.total_bytes = Some(bytes(value)?),
            "Memory" => {
                let parts = value.split_once(" free of total ");
                let (free, total) =
                    parts.ok_or_else(|| of.wrong("`free of total` between sizes"))?;
                (domain.free_bytes, domain.total_bytes) = (Some(bytes(free)?), Some(bytes(total)?));
            }
            _ => self.open = Some(Open::Distances),
        }
        match self.open {
            Some(_) => self.continued(line, value),
            None => Ok(()),
        }
    }

    /// Adds numbers to the list that is open.
    fn continued(&mut self, line: usize, text: &str) -> Result<(), ReadError> {
        let list = match self.open {
            Some(Open::Socket) => self.sockets.last_mut(),
            Some(Open::CacheGroups) => self.levels.last_mut().map(|level| &mut level.groups),
            Some(Open::Processors) => self.domains.last_mut().map(|of| &mut of.processors),
            Some(Open::Distances) => self.domains.last_mut().map(|of| &mut of.distances),
            None => None,
        };
        let list = list.ok_or_else(|| malformed(line, text, "a label for its numbers"))?;
        list.add(text).ok_or_else(|| malformed(line, text, "a list of numbers"))
    }
}

fn malformed(line: usize, found: &str, expected: &str) -> ReadError {
    ReadError::syntax(FORMAT, line, found, expected)
}
