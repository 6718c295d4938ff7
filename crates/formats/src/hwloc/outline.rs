//! The outline that `lstopo` prints to a terminal (`hwloc-ls`, `lstopo --of console`).
//!
//! Objects are inside those above them that are indented less, or before a `+` in the same line. Since
//! hwloc 2 a node is a line below the object with its cpus, before it contained them. Sizes are rounded,
//! and distances are missing.

use numalab_topology::{Cache, CacheKind, Cpu, CpuId, CpuSet, Findings, MAX_ID, NodeId};

use crate::assembly::Assembly;
use crate::error::ReadError;
use crate::pasted;
use crate::reading::Reading;
use crate::size::parse_reported;

const FORMAT: &str = "lstopo outline";

/// Returns true for a text with a machine and a cpu as `lstopo` prints them.
pub fn is_outline(text: &str) -> bool {
    ["Machine", "PU L#", "PU P#"].iter().filter(|mark| text.contains(**mark)).count() > 1
}

/// Reads what `lstopo` prints to a terminal.
///
/// # Errors
/// [`ReadError::Syntax`] for a cpu without the system's number, given twice, or outside of a core;
/// [`ReadError::Cut`] for a core without cpus, and if nodes have less memory than the machine;
/// [`ReadError::Absent`] without a cpu.
pub fn read_outline(text: &str) -> Result<Reading, ReadError> {
    let mut findings = Findings::default();
    let lines = pasted::lines(text, &mut findings);
    pasted::check_one_machine(FORMAT, &lines)?;
    let mut outline = Outline::default();
    // With --verbose, counts, distances and attributes of nodes follow.
    let is_within = |line: &str| !line.trim_start().starts_with("depth 0:");
    for (number, line) in lines.iter().take_while(|(_, line)| is_within(line)) {
        outline.line(*number, line)?;
    }
    outline.check()?;
    let message =
        "sizes of memory are rounded, and distances are missing: `lstopo --of xml` has both";
    findings.note("sizes-rounded", "text", message);
    outline.machine(findings)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutlineKind {
    Machine,
    Package,
    Cache(u8, CacheKind),
    Core,
    Cpu,
    Node,
    /// A group, a die, a cache of memory.
    Other,
}

#[derive(Debug)]
struct Object {
    kind: OutlineKind,
    line: usize,
    indent: usize,
    /// The object that contains it.
    parent: Option<usize>,
    /// The system's number.
    number: Option<u32>,
    bytes: Option<u64>,
    cpus: CpuSet,
}

#[derive(Debug, Default)]
struct Outline {
    objects: Vec<Object>,
}

impl Outline {
    fn line(&mut self, line: usize, text: &str) -> Result<(), ReadError> {
        let indent = text.chars().take_while(|c| c.is_whitespace()).count();
        let before = |object: &Object| object.indent < indent && object.line < line;
        let mut parent = self.objects.iter().rposition(before);
        for item in text.trim().split(" + ") {
            let Some((kind, number, bytes)) = item_of(item) else { break };
            if kind == OutlineKind::Machine && !self.objects.is_empty() {
                return Err(malformed(line, text, "one machine"));
            }
            let cpus = CpuSet::new();
            self.objects.push(Object { kind, line, indent, parent, number, bytes, cpus });
            let own = self.objects.len() - 1;
            if kind == OutlineKind::Cpu {
                self.cpu(own, text)?;
            }
            parent = Some(own);
        }
        Ok(())
    }

    /// Adds a cpu to all objects that contain it.
    fn cpu(&mut self, own: usize, text: &str) -> Result<(), ReadError> {
        let line = self.objects[own].line;
        let expected = "the system's number of the cpu, such as `PU L#0 (P#0)`";
        let id = self.objects[own].number.ok_or_else(|| malformed(line, text, expected))?;
        let mut above = Some(own);
        let mut has_core = false;
        while let Some(at) = above {
            let object = &mut self.objects[at];
            has_core |= object.kind == OutlineKind::Core;
            if !object.cpus.insert(CpuId(id)) {
                return Err(malformed(line, text, "each cpu once"));
            }
            above = object.parent;
        }
        let has_cores = self.objects_where(|kind| kind == OutlineKind::Core).next().is_some();
        match has_cores && !has_core {
            true => Err(malformed(line, text, "a cpu that is indented below its core")),
            false => Ok(()),
        }
    }

    fn objects_where(&self, is: impl Fn(OutlineKind) -> bool) -> impl Iterator<Item = &Object> {
        self.objects.iter().filter(move |object| is(object.kind))
    }

    /// Returns the cpus that are local to a node: those inside it, or inside the object that it is
    /// attached to.
    fn local(&self, node: &Object) -> CpuSet {
        let mut object = node;
        while let (true, Some(parent)) = (object.cpus.is_empty(), object.parent) {
            object = &self.objects[parent];
        }
        object.cpus.clone()
    }

    /// Checks that no end of the text is missing.
    fn check(&self) -> Result<(), ReadError> {
        if self.objects_where(|kind| kind == OutlineKind::Cpu).next().is_none() {
            return Err(ReadError::Absent { format: FORMAT, what: "cpu, such as `PU L#0 (P#0)`" });
        }
        let cut = |what, announced: String, described: String| {
            Err(ReadError::Cut { format: FORMAT, what, announced, described })
        };
        let cores = self.objects_where(|kind| kind == OutlineKind::Core);
        let (whole, empty): (Vec<&Object>, Vec<_>) = cores.partition(|core| !core.cpus.is_empty());
        if !empty.is_empty() {
            let all = whole.len() + empty.len();
            return cut("cores with cpus", all.to_string(), whole.len().to_string());
        }
        let all = self
            .objects_where(|kind| kind == OutlineKind::Machine)
            .find_map(|machine| machine.bytes);
        let nodes: Vec<u64> = self
            .objects_where(|kind| kind == OutlineKind::Node)
            .filter_map(|of| of.bytes)
            .collect();
        let sum: u64 = nodes.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes));
        // Each size is rounded.
        let slack = (nodes.len() as u64 + 1) << 30;
        match all.filter(|all| !nodes.is_empty() && sum.saturating_add(slack) < *all) {
            Some(all) => cut("GiB of nodes", (all >> 30).to_string(), (sum >> 30).to_string()),
            None => Ok(()),
        }
    }

    fn machine(self, mut findings: Findings) -> Result<Reading, ReadError> {
        let mut assembly = Assembly::default();
        for object in self.objects_where(|kind| kind == OutlineKind::Cpu) {
            object.cpus.iter().for_each(|id| _ = assembly.cpu(id));
        }
        self.place(&mut assembly)?;
        let mut number = |is: OutlineKind, assign: fn(&mut Cpu, u32, u32)| {
            let mut sets: Vec<&Object> = self.objects_where(|kind| kind == is).collect();
            sets.sort_by_key(|object| object.cpus.first());
            let own = |place: u32, object: &Object| match is {
                OutlineKind::Package => object.number.unwrap_or(place),
                _ => place,
            };
            for (place, object) in (0..).zip(sets) {
                for (thread, id) in (0..).zip(object.cpus.iter()) {
                    assign(assembly.cpu(id), own(place, object), thread);
                }
            }
        };
        number(OutlineKind::Package, |cpu, package, _| cpu.package = Some(package));
        number(OutlineKind::Core, |cpu, core, thread| {
            (cpu.core, cpu.thread) = (Some(core), thread);
        });
        let l3 = OutlineKind::Cache(3, CacheKind::Unified);
        number(l3, |cpu, group, _| cpu.l3_group = Some(group));
        let mut machine = assembly.finish(FORMAT)?;
        for object in self.objects {
            if let OutlineKind::Cache(level, kind) = object.kind {
                let (line_bytes, ways, cpus) = (None, None, object.cpus);
                let size_bytes = object.bytes;
                machine.caches.push(Cache { level, kind, size_bytes, line_bytes, ways, cpus });
            }
        }
        machine.caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
        let homeless = machine.cpus.iter().filter(|cpu| cpu.node.is_none());
        let homeless: CpuSet = homeless.map(|cpu| cpu.id).collect();
        if !homeless.is_empty() {
            let message =
                format!("cpus {homeless} are not in any: lstopo leaves out nodes without memory");
            findings.warning("cpu-without-node", "NUMANode lines", message);
        }
        machine.note_odd_shapes(&mut findings);
        Ok(Reading { value: machine, findings: findings.into_list() })
    }

    /// Adds the nodes, and places every cpu on one.
    fn place(&self, assembly: &mut Assembly) -> Result<(), ReadError> {
        let mut sets = Vec::new();
        let has_sizes =
            self.objects_where(|kind| kind == OutlineKind::Node).any(|node| node.bytes.is_some());
        for object in self.objects_where(|kind| kind == OutlineKind::Node) {
            let expected = "the system's number of the node, such as `NUMANode L#0 (P#0 31GB)`";
            let id = object.number.ok_or_else(|| malformed(object.line, "NUMANode", expected))?;
            if assembly.node_ids().contains(&NodeId(id)) {
                return Err(malformed(object.line, "NUMANode", "each node once"));
            }
            sets.push((NodeId(id), self.local(object)));
            let node = assembly.node(NodeId(id));
            node.memory_bytes = object.bytes.unwrap_or(0);
            node.memory_unknown = !has_sizes;
        }
        let machine = self.objects_where(|kind| kind == OutlineKind::Machine).next();
        if let (true, Some(machine)) = (sets.is_empty(), machine) {
            // hwloc 1 has no node on a machine with one.
            let node = assembly.node(NodeId(0));
            node.memory_bytes = machine.bytes.unwrap_or(0);
            node.memory_unknown = machine.bytes.is_none();
            sets.push((NodeId(0), machine.cpus.clone()));
        }
        assembly.place_by_smallest(sets);
        Ok(())
    }
}

