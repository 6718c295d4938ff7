//! The output of `numactl --hardware`, including copies from a mail or a terminal.
//!
//! It contains the online nodes, their online cpus, memory and free memory in whole MiB, and
//! distances, but no packages, cores or caches.

mod cpus;
mod words;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use numalab_topology::{Distances, Findings, NodeId, NodeSet};

use crate::assembly::Assembly;
use crate::distance::record;
use crate::error::ReadError;
use crate::feature::{Carried, Feature};
use crate::pasted;
use crate::reading::Reading;

use cpus::{Cut, Lists};
use words::{are_numbers, is_list, is_row, lines, malformed, mebibytes, node_id, place};
pub use write::write;

const FORMAT: &str = "numactl --hardware";

/// The features that the text represents.
pub const CARRIED: Carried = Carried {
    format: "numactl --hardware",
    features: &[Feature::Nodes, Feature::Memory, Feature::Distances, Feature::FreeMemory],
    but: &[Feature::PartialDistances, Feature::Bytes],
};

/// Reads the output of `numactl --hardware`. Wrapped lists are joined; text before and after the
/// output, and libnuma's warnings, are findings.
///
/// # Errors
/// [`ReadError::Syntax`] for a damaged line and for an unrecognised line within the output;
/// [`ReadError::Cut`] if fewer nodes, cpus, sizes or rows of distances are described than announced;
/// [`ReadError::Narrow`] if lines were cut at a column; [`ReadError::Row`] if a row has more or fewer distances than there are columns;
/// [`ReadError::Denied`] if the text states that there is no NUMA; [`ReadError::Several`] for the
/// lines of several machines; [`ReadError::Absent`] if there is no node in the text.
pub fn read(text: &str) -> Result<Reading, ReadError> {
    let mut reader = Reader::default();
    let lines = lines(text, &mut reader.findings);
    pasted::check_one_machine(FORMAT, &lines)?;
    for (number, line) in lines {
        reader.line(number, &line)?;
    }
    reader.finish()
}

/// The list that a line with only numbers continues, after a wrapped line.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    /// The cpus of this node.
    Cpus(NodeId),
    /// The nodes of the distance table's columns.
    Columns,
    /// The distances from this node.
    Row(NodeId),
}

