//! The output of `virsh capabilities`: the nodes and cpus of a libvirt host.
//!
//! It contains nodes with memory, reserved huge pages, cpus and distances, the packages and cores of
//! cpus, and L3 caches, but no free memory.

use std::collections::BTreeMap;

use numalab_topology::{
    Cache, CacheKind, CpuId, CpuSet, Distances, Findings, HugePagePool, Id, IdSet, MAX_ID, NodeId,
};
use roxmltree::Node as Element;

use crate::assembly::Assembly;
use crate::distance::record;
use crate::error::ReadError;
use crate::pasted::{self, Xml};
use crate::reading::Reading;
use crate::size::parse_reported;

const FORMAT: &str = "virsh capabilities";

const XML: Xml = Xml {
    marks: &["<capabilities"],
    end: "</capabilities>",
    format: FORMAT,
    what: "`capabilities` element, as `virsh capabilities` prints it",
    allow_dtd: false,
};

/// Reads the output of `virsh capabilities`.
///
/// # Errors
/// [`ReadError::Markup`] for damaged XML, [`ReadError::Syntax`] for an attribute of another form or a cpu
/// or node that is given twice, [`ReadError::Cut`] if fewer cpus or nodes are listed than counted,
/// [`ReadError::Absent`] if the text is not of this tool, or libvirt knew no nodes.
pub fn read(text: &str) -> Result<Reading, ReadError> {
    let mut reader = Reader::default();
    let text = pasted::xml_of(text, &XML, &mut reader.findings)?;
    let document = pasted::parse(&text, &XML)?;
    let root = document.root_element();
    if !root.has_tag_name("capabilities") {
        return Err(ReadError::Absent { format: FORMAT, what: XML.what });
    }
    let host = child(root, "host");
    let cells = host.and_then(|host| child(child(host, "topology")?, "cells"));
    let Some(cells) = cells else {
        let what = "`cells` in `host` and `topology`: libvirt knew no nodes";
        return Err(ReadError::Absent { format: FORMAT, what });
    };
    for cell in children(cells, "cell") {
        reader.cell(cell)?;
    }
    check_count("nodes", cells, reader.assembly.node_ids().len())?;
    for bank in
        host.and_then(|host| child(host, "cache")).iter().flat_map(|of| children(*of, "bank"))
    {
        reader.bank(bank)?;
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    assembly: Assembly,
    findings: Findings,
    /// The cpus of each core, by its first cpu.
    cores: BTreeMap<Option<CpuId>, CpuSet>,
    caches: Vec<Cache>,
    distances: Vec<(NodeId, NodeId, u8)>,
}

impl Reader {
    fn cell(&mut self, cell: Element<'_, '_>) -> Result<(), ReadError> {
        let id = NodeId(id(cell, "id")?);
        if self.assembly.node_ids().contains(&id) {
            return Err(malformed(cell, &id.to_string(), "each cell once"));
        }
        let memory = child(cell, "memory").map(|of| in_bytes(of, number(of, text_of(of))?));
        let memory = memory.transpose()?;
        let pools = pools(cell)?;
        let node = self.assembly.node(id);
        node.memory_bytes = memory.unwrap_or(0);
        node.memory_unknown = memory.is_none();
        node.huge_pages = pools;
        if let Some(cpus) = child(cell, "cpus") {
            let listed: Vec<Element<'_, '_>> = children(cpus, "cpu").collect();
            check_count("cpus of a node", cpus, listed.len())?;
            listed.into_iter().try_for_each(|cpu| self.cpu(cpu, id))?;
        }
        for far in child(cell, "distances").iter().flat_map(|of| children(*of, "sibling")) {
            let distance = number(far, attribute(far, "value"))?;
            let distance = u8::try_from(distance).ok();
            let distance =
                distance.ok_or_else(|| malformed(far, attribute(far, "value"), "at most 255"));
            self.distances.push((id, NodeId(self::id(far, "id")?), distance?));
        }
        Ok(())
    }

    fn cpu(&mut self, element: Element<'_, '_>, node: NodeId) -> Result<(), ReadError> {
        let id = CpuId(id(element, "id")?);
        if self.assembly.has_cpu(id) {
            return Err(malformed(element, &id.to_string(), "each cpu once"));
        }
        // A cpu that was offline has no other attributes.
        let has = |name| element.has_attribute(name);
        let package = has("socket_id").then(|| self::id(element, "socket_id")).transpose()?;
        let siblings: Option<CpuSet> =
            has("siblings").then(|| list(element, "siblings")).transpose()?;
        let cpu = self.assembly.cpu(id);
        (cpu.node, cpu.package) = (Some(node), package);
        if let Some(siblings) = siblings.filter(|siblings| siblings.contains(id)) {
            self.cores.insert(siblings.first(), siblings);
        }
        Ok(())
    }

    fn bank(&mut self, bank: Element<'_, '_>) -> Result<(), ReadError> {
        let kind = match attribute(bank, "type") {
            "code" => CacheKind::Instruction,
            "data" => CacheKind::Data,
            _ => CacheKind::Unified,
        };
        let level = attribute(bank, "level");
        let level = level.parse().map_err(|_| malformed(bank, level, "the level of a cache"))?;
        let size = in_bytes(bank, number(bank, attribute(bank, "size"))?)?;
        let size_bytes = Some(size).filter(|&size| size > 0);
        let cpus = list(bank, "cpus")?;
        let (line_bytes, ways) = (None, None);
        self.caches.push(Cache { level, kind, size_bytes, line_bytes, ways, cpus });
        Ok(())
    }

    fn finish(mut self) -> Result<Reading, ReadError> {
        let known: CpuSet = self.assembly.cpu_ids().collect();
        for (number, core) in (0..).zip(self.cores.values()) {
            for (thread, id) in (0..).zip(core.intersection(&known).iter()) {
                let cpu = self.assembly.cpu(id);
                (cpu.core, cpu.thread) = (Some(number), thread);
            }
        }
        let is_l3 = |cache: &&Cache| (cache.level, cache.kind) == (3, CacheKind::Unified);
        self.caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
        for (group, cache) in (0..).zip(self.caches.iter().filter(is_l3)) {
            for id in cache.cpus.intersection(&known).iter() {
                self.assembly.cpu(id).l3_group = Some(group);
            }
        }
        let mut machine = self.assembly.finish(FORMAT)?;
        if machine.cpus.is_empty() {
            return Err(ReadError::Absent { format: FORMAT, what: "`cpu` of a cell" });
        }
        machine.caches = self.caches;
        if !self.distances.is_empty() {
            machine.distances = Distances::unknown(machine.nodes.len());
        }
        for (from, to, distance) in self.distances {
            // Without memory or cpus a node has no cell, but others have a distance to it.
            if let Some((from, to)) = machine.node_index(from).zip(machine.node_index(to)) {
                record(&mut machine.distances, from, to, distance, &mut self.findings);
            }
        }
        machine.note_odd_distances(&mut self.findings);
        machine.note_odd_shapes(&mut self.findings);
        Ok(Reading { value: machine, findings: self.findings.into_list() })
    }
}

/// Returns the pools of huge pages of a cell: all sizes but the smallest. The number of free pages is
/// not given.
fn pools(cell: Element<'_, '_>) -> Result<Vec<HugePagePool>, ReadError> {
    let mut pools = Vec::new();
    for pages in children(cell, "pages") {
        let page_bytes = in_bytes(pages, number(pages, attribute(pages, "size"))?)?;
        let total = number(pages, text_of(pages))?;
        pools.push(HugePagePool { page_bytes, total, free: 0 });
    }
    pools.sort_by_key(|pool| pool.page_bytes);
    Ok(pools.into_iter().skip(1).collect())
}

/// Checks that an element has the number of children in its attribute `num`.
fn check_count(what: &'static str, of: Element<'_, '_>, found: usize) -> Result<(), ReadError> {
    match of.attribute("num") {
        Some(counted) if counted.parse() != Ok(found) => {
            let (announced, described) = (counted.to_owned(), found.to_string());
            Err(ReadError::Cut { format: FORMAT, what, announced, described })
        }
        _ => Ok(()),
    }
}

fn children<'a>(of: Element<'a, 'a>, name: &'static str) -> impl Iterator<Item = Element<'a, 'a>> {
    of.children().filter(move |child| child.has_tag_name(name))
}