/// Returns the kind, number and size of an item such as `NUMANode L#0 (P#8 31GB)`; `None` for devices and
/// other text.
fn item_of(item: &str) -> Option<(OutlineKind, Option<u32>, Option<u64>)> {
    let (head, rest) = item.split_once(' ').unwrap_or((item, ""));
    let kind = match head {
        "Machine" => OutlineKind::Machine,
        "Package" | "Socket" => OutlineKind::Package,
        "Core" => OutlineKind::Core,
        "PU" => OutlineKind::Cpu,
        "NUMANode" => OutlineKind::Node,
        "Die" | "Module" | "Tile" | "Cluster" | "MemCache" => OutlineKind::Other,
        _ if head.starts_with("Group") => OutlineKind::Other,
        _ => cache(head)?,
    };
    let mut words = rest.split([' ', '(', ')']).filter(|word| !word.is_empty());
    let mut numbers = words.clone().filter_map(|word| word.strip_prefix("P#")?.parse().ok());
    let number = numbers.find(|&number| number <= MAX_ID);
    // `local=24683652KB` of `lstopo -v`, and `24GB` otherwise.
    let size = |word: &str| {
        let size = word.rsplit('=').next().filter(|size| size.ends_with('B'))?;
        size.starts_with(|c: char| c.is_ascii_digit()).then(|| parse_reported(size))?
    };
    let bytes = words.find_map(size);
    Some((kind, number, bytes))
}

