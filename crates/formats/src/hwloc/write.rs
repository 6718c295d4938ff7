//! Writer of `lstopo` XML.

use std::collections::BTreeMap;
use std::fmt::Display;

use numalab_topology::{
    Cache, CacheKind, CpuSet, HugePagePool, Machine, MemorySideCache, Node, NodeId, NodeSet,
};

use super::tree::{CacheOrder, Object, ObjectKind, Tree};
use super::{CPU_LESS, LARGEST_BASE_PAGE, MEMORY_UNKNOWN, bitmap, memory_attributes};
use crate::error::WriteError;
use crate::xml_text::XmlText;

/// The smallest ordinary page size.
const SMALLEST_PAGE: u64 = 4 << 10;

/// Writes a machine for `lstopo --input FILE.xml` of hwloc 2.x, which hwloc 3 also reads.
///
/// # Errors
/// [`WriteError::Inexpressible`] if packages, caches, nodes and cores do not nest: hwloc only
/// supports trees.
pub fn write_xml(machine: &Machine) -> Result<String, WriteError> {
    let tree = Tree::build(machine)?;
    let mut writer = Writer {
        machine,
        tree: &tree,
        xml: XmlText::default(),
        objects_written: 0,
        node_objects: BTreeMap::new(),
    };
    writer.document();
    Ok(writer.xml.finish())
}

type Attribute = (&'static str, String);

struct Writer<'m> {
    machine: &'m Machine,
    tree: &'m Tree,
    xml: XmlText,
    /// Number of objects written so far, which gives the next object its number (`gp_index`).
    objects_written: u64,
    /// The numbers of the nodes' objects.
    node_objects: BTreeMap<NodeId, u64>,
}