fn child<'a>(of: Element<'a, 'a>, name: &'static str) -> Option<Element<'a, 'a>> {
    children(of, name).next()
}

fn text_of<'a>(of: Element<'a, 'a>) -> &'a str {
    of.text().unwrap_or_default().trim()
}

fn attribute<'a>(of: Element<'a, 'a>, name: &str) -> &'a str {
    of.attribute(name).unwrap_or_default()
}

fn malformed(of: Element<'_, '_>, found: &str, expected: &str) -> ReadError {
    ReadError::syntax(FORMAT, pasted::line_of(of), found, expected)
}

fn number(of: Element<'_, '_>, text: &str) -> Result<u64, ReadError> {
    let expected = format!("a number in `{}`", of.tag_name().name());
    text.parse().map_err(|_| malformed(of, text, &expected))
}

fn id(of: Element<'_, '_>, name: &str) -> Result<u32, ReadError> {
    let text = attribute(of, name);
    let id = text.parse().ok().filter(|&id| id <= MAX_ID);
    id.ok_or_else(|| malformed(of, text, &format!("a number for {name}")))
}

fn list<I: Id>(of: Element<'_, '_>, name: &str) -> Result<IdSet<I>, ReadError> {
    let text = attribute(of, name);
    text.parse().map_err(|_| malformed(of, text, &format!("a list for {name}, such as 0-3,8")))
}

