//! The lines of `lscpu` that describe the topology.

use std::collections::{BTreeMap, BTreeSet};

use numalab_topology::{CpuId, CpuSet, Findings, MAX_ID, NodeId};

use super::cache_line::CacheLine;
use crate::error::ReadError;
use crate::pasted;

pub(super) const FORMAT: &str = "lscpu output";

/// The parsed lines; if a key is given twice, the first one counts.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) online: CpuSet,
    pub(super) offline: CpuSet,
    /// Cpus in lists with headings in another language: online or offline ones.
    in_other_lists: CpuSet,
    pub(super) threads_per_core: Option<usize>,
    cores_per_package: Option<usize>,
    /// True on POWER and s390, which number the threads of a core one after the other.
    pub(super) has_adjacent_threads: bool,
    pub(super) packages: Option<usize>,
    pub(super) node_count: Option<usize>,
    cpu_count: Option<usize>,
    pub(super) nodes: BTreeMap<NodeId, CpuSet>,
    pub(super) caches: Vec<CacheLine>,
    /// The lines of caches without a size that makes sense, as keys and values.
    pub(super) odd_caches: Vec<(String, String)>,
    pub(super) architecture: String,
    pub(super) vendor: String,
    /// The models of the cores: more than one on hybrid ARM processors.
    pub(super) models: BTreeSet<String>,
    /// True if a node has a heading in another language.
    has_translations: bool,
}

impl Lines {
    pub(super) fn read(text: &str, findings: &mut Findings) -> Result<Self, ReadError> {
        let mut lines = Self::default();
        for (number, line) in whole_lines(text, findings) {
            let comment = line.trim_start().starts_with('#');
            // Chinese and Japanese headings end in a wide colon.
            if let Some((key, value)) = line.split_once([':', '：']).filter(|_| !comment) {
                lines.line(number, key.trim(), value.trim())?;
            }
        }
        if lines.has_translations {
            let message = "are in another language: only nodes and their cpus are read; \
                           `LC_ALL=C lscpu` prints the rest";
            findings.warning("headings-translated", "headings".to_owned(), message.to_owned());
        }
        if lines.online.is_empty() && lines.nodes.values().all(CpuSet::is_empty) {
            let what = "line with cpus (`On-line CPU(s) list` or `NUMA node0 CPU(s)`), as \
                        `LC_ALL=C lscpu` prints them without options";
            return Err(ReadError::Absent { format: FORMAT, what });
        }
        lines.check_whole()?;
        lines.check_nodes()?;
        lines.drop_absent(findings);
        Ok(lines)
    }

    /// Removes cpus of nodes that the machine does not have: s390 lists every number that a cpu could
    /// have.
    fn drop_absent(&mut self, findings: &mut Findings) {
        let mut known = self.online.clone();
        known.extend_from(&self.offline);
        if self.cpu_count != Some(known.len()) {
            return;
        }
        for (node, cpus) in &mut self.nodes {
            let absent = cpus.difference(&known);
            if !absent.is_empty() {
                *cpus = cpus.intersection(&known);
                let message = format!("lists cpus {absent}, which are neither online nor offline");
                findings.note("cpus-absent", format!("node {node}"), message);
            }
        }
    }

