//! The tables of `lscpu -e` and `lscpu -p`, with a row for each cpu.
//!
//! A table lists what the plain output only counts: the core, the package and the caches of each
//! cpu. It has neither memory nor distances nor sizes of caches.

use std::collections::{BTreeMap, BTreeSet};

use numalab_topology::{Cache, CpuId, CpuSet, Findings, MAX_ID, Machine, NodeId};

use super::cache_line::CacheLine;
use super::row::{FORMAT, Place, Row};
use crate::assembly::Assembly;
use crate::error::ReadError;
use crate::pasted;

/// The titles of the columns, and how the values of a row are separated.
struct Header {
    titles: Vec<String>,
    has_commas: bool,
}

impl Header {
    /// Returns the header in a line such as `CPU NODE SOCKET CORE` or `# CPU,Core,Socket,Node`.
    fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        if let Some(titles) = line.strip_prefix('#') {
            let titles: Vec<String> = titles.split(',').map(|title| title.trim().into()).collect();
            let has_cpu = titles.len() > 1 && titles.iter().any(|title| title == "CPU");
            return has_cpu.then_some(Self { titles, has_commas: true });
        }
        // Titles are in capitals in every language, apart from the letters of caches:
        // `L1d:L1i:L2:L3`.
        let is_title = |title: &str| {
            let is_capital = |c: char| c.is_ascii() && !c.is_lowercase();
            title.starts_with('L') || title.chars().all(is_capital)
        };
        let titles: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let has_cpu = titles.len() > 1 && titles.iter().any(|title| title == "CPU");
        let is_header = has_cpu && titles.iter().all(|title| is_title(title));
        is_header.then_some(Self { titles, has_commas: false })
    }

    fn row(&self, number: usize, line: &str) -> Result<Row, ReadError> {
        let values: Vec<&str> = match self.has_commas {
            true => line.split(',').map(str::trim).collect(),
            false => line.split_whitespace().collect(),
        };
        let place = Place::Line(number);
        if values.len() != self.titles.len() {
            let expected = format!("{} values, one for each column", self.titles.len());
            return Err(place.wrong(line, &expected));
        }
        Row::of(place, self.titles.iter().map(String::as_str).zip(values))
    }
}

/// Returns true if a line of the text is the header of a table.
pub(super) fn is_table(lines: &[(usize, String)]) -> bool {
    lines.iter().any(|(_, line)| Header::of(line).is_some())
}

/// Returns the rows of a table, and the plain output above it, which is empty if there is none. Text
/// above and below is ignored, with a note.
pub(super) fn rows(
    lines: &[(usize, String)],
    findings: &mut Findings,
) -> Result<(Vec<Row>, String), ReadError> {
    let mut header: Option<Header> = None;
    let mut rows = Vec::new();
    let mut plain = String::new();
    let mut others = Vec::new();
    for (number, line) in lines {
        // A header is tried first, because the mark before its titles looks like a prompt.
        if let Some(found) = Header::of(line) {
            if header.replace(found).is_some() {
                return Err(Place::Line(*number).wrong(line, "one table"));
            }
        } else if line.trim().is_empty()
            || line.trim_start().starts_with('#')
            || pasted::is_prompt(line)
        {
            // Skips prompts, and the sentences that `lscpu -p` prints above its table.
        } else if let Some(header) = &header {
            match header.row(*number, line) {
                // A row has at least the number of its cpu.
                Err(_) if !rows.is_empty() && !line.contains(|c: char| c.is_ascii_digit()) => {
                    others.push((*number, line.clone()));
                }
                row => rows.push(row?),
            }
        } else if line.contains(':') {
            plain += line;
            plain.push('\n');
        } else {
            others.push((*number, line.clone()));
        }
    }
    pasted::note_ignored(&others, findings);
    Ok((rows, plain))
}