/// Returns a size in bytes, from the element's unit.
fn in_bytes(of: Element<'_, '_>, size: u64) -> Result<u64, ReadError> {
    let unit = of.attribute("unit").unwrap_or("KiB");
    let bytes = parse_reported(&format!("{size} {unit}"));
    bytes.ok_or_else(|| malformed(of, unit, "a unit such as KiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPABILITIES: &str = "\
<capabilities>
 <host>
  <topology>
   <cells num='2'>
    <cell id='0'>
     <memory unit='KiB'>8388608</memory>
     <pages unit='KiB' size='4'>2097152</pages>
     <pages unit='KiB' size='2048'>16</pages>
     <distances><sibling id='0' value='10'/><sibling id='8' value='21'/></distances>
     <cpus num='2'>
      <cpu id='0' socket_id='0' die_id='0' core_id='0' siblings='0,2'/>
      <cpu id='2' socket_id='0' die_id='0' core_id='0' siblings='0,2'/>
     </cpus>
    </cell>
    <cell id='8'>
     <memory unit='KiB'>4194304</memory>
     <distances><sibling id='0' value='21'/><sibling id='8' value='10'/></distances>
     <cpus num='2'>
      <cpu id='1' socket_id='1' die_id='0' core_id='0' siblings='1,3'/>
      <cpu id='3' socket_id='1' die_id='0' core_id='0' siblings='1,3'/>
     </cpus>
    </cell>
   </cells>
  </topology>
  <cache>
   <bank id='0' level='3' type='both' size='15' unit='MiB' cpus='0,2'/>
   <bank id='1' level='3' type='both' size='15' unit='MiB' cpus='1,3'/>
  </cache>
 </host>
 <guest><arch name='x86_64'/></guest>
</capabilities>
";

    fn error(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn nodes_cpus_caches_and_distances_of_a_libvirt_host_are_read() {
        let Reading { value: machine, findings } = read(CAPABILITIES).unwrap();
        assert_eq!(findings, []);
        let nodes: Vec<_> = machine
            .nodes
            .iter()
            .map(|node| (node.id.0, node.cpus.to_string(), node.memory_bytes >> 30))
            .collect();
        assert_eq!(nodes, [(0, "0,2".to_owned(), 8), (8, "1,3".to_owned(), 4)]);
        let pool = HugePagePool { page_bytes: 2 << 20, total: 16, free: 0 };
        assert_eq!(machine.nodes[0].huge_pages, [pool]);
        assert_eq!(machine.distance(NodeId(0), NodeId(8)), Some(21));
        let cpus: Vec<_> = machine
            .cpus
            .iter()
            .map(|cpu| (cpu.package, cpu.core, cpu.thread, cpu.l3_group))
            .collect();
        let of = |part, thread| (Some(part), Some(part), thread, Some(part));
        assert_eq!(cpus, [of(0, 0), of(1, 0), of(0, 1), of(1, 1)]);
        assert_eq!(machine.caches[1].size_bytes, Some(15 << 20));
        let pasted: String = CAPABILITIES.lines().map(|line| format!("> {line}\r\n")).collect();
        assert_eq!(read(&format!("$ virsh capabilities\n{pasted}")).unwrap().value, machine);
    }

    #[test]
    fn a_part_of_the_output_is_not_taken_for_a_smaller_machine() {
        let said = error(&CAPABILITIES.replace("cells num='2'", "cells num='3'"));
        assert!(said.contains("nodes: 3 announced, only 2 described"), "{said}");
        let said = error(&CAPABILITIES.replace("cpus num='2'", "cpus num='4'"));
        assert!(said.contains("cpus of a node: 4 announced, only 2 described"), "{said}");
        let said = error(&CAPABILITIES.replace("cpu id='3'", "cpu id='1'"));
        assert!(said.contains("each cpu once"), "{said}");
        assert!(error("<capabilities><host/></capabilities>").contains("libvirt knew no nodes"));
        assert!(error("<domain type='kvm'/>").contains("as `virsh capabilities` prints it"));
        let without = CAPABILITIES.replace("<memory unit='KiB'>4194304</memory>", "");
        assert!(read(&without).unwrap().value.nodes[1].memory_unknown);
        for end in 0..CAPABILITIES.len() - "</capabilities>\n".len() {
            assert!(read(&CAPABILITIES[..end]).is_err(), "{end}");
        }
    }
}
