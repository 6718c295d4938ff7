//! Reader of `lstopo` XML.

use std::collections::{BTreeMap, BTreeSet};

use numalab_topology::{
    Allowed, Cache, CacheKind, CpuId, CpuSet, Findings, Id, IdSet, Machine, NodeId, NodeSet,
};
use roxmltree::Node as Element;

use super::element::{
    is_infinite, malformed, number, os_index, place, positive, set, set_or_empty,
};
use super::node_memory::{huge_pages, is_memory_side, memory_side_caches};
use super::{CPU_LESS, FORMAT, MEMORY_UNKNOWN, distances, memory_attributes};
use crate::assembly::Assembly;
use crate::error::ReadError;
use crate::pasted::{self, Xml};
use crate::reading::Reading;

const XML: Xml = Xml {
    marks: &["<?xml", "<!DOCTYPE topology", "<topology"],
    end: "</topology>",
    format: FORMAT,
    what: "XML in the text, as `lstopo --of xml FILE` writes it",
    allow_dtd: true,
};

/// Reads the output of `lstopo --of xml`, in the format of hwloc 1, 2 or 3.
///
/// # Errors
/// [`ReadError::Markup`] for damaged XML, [`ReadError::Syntax`] for an attribute of another form,
/// [`ReadError::Absent`] if it is not XML or contains no topology or no cpu.
pub fn read_xml(text: &str) -> Result<Reading, ReadError> {
    let mut findings = Findings::default();
    let text = pasted::xml_of(text, &XML, &mut findings)?;
    let document = pasted::parse(&text, &XML)?;
    let root = document.root_element();
    if !root.has_tag_name("topology") {
        let what = "`topology` element";
        return Err(ReadError::Absent { format: FORMAT, what });
    }
    let objects = Objects::collect(root);
    let mut reader = Reader { objects, assembly: Assembly::default(), findings };
    reader.read(root)
}

/// The objects of the tree by type, in order of the document.
#[derive(Default)]
struct Objects<'a> {
    machine: Option<Element<'a, 'a>>,
    packages: Vec<Element<'a, 'a>>,
    cores: Vec<Element<'a, 'a>>,
    cpus: Vec<Element<'a, 'a>>,
    nodes: Vec<Element<'a, 'a>>,
    caches: Vec<(u8, CacheKind, Element<'a, 'a>)>,
}

impl<'a> Objects<'a> {
    fn collect(root: Element<'a, 'a>) -> Self {
        let mut objects = Self::default();
        for element in root.descendants().filter(|element| element.has_tag_name("object")) {
            match element.attribute("type").unwrap_or_default() {
                "Machine" => objects.machine = objects.machine.or(Some(element)),
                "Package" | "Socket" => objects.packages.push(element),
                "Core" => objects.cores.push(element),
                "PU" => objects.cpus.push(element),
                "NUMANode" => objects.nodes.push(element),
                _ => {
                    if let Some((level, kind)) = cache_of(element) {
                        objects.caches.push((level, kind, element));
                    }
                }
            }
        }
        objects
    }
}

struct Reader<'a> {
    objects: Objects<'a>,
    assembly: Assembly,
    findings: Findings,
}

impl<'a> Reader<'a> {
    fn read(&mut self, root: Element<'a, 'a>) -> Result<Reading, ReadError> {
        self.cpus()?;
        self.nodes()?;
        self.number_packages()?;
        let cores = self.sets(&self.objects.cores)?;
        self.number(cores, |cpu, number| cpu.core = Some(number));
        self.number_threads()?;
        let l3 = self
            .objects
            .caches
            .iter()
            .filter(|(level, kind, _)| (*level, *kind) == (3, CacheKind::Unified));
        let l3: Vec<Element<'a, 'a>> = l3.map(|&(_, _, element)| element).collect();
        let l3 = self.sets(&l3)?;
        self.number(l3, |cpu, number| cpu.l3_group = Some(number));
        let caches = self.caches()?;
        let allowed = self.allowed()?;
        let mut machine = std::mem::take(&mut self.assembly).finish(FORMAT)?;
        machine.caches = caches;
        machine.allowed = allowed;
        memory_attributes::read(root, &mut machine, &mut self.findings)?;
        distances::read(root, &self.objects.nodes, &mut machine, &mut self.findings)?;
        self.hide_cpus(&mut machine)?;
        machine.note_odd_shapes(&mut self.findings);
        let findings = std::mem::take(&mut self.findings).into_list();
        Ok(Reading { value: machine, findings })
    }

    fn cpus(&mut self) -> Result<(), ReadError> {
        for element in &self.objects.cpus {
            let id = CpuId(os_index(*element)?);
            if self.assembly.has_cpu(id) {
                return Err(malformed(*element, &id.to_string(), "each PU once"));
            }
            self.assembly.cpu(id);
        }
        if self.objects.cpus.is_empty() {
            let what = "`PU` object";
            return Err(ReadError::Absent { format: FORMAT, what });
        }
        Ok(())
    }