#[derive(Default)]
struct Reader {
    assembly: Assembly,
    findings: Findings,
    available: Option<NodeSet>,
    /// The nodes of the columns of the distance table.
    columns: Vec<NodeId>,
    rows: BTreeMap<NodeId, Vec<u8>>,
    open: Open,
    cpus: Lists,
    /// The labels that nodes have had.
    labels: BTreeSet<(NodeId, String)>,
    /// The nodes that have a line with their size, known or not.
    sized: NodeSet,
    /// True if libnuma's warnings have been reported.
    has_warnings: bool,
    /// True if the text states that it has no distances.
    has_no_distances: bool,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), ReadError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let open = core::mem::take(&mut self.open);
        match words.as_slice() {
            [] => self.open = open,
            ["node", "distances:"] => {}
            ["No", "distance", ..] => self.has_no_distances = true,
            ["No", "NUMA", ..] | ["numactl:", ..] | ["available:", "0", ..] => {
                return Err(ReadError::Denied { format: FORMAT, line: line.trim().to_owned() });
            }
            // These lines come from another stream, so they can be between any two lines.
            ["libnuma:", ..] => {
                if !core::mem::replace(&mut self.has_warnings, true) {
                    let message = "libnuma's warnings are ignored".to_owned();
                    self.findings.note("line-unread", place(number), message);
                }
                self.open = open;
            }
            ["available:", count, "nodes" | "node", list] => {
                self.announce(number, line, count, list)?;
            }
            ["node", id, "cpus:", cpus @ ..] => {
                let node = node_id(number, line, id)?;
                self.once(number, line, node, "cpus:")?;
                self.assembly.node(node);
                self.cpus.begin(node, number, line, cpus);
                self.open = Open::Cpus(node);
            }
            ["node", id, what @ ("size:" | "free:"), size @ ..] => {
                self.memory(number, line, id, what, size)?;
            }
            ["node", ids @ ..] if !ids.is_empty() && are_numbers(ids) => {
                if !self.columns.is_empty() {
                    let expected = "one table of distances: the output of one machine";
                    return Err(malformed(number, line, expected));
                }
                self.add_columns(number, line, ids)?;
            }
            [row, values @ ..] if is_row(row) => {
                let id = node_id(number, line, row.trim_end_matches(':'))?;
                self.add_to_row(number, line, id, values)?;
            }
            words if words.iter().all(|word| is_list(word)) => {
                self.continued(number, line, open, words)?;
            }
            _ => self.other(number, line)?,
        }
        Ok(())
    }

    /// Reads the line that announces the nodes.
    fn announce(
        &mut self,
        number: usize,
        line: &str,
        count: &str,
        list: &str,
    ) -> Result<(), ReadError> {
        let list = list.trim_matches(['(', ')']);
        let set: NodeSet = list.parse().map_err(|_| malformed(number, line, "a list of nodes"))?;
        if count.parse() != Ok(set.len()) {
            return Err(malformed(number, line, "the announced number of nodes in the list"));
        }
        if self.available.replace(set).is_some() || !self.labels.is_empty() {
            return Err(malformed(number, line, "the output of one machine only"));
        }
        Ok(())
    }

    /// Checks that a node is announced, and has one line with this label: a second one is from
    /// another machine, or from the same machine at another time.
    fn once(&mut self, number: usize, line: &str, id: NodeId, what: &str) -> Result<(), ReadError> {
        if let Some(nodes) = self.available.as_ref().filter(|nodes| !nodes.contains(id)) {
            let expected = format!("one of nodes {nodes}, which the text announces");
            return Err(malformed(number, line, &expected));
        }
        match self.labels.insert((id, what.to_owned())) {
            true => Ok(()),
            false => Err(malformed(number, line, &format!("one line `node {id} {what}`"))),
        }
    }

    /// Reads a line with only numbers, which continues the line before it.
    fn continued(
        &mut self,
        number: usize,
        line: &str,
        open: Open,
        words: &[&str],
    ) -> Result<(), ReadError> {
        match open {
            Open::Cpus(node) => {
                self.cpus.go_on(node, words);
                self.open = open;
                Ok(())
            }
            Open::Columns => self.add_columns(number, line, words),
            Open::Row(id) => self.add_to_row(number, line, id, words),
            Open::Nothing => Err(malformed(number, line, "a line with a label for its numbers")),
        }
    }

    /// Handles any other line: it is ignored before and after the output, and is an error within
    /// it.
    fn other(&mut self, number: usize, line: &str) -> Result<(), ReadError> {
        let has_begun = self.available.is_some() || !self.assembly.node_ids().is_empty();
        let nodes = self.assembly.node_ids().len();
        let is_over = match self.rows.is_empty() {
            // Older versions print no distances; every node then has all its other lines.
            true => self.is_described() && !line.trim_start().starts_with("node"),
            false => self.rows.len() >= nodes,
        };
        if has_begun && !is_over && !pasted::is_prompt(line) {
            return Err(malformed(number, line, "a line of `numactl --hardware`"));
        }
        self.ignore(number, line);
        Ok(())
    }

    /// Returns true if each announced node has its cpus, size and free memory.
    fn is_described(&self) -> bool {
        let has_all = |node: NodeId| {
            let has = |label: &&str| self.labels.contains(&(node, (*label).to_owned()));
            ["cpus:", "size:", "free:"].iter().all(has)
        };
        self.columns.is_empty()
            && self.available.as_ref().is_some_and(|nodes| nodes.iter().all(has_all))
    }

    fn ignore(&mut self, number: usize, line: &str) {
        let message = format!("`{}` is not understood, so it is ignored", line.trim());
        self.findings.note("line-unread", place(number), message);
    }

    fn memory(
        &mut self,
        number: usize,
        line: &str,
        id: &str,
        what: &str,
        size: &[&str],
    ) -> Result<(), ReadError> {
        let id_of_line = node_id(number, line, id)?;
        self.once(number, line, id_of_line, what)?;
        if what == "size:" {
            self.sized.insert(id_of_line);
        }
        let node = self.node(number, line, id)?;
        match (size, what) {
            ([size, "MB"], "size:") => node.memory_bytes = mebibytes(number, line, size)?,
            ([size, "MB"], _) => node.free_bytes = Some(mebibytes(number, line, size)?),
            (["<not", "available>"], "size:") => node.memory_unknown = true,
            (["<not", "available>"], _) => {}
            _ => {
                return Err(malformed(
                    number,
                    line,
                    "a size such as `32100 MB`, or <not available>",
                ));
            }
        }
        Ok(())
    }

    fn add_columns(&mut self, number: usize, line: &str, ids: &[&str]) -> Result<(), ReadError> {
        for id in ids {
            self.columns.push(node_id(number, line, id)?);
        }
        self.open = Open::Columns;
        Ok(())
    }

    fn node(
        &mut self,
        number: usize,
        line: &str,
        id: &str,
    ) -> Result<&mut numalab_topology::Node, ReadError> {
        Ok(self.assembly.node(node_id(number, line, id)?))
    }

    fn add_to_row(
        &mut self,
        number: usize,
        line: &str,
        id: NodeId,
        values: &[&str],
    ) -> Result<(), ReadError> {
        let row = self.rows.entry(id).or_default();
        for value in values {
            row.push(
                value.parse().map_err(|_| malformed(number, line, "distances from 0 to 255"))?,
            );
        }
        self.open = Open::Row(id);
        Ok(())
    }

    /// Checks that each column of the distance table has a node and a row, and each node its cpus and
    /// its size; if none has a size, all are unknown.
    fn check_whole(&mut self, ids: &NodeSet) -> Result<(), ReadError> {
        let columns: NodeSet = self.columns.iter().copied().collect();
        check_all("nodes", &columns, ids)?;
        check_all("rows of node distances", &columns, &self.rows.keys().copied().collect())?;
        check_all("cpus of nodes", ids, &self.cpus.nodes())?;
        if self.sized.is_empty() {
            ids.iter().for_each(|id| self.assembly.node(id).memory_unknown = true);
        }
        match self.sized.is_empty() {
            true => Ok(()),
            false => check_all("sizes of nodes", ids, &self.sized),
        }
    }

    /// Reports what may be lost without a trace: distances after the end of the text, and cpus to
    /// the right of the last column.
    ///
    /// # Errors
    /// [`ReadError::Narrow`] if the missing cpus are those that a cut would take.
    fn note_losses(&mut self, ids: &NodeSet) -> Result<(), ReadError> {
        if self.rows.is_empty() && ids.len() > 1 && !self.has_no_distances {
            let message = "the text has none: distances are unknown".to_owned();
            self.findings.note("distances-missing", "node distances".to_owned(), message);
        }
        if self.cpus.are_empty() {
            let message = "no node lists a cpu: cpus are unknown".to_owned();
            self.findings.warning("cpus-missing", "lists of cpus".to_owned(), message);
        }
        match self.cpus.cut() {
            Some(Cut { missing, column, is_sure: true }) => {
                let missing = missing.to_string();
                return Err(ReadError::Narrow { format: FORMAT, missing, column });
            }
            Some(Cut { missing, column, is_sure: false }) => {
                let message = format!(
                    "no node lists cpus {missing}: they are offline, or lines were cut at column {column}"
                );
                self.findings.warning("cpus-missing", "lists of cpus".to_owned(), message);
            }
            None => {}
        }
        Ok(())
    }

    /// Checks that each row of the distance table has a distance for each column.
    fn check_rows(&self) -> Result<(), ReadError> {
        let wrong = self.rows.iter().find(|(_, values)| values.len() != self.columns.len());
        let Some((id, values)) = wrong else { return Ok(()) };
        Err(ReadError::Row {
            format: FORMAT,
            node: id.to_string(),
            distances: values.len(),
            columns: self.columns.len(),
        })
    }

    fn finish(mut self) -> Result<Reading, ReadError> {
        let ids: NodeSet = self.assembly.node_ids().into_iter().collect();
        if ids.is_empty() {
            let what = "node in the text, such as `node 0 cpus: 0 1 2 3`";
            return Err(ReadError::Absent { format: FORMAT, what });
        }
        if let Some(available) = &self.available {
            check_all("nodes", available, &ids)?;
        }
        self.check_whole(&ids)?;
        self.check_rows()?;
        self.note_losses(&ids)?;
        self.cpus.place(&mut self.assembly)?;
        let claims = self.assembly.take_claims();
        let mut machine = self.assembly.finish(FORMAT)?;
        if !self.rows.is_empty() {
            machine.distances = Distances::unknown(machine.nodes.len());
        }
        for (from, values) in self.rows {
            for (to, value) in self.columns.iter().zip(values) {
                if let (Some(from), Some(to)) = (machine.node_index(from), machine.node_index(*to))
                {
                    record(&mut machine.distances, from, to, value, &mut self.findings);
                }
            }
        }
        machine.note_odd_distances(&mut self.findings);
        let cause = "the kernel option numa=fake creates such nodes";
        machine.note_equally_near(&mut self.findings, "node distances", cause);
        machine.note_free_memory(&mut self.findings);
        claims.settle(&mut machine, &mut self.findings);
        let findings = self.findings.into_list();
        Ok(Reading { value: machine, findings })
    }
}

/// Checks that all announced items are described.
fn check_all(
    what: &'static str,
    announced: &NodeSet,
    described: &NodeSet,
) -> Result<(), ReadError> {
    let is_whole = announced.is_subset(described);
    ReadError::unless_whole(is_whole, FORMAT, what, (announced, described))
}
