//! Memory attributes in `lstopo` XML: latencies in nanoseconds and bandwidths in MB/s, each
//! from a set of cpus to a node (hwloc 2.3 and later, `hwloc/memattrs.h`).

use std::collections::BTreeMap;

use numalab_topology::{AccessAttributes, CpuId, CpuSet, Findings, Machine, NodeId};
use roxmltree::Node as Element;

use super::element::{malformed, set};
use super::{FORMAT, bitmap};
use crate::error::ReadError;
use crate::xml_text::XmlText;

/// The largest number of values for initiators and targets that are read: 64 nodes have 25,000.
const MOST_FIGURES: usize = 1 << 20;
/// Flags of an attribute: larger values are better, smaller values are better, and it has
/// initiators.
const HIGHER_FIRST: u8 = 1;
const LOWER_FIRST: u8 = 2;
const NEED_INITIATOR: u8 = 4;

/// The fields of a pair that an attribute describes.
type Fields = fn(&mut AccessAttributes) -> Vec<&mut Option<u64>>;

/// An attribute known to hwloc by this name.
struct Attribute {
    name: &'static str,
    flags: u8,
    fields: Fields,
    /// Number of units of the field in one unit of the attribute.
    scale: u64,
}

const fn bandwidth(name: &'static str, fields: Fields) -> Attribute {
    Attribute { name, flags: HIGHER_FIRST | NEED_INITIATOR, fields, scale: 1 }
}

const fn latency(name: &'static str, fields: Fields) -> Attribute {
    Attribute { name, flags: LOWER_FIRST | NEED_INITIATOR, fields, scale: 1000 }
}

/// The attributes of reads and writes precede those of both, which are their mean.
const ATTRIBUTES: [Attribute; 6] = [
    bandwidth("ReadBandwidth", |of| vec![&mut of.read_bandwidth_mb_per_s]),
    bandwidth("WriteBandwidth", |of| vec![&mut of.write_bandwidth_mb_per_s]),
    latency("ReadLatency", |of| vec![&mut of.read_latency_ps]),
    latency("WriteLatency", |of| vec![&mut of.write_latency_ps]),
    bandwidth("Bandwidth", |of| {
        vec![&mut of.read_bandwidth_mb_per_s, &mut of.write_bandwidth_mb_per_s]
    }),
    latency("Latency", |of| vec![&mut of.read_latency_ps, &mut of.write_latency_ps]),
];

impl Attribute {
    /// Returns the value of the attribute's field, or the mean of its fields.
    fn value_in(&self, access: &AccessAttributes) -> Option<u64> {
        let mut access = access.clone();
        let values = (self.fields)(&mut access).into_iter().filter_map(|field| *field);
        values.reduce(u64::midpoint)
    }
}

/// Attributes that repeat properties of the objects.
const OF_OBJECTS: [&str; 2] = ["Capacity", "Locality"];

/// Writes the known attributes of accesses by nodes with online cpus; `objects` has the number of
/// each node's object.
pub(super) fn write(machine: &Machine, objects: &BTreeMap<NodeId, u64>, xml: &mut XmlText) {
    let online = machine.online_cpus();
    let initiator = |id| {
        let cpus = machine.node(id)?.cpus.intersection(&online);
        (!cpus.is_empty()).then(|| bitmap::write(&cpus))
    };
    let known = machine.access.iter().filter_map(|access| {
        Some((access, initiator(access.initiator)?, *objects.get(&access.target)?))
    });
    let known: Vec<(&AccessAttributes, String, u64)> = known.collect();
    for attribute in &ATTRIBUTES {
        let figure = |access| {
            let value = attribute.value_in(access)?;
            let rounded = value.saturating_add(attribute.scale / 2) / attribute.scale;
            (rounded > 0).then_some(rounded)
        };
        let mut values = known
            .iter()
            .filter_map(|(access, cpus, target)| figure(access).map(|value| (cpus, target, value)));
        let Some(first) = values.next() else { continue };
        xml.open("memattr", &[("name", &attribute.name), ("flags", &attribute.flags)]);
        for (cpus, target, value) in std::iter::once(first).chain(values) {
            xml.empty(
                "memattr_value",
                &[
                    ("target_obj_type", &"NUMANode"),
                    ("target_obj_gp_index", target),
                    ("value", &value),
                    ("initiator_cpuset", cpus),
                ],
            );
        }
        xml.close();
    }
}