/// Returns the kind of a name such as `L1d` or `L3`.
fn cache(name: &str) -> Option<OutlineKind> {
    let rest = name.strip_prefix('L')?;
    let rest = rest.strip_suffix("Cache").unwrap_or(rest);
    let (level, kind) = match (rest.strip_suffix('d'), rest.strip_suffix('i')) {
        (Some(level), _) => (level, CacheKind::Data),
        (_, Some(level)) => (level, CacheKind::Instruction),
        _ => (rest, CacheKind::Unified),
    };
    level.parse().ok().map(|level| OutlineKind::Cache(level, kind))
}

fn malformed(line: usize, found: &str, expected: &str) -> ReadError {
    ReadError::syntax(FORMAT, line, found, expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As hwloc 2 prints it: nodes are below the object with their cpus, and one has none.
    const NEW: &str = "\
Machine (54GB total)
  Package L#0
    NUMANode L#0 (P#0 16GB)
    NUMANode L#1 (P#2 8007MB)
    L3 L#0 (32MB)
      L2 L#0 (1024KB) + L1d L#0 (32KB) + L1i L#0 (32KB) + Core L#0
        PU L#0 (P#0)
        PU L#1 (P#2)
  Package L#1
    NUMANode L#2 (P#1 31GB)
    L3 L#1 (32MB) + L2 L#1 (1024KB) + L1d L#1 (32KB) + L1i L#1 (32KB) + Core L#1
      PU L#2 (P#1)
      PU L#3 (P#3)
    HostBridge
      PCI 01:00.0 (Ethernet)
        Net \"eth0\"
";
    /// As hwloc 1 prints it: nodes contain their cpus.
    const OLD: &str = "\
Machine (47GB total)
  NUMANode L#0 (P#0 16GB) + Socket L#0 + L3 L#0 (20MB)
    L2 L#0 (256KB) + L1d L#0 (32KB) + L1i L#0 (32KB) + Core L#0 + PU L#0 (P#0)
    L2 L#1 (256KB) + L1d L#1 (32KB) + L1i L#1 (32KB) + Core L#1 + PU L#1 (P#2)
  NUMANode L#1 (P#1 31GB) + Socket L#1 + L3 L#1 (20MB)
    L2 L#2 (256KB) + L1d L#2 (32KB) + L1i L#2 (32KB) + Core L#2 + PU L#2 (P#1)
";

    fn nodes(text: &str) -> Vec<(u32, String, u64)> {
        let machine = read_outline(text).unwrap().value;
        let of = |node: &numalab_topology::Node| {
            (node.id.0, node.cpus.to_string(), node.memory_bytes >> 20)
        };
        machine.nodes.iter().map(of).collect()
    }

    fn error(text: &str) -> String {
        read_outline(text).unwrap_err().to_string()
    }

    /// As of a Threadripper with dies without memory, reported to hwloc's authors.
    #[test]
    fn cpus_of_groups_without_a_node_are_reported() {
        let text = "Machine (63GB total) + Package L#0\n  Group0 L#0\n    NUMANode L#0 (P#0 63GB)\n    \
                    Core L#0\n      PU L#0 (P#0)\n  Group0 L#1\n    Core L#1\n      PU L#1 (P#1)\n";
        let findings = read_outline(text).unwrap().findings;
        let found = findings.iter().find(|finding| finding.code == "cpu-without-node");
        assert!(found.expect("a finding").message.starts_with("cpus 1 are not in any"));
        assert_eq!(nodes(text), [(0, "0".to_owned(), 63 << 10)]);
    }

    #[test]
    fn an_outline_has_nodes_cpus_cores_packages_and_caches() {
        let Reading { value: machine, findings } = read_outline(NEW).unwrap();
        let codes: Vec<_> = findings.iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, ["sizes-rounded"]);
        let expected = [
            (0, "0,2".to_owned(), 16 << 10),
            (1, "1,3".to_owned(), 31 << 10),
            (2, String::new(), 8007),
        ];
        assert_eq!(nodes(NEW), expected);
        let cpus: Vec<_> = machine
            .cpus
            .iter()
            .map(|cpu| (cpu.package, cpu.core, cpu.thread, cpu.l3_group))
            .collect();
        let of = |part, thread| (Some(part), Some(part), thread, Some(part));
        assert_eq!(cpus, [of(0, 0), of(1, 0), of(0, 1), of(1, 1)]);
        assert_eq!(machine.caches.last().unwrap().size_bytes, Some(32 << 20));
        assert_eq!(machine.caches.len(), 8);
        assert_eq!(nodes(OLD), [(0, "0,2".to_owned(), 16 << 10), (1, "1".to_owned(), 31 << 10)]);
        let one = "Machine (15GB)\n  Socket L#0\n    Core L#0 + PU L#0 (P#0)\n";
        assert_eq!(nodes(one), [(0, "0".to_owned(), 15 << 10)]);
        let verbose = "Machine (P#0 total=9KB OSName=Linux)\n  NUMANode L#0 (P#0 local=2048KB total=9KB)\n  \
                       L1dCache L#0 (P#0 size=32KB ways=8)\n    Core L#0 (P#4)\n      PU L#0 (P#7)\n\
                       depth 0: 1 Machine (type #0)\n NUMANode L#0 = 9 from cpuset 0x1\n";
        assert_eq!(nodes(verbose), [(0, "7".to_owned(), 2)]);
        let physical =
            NEW.replace("PU L#0 (P#0)", "PU P#0").replace("NUMANode L#0 (P#0", "NUMANode P#0 (");
        assert_eq!(nodes(&physical), expected);
    }

    #[test]
    fn an_outline_in_a_mail_is_read_and_a_part_of_one_is_not() {
        let quoted: String = NEW.lines().map(|line| format!("> {line}\r\n")).collect();
        let quoted = format!("$ lstopo\n{quoted}");
        assert_eq!(nodes(&quoted), nodes(NEW));
        let lines: Vec<&str> = NEW.lines().collect();
        assert!(error(&lines[..6].join("\n")).contains("no cpu"));
        let said = error(&lines[..11].join("\n"));
        assert!(said.contains("cores with cpus: 2 announced, only 1 described"), "{said}");
        let said = error(&lines[..8].join("\n"));
        assert!(said.contains("GiB of nodes: 54 announced, only 23 described"), "{said}");
        let flat: String = NEW.lines().map(|line| format!("{}\n", line.trim())).collect();
        assert!(error(&flat).contains("a cpu that is indented below its core"));
        assert!(error(&NEW.replace("PU L#2 (P#1)", "PU L#2")).contains("such as `PU L#0 (P#0)`"));
        assert!(error(&NEW.replace("(P#3)", "(P#1)")).contains("each cpu once"));
        assert!(error(&NEW.replace("L#2 (P#1 31GB)", "L#2 (P#0 31GB)")).contains("each node once"));
        assert!(error(&format!("{NEW}{NEW}")).contains("one machine"));
    }
}
