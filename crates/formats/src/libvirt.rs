//! libvirt: the elements of a domain that describe the cpus and nodes of a guest.

use std::fmt::Display;

use numalab_topology::{Findings, Machine, MemorySideCache};

use crate::error::WriteError;
use crate::feature::{Carried, Feature};
use crate::guest::{Guest, nanoseconds};
use crate::reading::Written;
use crate::regular::note_unknown_parts;
use crate::xml_text::XmlText;

const FORMAT: &str = "libvirt";
const KIB_PER_MIB: u64 = 1024;

/// The features that a domain represents.
pub const CARRIED: Carried = Carried {
    format: "a libvirt domain",
    features: &[
        Feature::UnplacedCpus,
        Feature::Nodes,
        Feature::Memory,
        Feature::Packages,
        Feature::Cores,
        Feature::L3Groups,
        Feature::Distances,
        Feature::Access,
        Feature::MemorySideCaches,
    ],
    but: &[
        Feature::Bytes,
        Feature::SharedCpus,
        Feature::CpulessInitiators,
        Feature::AccessClasses,
        Feature::Picoseconds,
    ],
};

/// Writes `<memory>`, `<vcpu>` and `<cpu>`, for use in a `<domain>`.
///
/// # Errors
/// [`WriteError::Unknown`] without nodes, cpus or memory.
pub fn write(machine: &Machine) -> Result<Written, WriteError> {
    let mut findings = Findings::default();
    let guest = Guest::of(FORMAT, machine, &mut findings)?;
    note_unknown_parts(machine, &mut findings);
    let mut xml = XmlText::default();
    let memory_kib = guest.memory_mib() * KIB_PER_MIB;
    xml.text("memory", &[("unit", &"KiB")], &memory_kib);
    xml.text("vcpu", &[("placement", &"static")], &guest.cpus.len());
    let caches = guest.side_caches(machine, &mut findings);
    cpu(&guest, &caches, &mut xml);
    Ok(Written { output: xml.finish(), losses: findings.into_list() })
}

fn cpu(guest: &Guest, caches: &[Vec<MemorySideCache>], xml: &mut XmlText) {
    let shape = guest.shape;
    xml.open("cpu", &[]);
    xml.empty(
        "topology",
        &[
            ("sockets", &shape.packages),
            ("dies", &shape.l3_groups),
            ("cores", &shape.cores),
            ("threads", &shape.threads),
        ],
    );
    xml.open("numa", &[]);
    for (id, node) in guest.nodes.iter().enumerate() {
        let memory_kib = node.memory_mib * KIB_PER_MIB;
        let mut attributes: Vec<(&str, &dyn Display)> = vec![("id", &id)];
        if !node.cpus.is_empty() {
            attributes.push(("cpus", &node.cpus));
        }
        attributes.extend([("memory", &memory_kib as &dyn Display), ("unit", &"KiB")]);
        xml.open("cell", &attributes);
        xml.open("distances", &[]);
        for (to, distance) in node.distances.iter().enumerate() {
            xml.empty("sibling", &[("id", &to), ("value", distance)]);
        }
        xml.close();
        caches[id].iter().for_each(|cache| side_cache(cache, xml));
        xml.close();
    }
    if !guest.access.is_empty() {
        interconnects(guest, xml);
    }
    xml.close();
    xml.close();
}

fn side_cache(cache: &MemorySideCache, xml: &mut XmlText) {
    let associativity = match cache.ways {
        None => "none",
        Some(1) => "direct",
        Some(_) => "full",
    };
    let attributes: [(&str, &dyn Display); 3] =
        [("level", &cache.level), ("associativity", &associativity), ("policy", &"none")];
    xml.open("cache", &attributes);
    xml.empty("size", &[("value", &(cache.size_bytes / 1024)), ("unit", &"KiB")]);
    xml.empty("line", &[("value", &cache.line_bytes.unwrap_or_default()), ("unit", &"B")]);
    xml.close();
}

/// Writes latencies in nanoseconds and bandwidths in KiB per second.
fn interconnects(guest: &Guest, xml: &mut XmlText) {
    xml.open("interconnects", &[]);
    for ((initiator, target), access) in &guest.access {
        let latencies = [("read", access.read_latency_ps), ("write", access.write_latency_ps)];
        for (kind, ps) in latencies {
            let Some(ns) = nanoseconds(ps) else {
                continue;
            };
            let pair: [(&str, &dyn Display); 4] =
                [("initiator", initiator), ("target", target), ("type", &kind), ("value", &ns)];
            xml.empty("latency", &pair);
        }
        let bandwidths =
            [("read", access.read_bandwidth_mb_per_s), ("write", access.write_bandwidth_mb_per_s)];
        for (kind, mb) in bandwidths {
            let Some(kib) = mb.filter(|&mb| mb > 0).map(|mb| mb.saturating_mul(1024)) else {
                continue;
            };
            let pair: [(&str, &dyn Display); 5] = [
                ("initiator", initiator),
                ("target", target),
                ("type", &kind),
                ("value", &kib),
                ("unit", &"KiB"),
            ];
            xml.empty("bandwidth", &pair);
        }
    }
    xml.close();
}