    /// Adds the nodes, and places every cpu on one.
    fn nodes(&mut self) -> Result<(), ReadError> {
        let mut sets = Vec::new();
        let mut seen = BTreeSet::new();
        // hwloc leaves out the size of a node without memory. If no node has a size, hwloc knew
        // none.
        let has_size = |node: &Element<'_, '_>| node.has_attribute("local_memory");
        let has_sizes = self.objects.nodes.iter().any(has_size);
        for element in self.objects.nodes.clone() {
            let id = NodeId(os_index(element)?);
            if !seen.insert(id) {
                return Err(malformed(element, &id.to_string(), "each NUMANode once"));
            }
            let node = self.assembly.node(id);
            if let Some(bytes) = element.attribute("local_memory") {
                node.memory_bytes = number(element, "local_memory", bytes)?;
            }
            node.memory_unknown = !has_sizes || is_marked(element, MEMORY_UNKNOWN);
            node.huge_pages = huge_pages(element)?;
            node.memory_side_caches = memory_side_caches(element)?;
            let set: CpuSet = match set(element, "complete_cpuset")? {
                _ if is_marked(element, CPU_LESS) => CpuSet::new(),
                Some(set) => set,
                None => set_or_empty(element, "cpuset")?,
            };
            sets.push((id, set));
        }
        if sets.is_empty() {
            return self.only_node();
        }
        let placed = self.assembly.place_by_smallest(sets);
        let all: CpuSet = self.assembly.cpu_ids().collect();
        let homeless = self.by_nodeset(all.difference(&placed), &seen)?;
        if !homeless.is_empty() {
            let message = format!("cpus {homeless} are not in any node");
            self.findings.warning("cpu-without-node", "NUMANode objects".to_owned(), message);
        }
        Ok(())
    }