impl Writer<'_> {
    fn document(&mut self) {
        self.xml.line(r#"<?xml version="1.0" encoding="UTF-8"?>"#);
        self.xml.line(r#"<!DOCTYPE topology SYSTEM "hwloc2.dtd">"#);
        self.xml.open("topology", &[("version", &"2.0")]);
        self.object(0);
        self.distances();
        memory_attributes::write(self.machine, &self.node_objects, &mut self.xml);
        self.xml.close();
    }

    /// Writes an object with everything below it.
    fn object(&mut self, index: usize) {
        let object = &self.tree.objects[index];
        let nodes = self.tree.nodes_around(index);
        let (name, os_index) = self.name(object);
        let mut attributes = vec![("type", name)];
        attributes.extend(os_index.map(|number| ("os_index", number.to_string())));
        attributes.extend(self.sets(&object.cpus, &nodes, object.kind == ObjectKind::Machine));
        attributes.extend(self.details(object));
        self.open(&attributes);
        for &id in &object.nodes {
            self.attached_node(id, object);
        }
        for &child in &object.children {
            self.object(child);
        }
        self.xml.close();
    }

    /// Returns the type of an object and its number in the system.
    fn name(&self, object: &Object) -> (String, Option<u32>) {
        let (name, number) = match &object.kind {
            ObjectKind::Machine => ("Machine", Some(0)),
            ObjectKind::Package(number) => ("Package", Some(*number)),
            ObjectKind::Group => ("Group", None),
            ObjectKind::Core(number) => ("Core", Some(*number)),
            ObjectKind::Pu(cpu) => ("PU", Some(cpu.0)),
            ObjectKind::Cache(order) => {
                let (level, kind) = self
                    .cache(order)
                    .map_or((3, CacheKind::Unified), |cache| (cache.level, cache.kind));
                let letter = if kind == CacheKind::Instruction { "i" } else { "" };
                return (format!("L{level}{letter}Cache"), None);
            }
        };
        (name.to_owned(), number)
    }

    fn cache(&self, order: &CacheOrder) -> Option<&Cache> {
        order.index.and_then(|index| self.machine.caches.get(index))
    }

    /// Returns the attributes that only objects of this kind have.
    fn details(&self, object: &Object) -> Vec<Attribute> {
        let order = match &object.kind {
            ObjectKind::Group => {
                return vec![("kind", "0".to_owned()), ("subkind", "0".to_owned())];
            }
            ObjectKind::Cache(order) => order,
            _ => return Vec::new(),
        };
        let cache = self.cache(order);
        let number = |value: Option<u64>| value.unwrap_or_default().to_string();
        let kind = match cache.map(|cache| cache.kind) {
            None | Some(CacheKind::Unified) => "0",
            Some(CacheKind::Data) => "1",
            Some(CacheKind::Instruction) => "2",
        };
        vec![
            ("cache_size", number(cache.and_then(|cache| cache.size_bytes))),
            ("depth", cache.map_or(3, |cache| cache.level).to_string()),
            ("cache_linesize", number(cache.and_then(|cache| cache.line_bytes).map(u64::from))),
            ("cache_associativity", number(cache.and_then(|cache| cache.ways).map(u64::from))),
            ("cache_type", kind.to_owned()),
        ]
    }

    /// Returns the sets that every object has; those of the machine also describe what exists and
    /// is allowed.
    fn sets(&mut self, cpus: &CpuSet, nodes: &NodeSet, is_machine: bool) -> Vec<Attribute> {
        let complete = if is_machine { self.all_cpus() } else { cpus.clone() };
        let mut sets =
            vec![("cpuset", bitmap::write(cpus)), ("complete_cpuset", bitmap::write(&complete))];
        let allowed = self.machine.allowed.as_ref().filter(|_| is_machine);
        if is_machine {
            let cpus = allowed.map_or(cpus, |allowed| &allowed.cpus);
            sets.push(("allowed_cpuset", bitmap::write(cpus)));
        }
        sets.push(("nodeset", bitmap::write(nodes)));
        sets.push(("complete_nodeset", bitmap::write(nodes)));
        if is_machine {
            let nodes = allowed.map_or(nodes, |allowed| &allowed.memory_nodes);
            sets.push(("allowed_nodeset", bitmap::write(nodes)));
        }
        self.objects_written += 1;
        sets.push(("gp_index", self.objects_written.to_string()));
        sets
    }

    fn all_cpus(&self) -> CpuSet {
        self.machine.cpus.iter().map(|cpu| cpu.id).collect()
    }

    fn attached_node(&mut self, id: NodeId, object: &Object) {
        let node = self.machine.node(id);
        let caches = node.map_or(&[][..], |node| &node.memory_side_caches);
        for cache in caches {
            self.memory_side_cache(cache, id, &object.cpus);
        }
        self.open_node(id, &object.cpus);
        self.node_objects.insert(id, self.objects_written);
        if let Some(node) = node {
            self.pages(node);
            let online = self.machine.online_cpus();
            if node.cpus.intersection(&online).is_empty() {
                // The node is attached to an object with other nodes' cpus, or with cpus without a
                // node.
                self.xml.empty("info", &[("name", &CPU_LESS), ("value", &1)]);
            }
            if node.memory_unknown {
                self.xml.empty("info", &[("name", &MEMORY_UNKNOWN), ("value", &1)]);
            }
        }
        self.xml.close();
        caches.iter().for_each(|_| self.xml.close());
    }

    /// Writes the pools of huge pages after the ordinary pages, if the size of those is certain:
    /// only with ordinary pages of 4 KiB are there huge pages as small as the ordinary ones of some
    /// architectures.
    fn pages(&mut self, node: &Node) {
        let of_pools = |pool: &HugePagePool| pool.page_bytes.saturating_mul(pool.total);
        if node.huge_pages.iter().any(|pool| pool.page_bytes <= LARGEST_BASE_PAGE) {
            let huge = node.huge_pages.iter().map(of_pools).fold(0, u64::saturating_add);
            let count = node.memory_bytes.saturating_sub(huge) / SMALLEST_PAGE;
            self.xml.empty("page_type", &[("size", &SMALLEST_PAGE), ("count", &count)]);
        }
        for pool in &node.huge_pages {
            self.xml.empty("page_type", &[("size", &pool.page_bytes), ("count", &pool.total)]);
        }
    }

    fn memory_side_cache(&mut self, cache: &MemorySideCache, id: NodeId, cpus: &CpuSet) {
        let mut attributes = vec![("type", "MemCache".to_owned())];
        attributes.extend(self.sets(cpus, &NodeSet::from_iter([id]), false));
        let number = |value: Option<u32>| value.unwrap_or_default().to_string();
        attributes.extend([
            ("cache_size", cache.size_bytes.to_string()),
            ("depth", cache.level.to_string()),
            ("cache_linesize", number(cache.line_bytes)),
            ("cache_associativity", number(cache.ways)),
            ("cache_type", "0".to_owned()),
        ]);
        self.open(&attributes);
    }

    fn open_node(&mut self, id: NodeId, cpus: &CpuSet) {
        let memory_bytes = self.machine.node(id).map_or(0, |node: &Node| node.memory_bytes);
        let mut attributes = vec![("type", "NUMANode".to_owned()), ("os_index", id.to_string())];
        attributes.extend(self.sets(cpus, &NodeSet::from_iter([id]), false));
        attributes.push(("local_memory", memory_bytes.to_string()));
        self.open(&attributes);
    }

    fn open(&mut self, attributes: &[Attribute]) {
        let attributes: Vec<(&str, &dyn Display)> =
            attributes.iter().map(|(name, value)| (*name, value as &dyn Display)).collect();
        self.xml.open("object", &attributes);
    }

    fn distances(&mut self) {
        let online = self.machine.nodes.iter().filter(|node| node.online);
        let ids: Vec<NodeId> = online.map(|node| node.id).collect();
        let Some(rows) = self.complete_distances(&ids).filter(|rows| rows.len() > 1) else {
            // hwloc refuses the distances of a single node.
            return;
        };
        self.xml.open(
            "distances2",
            &[
                ("type", &"NUMANode"),
                ("nbobjs", &ids.len()),
                ("kind", &5),
                ("name", &"NUMALatency"),
                ("indexing", &"os"),
            ],
        );
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.numbers("indexes", &ids);
        for row in rows {
            let row: Vec<String> = row.iter().map(ToString::to_string).collect();
            self.numbers("u64values", &row);
        }
        self.xml.close();
    }

    /// Writes numbers in hwloc's form: with the length of their text.
    fn numbers(&mut self, name: &'static str, numbers: &[String]) {
        let text: String = numbers.iter().map(|number| format!("{number} ")).collect();
        self.xml.text(name, &[("length", &text.len())], &text);
    }

    /// Returns the distances between these nodes, if all are known.
    fn complete_distances(&self, ids: &[NodeId]) -> Option<Vec<Vec<u8>>> {
        let row = |&from: &NodeId| ids.iter().map(|&to| self.machine.distance(from, to)).collect();
        let rows: Vec<Vec<u8>> = ids.iter().map(row).collect::<Option<_>>()?;
        (!rows.is_empty()).then_some(rows)
    }
}