/// Reads access attributes. A set of cpus represents the nodes whose cpus are all in it, or the
/// node that contains all of it.
pub(super) fn read(
    root: Element<'_, '_>,
    machine: &mut Machine,
    findings: &mut Findings,
) -> Result<(), ReadError> {
    let of_root = || root.children().filter(|element| element.has_tag_name("memattr"));
    let name = |element: Element<'_, '_>| element.attribute("name").unwrap_or_default().to_owned();
    for element in of_root() {
        let name = name(element);
        if !ATTRIBUTES.iter().any(|known| known.name == name) && !OF_OBJECTS.contains(&&*name) {
            let message = "is a custom attribute, which is not read";
            findings.note("memattr-unread", format!("memattr `{name}`"), message);
        }
    }
    let mut reader = Reader { machine, objects: BTreeMap::new(), known: BTreeMap::new(), taken: 0 };
    if of_root().next().is_some() {
        reader.number_objects(root);
    }
    for attribute in &ATTRIBUTES {
        // Values of the same attribute do not override each other, but those of earlier attributes
        // take precedence.
        let before = reader.known.clone();
        for element in of_root().filter(|element| name(*element) == attribute.name) {
            let values = element.children().filter(|child| child.has_tag_name("memattr_value"));
            for value in values {
                reader.take(attribute, value, &before, findings)?;
            }
        }
    }
    machine.access = reader.known.into_values().collect();
    Ok(())
}

struct Reader<'m, 'a> {
    machine: &'m Machine,
    /// The objects by number.
    objects: BTreeMap<&'a str, Element<'a, 'a>>,
    known: BTreeMap<(NodeId, NodeId), AccessAttributes>,
    taken: usize,
}

impl<'a> Reader<'_, 'a> {
    fn number_objects(&mut self, root: Element<'a, 'a>) {
        let objects = root.descendants().filter(|element| element.has_tag_name("object"));
        self.objects =
            objects.filter_map(|object| Some((object.attribute("gp_index")?, object))).collect();
    }

    fn take(
        &mut self,
        attribute: &Attribute,
        element: Element<'a, 'a>,
        before: &BTreeMap<(NodeId, NodeId), AccessAttributes>,
        findings: &mut Findings,
    ) -> Result<(), ReadError> {
        let text = element.attribute("value").unwrap_or_default();
        let value: u64 =
            text.parse().map_err(|_| malformed(element, text, "a number for value"))?;
        let object = |name| element.attribute(name).and_then(|number| self.objects.get(number));
        let target = object("target_obj_gp_index")
            .filter(|target| target.attribute("type") == Some("NUMANode"))
            .and_then(|target| target.attribute("os_index")?.parse().ok().map(NodeId));
        let from: Option<CpuSet> = match object("initiator_obj_gp_index") {
            Some(object) => set(*object, "cpuset")?,
            None => set(element, "initiator_cpuset")?,
        };
        let initiators = from.map(|cpus| self.initiators(&cpus)).unwrap_or_default();
        let Some(target) = target.filter(|_| !initiators.is_empty() && value > 0) else {
            let message = "its initiator or its target is not a node, so it is not read";
            let place = format!("memattr `{}`", attribute.name);
            findings.note("memattr-value-unread", place, message);
            return Ok(());
        };
        self.taken += initiators.len();
        if self.taken > MOST_FIGURES {
            let (what, found, most) = ("figures of memory attributes", self.taken, MOST_FIGURES);
            return Err(ReadError::TooMany { format: FORMAT, what, found, most });
        }
        for initiator in initiators {
            let pair = (initiator, target);
            let mut earlier = before.get(&pair).cloned().unwrap_or_default();
            if (attribute.fields)(&mut earlier).iter().any(|field| field.is_some()) {
                continue;
            }
            let access = self.known.entry(pair).or_insert_with(|| AccessAttributes {
                initiator,
                target,
                ..AccessAttributes::default()
            });
            for field in (attribute.fields)(access) {
                *field = Some(value.saturating_mul(attribute.scale));
            }
        }
        Ok(())
    }

    fn initiators(&self, cpus: &CpuSet) -> Vec<NodeId> {
        let mut held: BTreeMap<NodeId, usize> = BTreeMap::new();
        let node_of = |cpu: CpuId| self.machine.cpu(cpu).and_then(|cpu| cpu.node);
        for node in cpus.iter().filter_map(node_of) {
            *held.entry(node).or_default() += 1;
        }
        let whole = |(&node, &count): (&NodeId, &usize)| {
            let all = self.machine.node(node).map(|node| node.cpus.len());
            (all == Some(count)).then_some(node)
        };
        let nodes: Vec<NodeId> = held.iter().filter_map(whole).collect();
        if nodes.is_empty() && held.len() == 1 { held.into_keys().collect() } else { nodes }
    }
}