    /// If no node lists a cpu, places each on the node of its own set of nodes, or else on the only node;
    /// returns the others.
    fn by_nodeset(
        &mut self,
        homeless: CpuSet,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<CpuSet, ReadError> {
        let is_meant = self.objects.nodes.iter().any(|node| is_marked(*node, CPU_LESS));
        if is_meant || homeless.len() < self.objects.cpus.len() {
            return Ok(homeless);
        }
        let only = nodes.first().filter(|_| nodes.len() == 1).copied();
        let mut left = CpuSet::new();
        for element in self.objects.cpus.clone() {
            let cpu = CpuId(os_index(element)?);
            let listed: NodeSet = set_or_empty(element, "nodeset")?;
            let own = listed.first().filter(|node| listed.len() == 1 && nodes.contains(node));
            match own.or(only) {
                Some(node) => self.assembly.cpu(cpu).node = Some(node),
                None => _ = left.insert(cpu),
            }
        }
        Ok(left)
    }

    /// Adds the node that hwloc 1 leaves out of a machine without NUMA: it gives the memory to the
    /// machine.
    fn only_node(&mut self) -> Result<(), ReadError> {
        let with_memory =
            self.objects.machine.and_then(|of| Some((of, of.attribute("local_memory")?)));
        let Some((element, bytes)) = with_memory else {
            let message = "there is none: nodes are unknown".to_owned();
            self.findings.warning("nodes-missing", "NUMANode objects".to_owned(), message);
            return Ok(());
        };
        let bytes = number(element, "local_memory", bytes)?;
        self.assembly.node(NodeId(0)).memory_bytes = bytes;
        for element in &self.objects.cpus {
            self.assembly.cpu(CpuId(os_index(*element)?)).node = Some(NodeId(0));
        }
        let message = "there is no node: the machine is assumed to have one".to_owned();
        self.findings.note("no-nodes", place(element), message);
        Ok(())
    }

    /// Keeps the numbers of packages if they are present and distinct.
    fn number_packages(&mut self) -> Result<(), ReadError> {
        let mut numbers = BTreeMap::new();
        for element in &self.objects.packages {
            let number = element.attribute("os_index").and_then(|text| text.parse::<u32>().ok());
            if let Some(number) = number {
                numbers.insert(number, *element);
            }
        }
        if numbers.len() < self.objects.packages.len() {
            let sets = self.sets(&self.objects.packages)?;
            self.number(sets, |cpu, number| cpu.package = Some(number));
            return Ok(());
        }
        for (number, element) in numbers {
            for cpu in set_or_empty::<CpuId>(element, "cpuset")?.iter() {
                if self.assembly.has_cpu(cpu) {
                    self.assembly.cpu(cpu).package = Some(number);
                }
            }
        }
        Ok(())
    }

    /// Returns the sets of these objects that contain a known cpu, by smallest cpu.
    fn sets(&self, elements: &[Element<'a, 'a>]) -> Result<Vec<CpuSet>, ReadError> {
        let mut sets = Vec::new();
        for element in elements {
            let set = set_or_empty::<CpuId>(*element, "cpuset")?;
            let known: CpuSet = set.iter().filter(|&cpu| self.assembly.has_cpu(cpu)).collect();
            if !known.is_empty() {
                sets.push(known);
            }
        }
        sets.sort_by_key(CpuSet::first);
        Ok(sets)
    }

    fn number(&mut self, sets: Vec<CpuSet>, assign: impl Fn(&mut numalab_topology::Cpu, u32)) {
        for (number, set) in (0u32..).zip(sets) {
            for cpu in set.iter() {
                assign(self.assembly.cpu(cpu), number);
            }
        }
    }

    fn number_threads(&mut self) -> Result<(), ReadError> {
        for set in self.sets(&self.objects.cores)? {
            for (thread, cpu) in (0u32..).zip(set.iter()) {
                self.assembly.cpu(cpu).thread = thread;
            }
        }
        Ok(())
    }

    fn caches(&self) -> Result<Vec<Cache>, ReadError> {
        let mut caches = Vec::new();
        for &(level, kind, element) in &self.objects.caches {
            let cpus: CpuSet = set_or_empty(element, "cpuset")?;
            if cpus.is_empty() {
                continue;
            }
            let cache = Cache {
                level,
                kind,
                size_bytes: positive(element, "cache_size")?,
                line_bytes: positive(element, "cache_linesize")?,
                ways: positive(element, "cache_associativity")?,
                cpus,
            };
            // A level 3 cache without any properties is an L3 group, as the writer writes it.
            let known = (cache.size_bytes, cache.line_bytes, cache.ways) != (None, None, None);
            if known || (level, kind) != (3, CacheKind::Unified) {
                caches.push(cache);
            }
        }
        caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
        Ok(caches)
    }

    /// Returns the restrictions of the process, if it may use less than the whole topology. A
    /// process without any cpu or memory could not have written the file, so empty sets restrict
    /// nothing.
    fn allowed(&mut self) -> Result<Option<Allowed>, ReadError> {
        let Some(machine) = self.objects.machine else {
            return Ok(None);
        };
        let shown: CpuSet = self
            .objects
            .cpus
            .iter()
            .map(|element| os_index(*element).map(CpuId))
            .collect::<Result<_, _>>()?;
        let nodes: NodeSet = self.assembly.node_ids().into_iter().collect();
        let cpus = self.not_empty(machine, "allowed_cpuset")?.unwrap_or_else(|| shown.clone());
        let memory_nodes =
            self.not_empty(machine, "allowed_nodeset")?.unwrap_or_else(|| nodes.clone());
        let everything = shown.is_subset(&cpus) && nodes.is_subset(&memory_nodes);
        Ok((!everything).then_some(Allowed { cpus, memory_nodes, ..Allowed::default() }))
    }

    /// Returns a set of the machine unless it is infinite, or empty, which is a finding.
    fn not_empty<I: Id>(
        &mut self,
        machine: Element<'a, 'a>,
        name: &str,
    ) -> Result<Option<IdSet<I>>, ReadError> {
        if is_infinite(machine, name) {
            return Ok(None);
        }
        let given = set(machine, name)?;
        if given.as_ref().is_some_and(IdSet::is_empty) {
            let message = format!("{name} is empty: every {} counts as allowed", I::WHAT);
            self.findings.note("allowed-set-empty", place(machine), message);
        }
        Ok(given.filter(|set| !set.is_empty()))
    }

    /// Adds the cpus that the machine has but the tree does not show.
    fn hide_cpus(&mut self, machine: &mut Machine) -> Result<(), ReadError> {
        let known = |element: &Element<'_, '_>| !is_infinite(*element, "complete_cpuset");
        let Some(element) = self.objects.machine.filter(known) else {
            return Ok(());
        };
        let complete: CpuSet = set_or_empty(element, "complete_cpuset")?;
        let shown: CpuSet = machine.cpus.iter().map(|cpu| cpu.id).collect();
        let hidden = complete.difference(&shown);
        if hidden.is_empty() {
            return Ok(());
        }
        let message = format!("cpus {hidden} are offline or not allowed, and shown as offline");
        self.findings.note("cpus-hidden", place(element), message);
        machine.cpus.extend(
            hidden
                .iter()
                .map(|id| numalab_topology::Cpu { id, ..numalab_topology::Cpu::default() }),
        );
        machine.cpus.sort_by_key(|cpu| cpu.id);
        Ok(())
    }
}

/// Returns level and kind of a cache in front of cpus; `None` for anything else.
fn cache_of(element: Element<'_, '_>) -> Option<(u8, CacheKind)> {
    let kind = element.attribute("type")?;
    let level = match kind {
        "Cache" => element.attribute("depth")?,
        _ => kind.strip_prefix('L')?.strip_suffix("Cache")?.trim_end_matches('i'),
    };
    // In hwloc 1 and its descendants, memory used as a cache is an object around its node.
    if is_memory_side(element) {
        return None;
    }
    let kind = match element.attribute("cache_type") {
        Some("1") => CacheKind::Data,
        Some("2") => CacheKind::Instruction,
        _ => CacheKind::Unified,
    };
    Some((level.parse().ok()?, kind))
}

/// Returns true if numalab's own writer marked a node in this way.
fn is_marked(node: Element<'_, '_>, mark: &str) -> bool {
    let mut infos = node.children().filter(|child| child.has_tag_name("info"));
    infos.any(|info| info.attribute("name") == Some(mark))
}