    fn line(&mut self, number: usize, key: &str, value: &str) -> Result<(), ReadError> {
        let count = || count(number, value);
        match key {
            "On-line CPU(s) list" | "On-line CPU(s) mask" => {
                self.online = once(number, value, &self.online)?;
            }
            "Off-line CPU(s) list" | "Off-line CPU(s) mask" => {
                self.offline = once(number, value, &self.offline)?;
            }
            "CPU(s)" => self.cpu_count = same(number, value, self.cpu_count, count()?)?,
            "Thread(s) per core" => self.threads_per_core = self.threads_per_core.or(count()?),
            "Core(s) per socket" => self.cores_per_package = self.cores_per_package.or(count()?),
            "Architecture" if !self.architecture.is_empty() => {
                let found = format!("{key}: {value}");
                let expected = "one line of it: the output of one machine";
                return Err(ReadError::syntax(FORMAT, number, &found, expected));
            }
            "Architecture" => {
                self.has_adjacent_threads |= value.starts_with("ppc") || value.starts_with("s390");
                value.clone_into(&mut self.architecture);
            }
            "Vendor ID" if self.vendor.is_empty() => value.clone_into(&mut self.vendor),
            "Model name" => {
                self.models.insert(value.to_owned());
            }
            "Socket(s)" => self.packages = self.packages.or(count()?),
            // `NUMA node(s)`, in any language.
            key if key.contains("NUMA") && !key.contains(|c: char| c.is_ascii_digit()) => {
                self.node_count = same(number, value, self.node_count, count()?)?;
            }
            key => {
                let translated = translated_node_of(key);
                if let Some(node) = node_of(key).or(translated) {
                    self.has_translations |= translated.is_some() && node_of(key).is_none();
                    let known = self.nodes.entry(node).or_default();
                    *known = once(number, value, known)?;
                } else if CacheLine::is_key(key) {
                    self.cache(key, value);
                } else if key.contains("CPU(s)")
                    && let Ok(cpus) = list(number, value)
                {
                    self.in_other_lists.extend_from(&cpus);
                }
            }
        }
        Ok(())
    }

    fn cache(&mut self, key: &str, value: &str) {
        match CacheLine::read(key, value) {
            Some(cache) if self.caches.iter().all(|known| known.name != cache.name) => {
                self.caches.push(cache);
            }
            Some(_) => {}
            None => self.odd_caches.push((key.to_owned(), value.to_owned())),
        }
    }

    /// Returns true if cores differ: by their models, or by their first caches.
    pub(super) fn cores_differ(&self) -> bool {
        let differ = |line: &CacheLine| match line.instances.filter(|_| line.level == 1) {
            Some(instances) => line.bytes_of_each(instances, false).is_none(),
            None => false,
        };
        self.models.len() > 1 || self.caches.iter().any(differ)
    }

    /// Returns true for a processor of AMD, or of Hygon, which makes the same cores.
    pub(super) fn is_amd(&self) -> bool {
        ["AuthenticAMD", "HygonGenuine"].contains(&self.vendor.as_str())
    }

    /// Returns the number of threads of all cores, if every core has the number of threads that the
    /// text gives.
    pub(super) fn threads_of_all(&self) -> Option<usize> {
        let cores = self.cores_per_package?.checked_mul(self.packages?)?;
        cores.checked_mul(self.threads_per_core?)
    }

    /// Fails if online cpus are on no node, because the list of a node was cut.
    fn check_nodes(&self) -> Result<(), ReadError> {
        let mut placed = CpuSet::new();
        self.nodes.values().for_each(|of_node| placed.extend_from(of_node));
        let is_whole = placed.is_empty() || self.online.is_subset(&placed);
        ReadError::unless_whole(is_whole, FORMAT, "cpus of nodes", (&self.online, &placed))
    }

    /// Fails if fewer cpus or nodes are listed than counted, because part of the text is missing.
    fn check_whole(&self) -> Result<(), ReadError> {
        let mut cpus = self.online.clone();
        cpus.extend_from(&self.offline);
        cpus.extend_from(&self.in_other_lists);
        self.nodes.values().for_each(|of_node| cpus.extend_from(of_node));
        let counts =
            [("cpus", self.cpu_count, cpus.len()), ("nodes", self.node_count, self.nodes.len())];
        for (what, announced, described) in counts {
            let announced = announced.unwrap_or(0);
            let is_whole = announced <= described;
            ReadError::unless_whole(is_whole, FORMAT, what, (announced, described))?;
        }
        Ok(())
    }
}