/// Returns the machine with these rows as cpus.
pub(super) fn machine(mut rows: Vec<Row>, findings: &mut Findings) -> Result<Machine, ReadError> {
    if rows.is_empty() {
        return Err(ReadError::Absent { format: FORMAT, what: "row of a cpu below the header" });
    }
    number_packages(&mut rows, findings);
    let mut assembly = Assembly::default();
    let mut nodes: BTreeMap<NodeId, CpuSet> = BTreeMap::new();
    for row in &rows {
        if assembly.has_cpu(row.cpu) {
            return Err(row.place.wrong(&row.cpu.to_string(), "each cpu once"));
        }
        let cpu = assembly.cpu(row.cpu);
        (cpu.online, cpu.package) = (row.is_online, row.socket);
        if let Some(node) = row.node {
            nodes.entry(node).or_default().insert(row.cpu);
        }
    }
    for (node, cpus) in &nodes {
        assembly.place(cpus, *node, &format!("node {node}"));
        assembly.node(*node).memory_unknown = true;
    }
    let mut machine = assembly.finish(FORMAT)?;
    number_cores(&rows, &mut machine);
    add_caches(&rows, &mut machine);
    let apart: CpuSet =
        rows.iter().filter(|row| row.is_online && row.node.is_none()).map(|row| row.cpu).collect();
    if !apart.is_empty() && !nodes.is_empty() {
        let message = "has no value: they belong to no node".to_owned();
        findings.warning("cpu-without-node", format!("column NODE of cpus {apart}"), message);
    }
    note_gaps(&machine, findings);
    let missing = [
        ("NODE", nodes.is_empty(), "nodes-missing", "nodes"),
        ("SOCKET", rows.iter().all(|row| row.socket.is_none()), "packages-unknown", "packages"),
        ("CORE", rows.iter().all(|row| row.core.is_none()), "cores-unknown", "cores"),
    ];
    for (column, _, code, what) in missing.into_iter().filter(|(_, is_missing, ..)| *is_missing) {
        let message = format!("has no value for any cpu: {what} are unknown");
        findings.warning(code, format!("column {column}"), message);
    }
    Ok(machine)
}

/// Reports signs of lost lines, since a table does not count its cpus: cpus without a row before
/// the last one, and cores with fewer threads than others.
fn note_gaps(machine: &Machine, findings: &mut Findings) {
    let listed: CpuSet = machine.cpus.iter().map(|cpu| cpu.id).collect();
    let last = listed.iter().last().map_or(0, |last| last.0);
    let missing = (0..last).map(CpuId).collect::<CpuSet>().difference(&listed);
    if !missing.is_empty() {
        let message = format!("cpus {missing} have no row: they are offline, or lines are missing");
        findings.warning("cpus-missing", "column CPU".to_owned(), message);
    }
    let cores = machine.cores();
    let most = cores.iter().map(|core| core.cpus.len()).max().unwrap_or(0);
    let fewer = cores.iter().filter(|core| core.cpus.len() < most);
    let fewer: CpuSet = fewer.flat_map(|core| core.cpus.iter()).collect();
    // An offline sibling that is listed explains it.
    if !fewer.is_empty() && machine.cpus.iter().all(|cpu| cpu.online) {
        let message = format!(
            "the cores of cpus {fewer} have fewer threads than others: they are of another kind, or \
             siblings are offline, or lines are missing"
        );
        findings.note("cores-differ", "column CORE".to_owned(), message);
    }
}

/// Renumbers the packages if several have the same number: with `lscpu --physical` each book of s390
/// numbers its packages from 0.
fn number_packages(rows: &mut [Row], findings: &mut Findings) {
    let mut packages = BTreeMap::new();
    for row in rows.iter() {
        if let Some(socket) = row.socket {
            let next = u32::try_from(packages.len()).unwrap_or(u32::MAX);
            packages.entry((row.frame, socket)).or_insert(next);
        }
    }
    let numbers: BTreeSet<u32> = packages.keys().map(|(_, socket)| *socket).collect();
    if numbers.len() == packages.len() {
        return;
    }
    for row in rows {
        row.socket = row.socket.and_then(|socket| packages.get(&(row.frame, socket)).copied());
    }
    let message = format!(
        "{} packages of several books have {} numbers: they are renumbered by their cpus",
        packages.len(),
        numbers.len()
    );
    findings.note("package-ambiguous", "column SOCKET".to_owned(), message);
}

/// Numbers the cores by their first cpu. The numbers of `lscpu --physical` are those of the
/// package or of its cluster, so a core is known by all three.
fn number_cores(rows: &[Row], machine: &mut Machine) {
    let key = |row: &Row| row.core.map(|core| (row.socket, row.cluster, core));
    for (number, cpus) in (0u32..).zip(grouped(rows, key)) {
        for (thread, id) in (0u32..).zip(cpus.iter()) {
            if let Some(cpu) = machine.cpu_mut(id) {
                (cpu.core, cpu.thread) = (Some(number), thread);
            }
        }
    }
}