/// Returns the lines of the text, with wrapped lists joined.
fn whole_lines(text: &str, findings: &mut Findings) -> Vec<(usize, String)> {
    let mut whole: Vec<(usize, String)> = Vec::new();
    for (number, line) in pasted::lines(text, findings) {
        let is_list = |text: &str| text.chars().all(|c| c.is_ascii_digit() || ",- ".contains(c));
        let has_list = |line: &str| line.contains("CPU(s)") || line.contains("NUMA");
        let rest = line.trim();
        match whole.last_mut() {
            Some((_, before)) if !rest.is_empty() && is_list(rest) && has_list(before) => {
                before.push_str(rest);
            }
            _ => whole.push((number, line)),
        }
    }
    whole
}

/// Returns the node of a key such as `NUMA node0 CPU(s)`.
fn node_of(key: &str) -> Option<NodeId> {
    let number = key.strip_prefix("NUMA node")?.strip_suffix(" CPU(s)")?;
    let number = number.parse().ok().filter(|&number| number <= MAX_ID);
    number.map(NodeId)
}

/// Returns the node of a key in another language, such as `NUMA-Knoten0 CPU(s)` or `Nœud NUMA 0 de
/// processeur(s)`: all contain this word and one number.
fn translated_node_of(key: &str) -> Option<NodeId> {
    let mut numbers = key.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let number = numbers.next().filter(|_| key.contains("NUMA"))?;
    let number = number.parse().ok().filter(|&number| number <= MAX_ID);
    number.filter(|_| numbers.next().is_none()).map(NodeId)
}

/// Parses a list that is given once, or repeated with the same cpus; a different list is another
/// machine's.
fn once(line: usize, value: &str, known: &CpuSet) -> Result<CpuSet, ReadError> {
    let cpus = list(line, value)?;
    if known.is_empty() || *known == cpus {
        return Ok(cpus);
    }
    let expected = format!("cpus {known} again: the output of one machine");
    Err(ReadError::syntax(FORMAT, line, value, expected))
}

/// Returns a count that is given once, or repeated with the same number; a different one is another
/// machine's.
fn same(
    line: usize,
    value: &str,
    known: Option<usize>,
    count: Option<usize>,
) -> Result<Option<usize>, ReadError> {
    let Some((known, _)) = known.zip(count).filter(|(known, count)| known != count) else {
        return Ok(known.or(count));
    };
    let expected = format!("{known} again: the output of one machine");
    Err(ReadError::syntax(FORMAT, line, value, expected))
}

/// Parses a count; `None` for other text, such as the `-` of an unknown one.
fn count(line: usize, value: &str) -> Result<Option<usize>, ReadError> {
    let is_negative = value.strip_prefix('-').is_some_and(|rest| rest.parse::<u64>().is_ok());
    if is_negative {
        return Err(ReadError::syntax(FORMAT, line, value, "a number of at least 0"));
    }
    Ok(value.parse().ok())
}

/// Parses a list, or a mask as `lscpu -x` prints it.
fn list(line: usize, value: &str) -> Result<CpuSet, ReadError> {
    let cpus = match value.strip_prefix("0x") {
        Some(digits) => mask(digits),
        None => value.parse().ok(),
    };
    let expected = "a list of cpus such as 0-15,128-143";
    cpus.ok_or_else(|| ReadError::syntax(FORMAT, line, value, expected))
}

/// Parses hexadecimal digits, the lowest four cpus last.
fn mask(digits: &str) -> Option<CpuSet> {
    let mut cpus = CpuSet::new();
    for (at, digit) in (0u32..).zip(digits.chars().rev()) {
        let bits = digit.to_digit(16)?;
        let id = |bit| at.checked_mul(4)?.checked_add(bit).filter(|&id| id <= MAX_ID).map(CpuId);
        for bit in (0..4).filter(|bit| bits >> bit & 1 == 1) {
            cpus.insert(id(bit)?);
        }
    }
    Some(cpus)
}