fn add_caches(rows: &[Row], machine: &mut Machine) {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| &row.caches) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names {
        let Some(level) = CacheLine::level_of(name) else { continue };
        let key = |row: &Row| row.caches.iter().find(|(known, _)| known == name).map(|(_, id)| *id);
        for (number, cpus) in (0u32..).zip(grouped(rows, key)) {
            if level == 3 {
                for id in cpus.iter() {
                    if let Some(cpu) = machine.cpu_mut(id) {
                        cpu.l3_group = Some(number);
                    }
                }
            }
            let kind = CacheLine::kind_of(name);
            let (size_bytes, line_bytes, ways) = (None, None, None);
            machine.caches.push(Cache { level, kind, size_bytes, line_bytes, ways, cpus });
        }
    }
}

/// Returns the cpus of rows with the same key, in order of their first cpu.
fn grouped<K: Ord>(rows: &[Row], key: impl Fn(&Row) -> Option<K>) -> Vec<CpuSet> {
    let mut groups: BTreeMap<K, CpuSet> = BTreeMap::new();
    for row in rows {
        if let Some(key) = key(row) {
            groups.entry(key).or_default().insert(row.cpu);
        }
    }
    let mut groups: Vec<CpuSet> = groups.into_values().collect();
    groups.sort_by_key(CpuSet::first);
    groups
}

/// Parses the number in a column.
fn number(place: Place, title: &str, value: &str) -> Result<u32, ReadError> {
    let number = value.parse().ok().filter(|&number| number <= MAX_ID);
    number.ok_or_else(|| place.wrong(value, &format!("a number in column {title}")))
}

impl Row {
    /// Returns the row with these titles and values.
    pub(super) fn of<'t>(
        place: Place,
        cells: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> Result<Self, ReadError> {
        let mut cpu = None;
        let mut row = Self {
            place,
            cpu: CpuId(0),
            node: None,
            socket: None,
            frame: [None; 2],
            cluster: None,
            core: None,
            caches: Vec::new(),
            is_online: true,
        };
        for (title, value) in cells.filter(|(_, value)| !matches!(*value, "" | "-")) {
            match title.to_ascii_uppercase().as_str() {
                "CPU" => cpu = Some(CpuId(number(place, title, value)?)),
                "NODE" => row.node = Some(NodeId(number(place, title, value)?)),
                "SOCKET" => row.socket = Some(number(place, title, value)?),
                "DRAWER" => row.frame[0] = Some(number(place, title, value)?),
                "BOOK" => row.frame[1] = Some(number(place, title, value)?),
                "CLUSTER" => row.cluster = Some(number(place, title, value)?),
                "CORE" => row.core = Some(number(place, title, value)?),
                "ONLINE" => row.is_online = truth(place, title, value)?,
                upper if upper.split(':').all(|name| CacheLine::level_of(name).is_some()) => {
                    row.add_caches(title, value)?;
                }
                _ => {}
            }
        }
        row.cpu = cpu.ok_or_else(|| place.wrong("a row", "a number in column CPU"))?;
        Ok(row)
    }

    /// Adds the caches of a column such as `L1d:L1i:L2:L3`.
    fn add_caches(&mut self, title: &str, value: &str) -> Result<(), ReadError> {
        let values: Vec<&str> = value.split(':').collect();
        let names: Vec<&str> = title.split(':').collect();
        if values.len() != names.len() {
            return Err(self.place.wrong(value, &format!("numbers for {title}")));
        }
        for (name, value) in names.iter().zip(values) {
            if !matches!(value, "" | "-") {
                let id = number(self.place, title, value)?;
                self.caches.push((name.to_ascii_lowercase(), id));
            }
        }
        Ok(())
    }
}

fn truth(place: Place, title: &str, value: &str) -> Result<bool, ReadError> {
    match value.to_ascii_lowercase().as_str() {
        "yes" | "y" | "true" | "1" => Ok(true),
        "no" | "n" | "false" | "0" => Ok(false),
        _ => {
            let expected = format!("yes or no in column {title}, as `LC_ALL=C lscpu -e` prints");
            Err(place.wrong(value, &expected))
        }
    }
}
