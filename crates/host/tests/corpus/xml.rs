//! lstopo's XML.

use numalab_topology::CacheKind;
use roxmltree::{Document, Node, ParsingOptions};

use crate::expected::{Expected, ExpectedCache, mask};

/// Parses the objects, and the distances between nodes.
pub fn parse(text: &str) -> Expected {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).unwrap();
    let mut expected = Expected::default();
    for object in document.descendants().filter(|node| node.has_tag_name("object")) {
        let number = || number(object, "os_index");
        let cpus = || mask(object.attribute("cpuset").unwrap());
        match object.attribute("type").unwrap() {
            "PU" => expected.cpus.extend(cpus().iter()),
            "Core" => {
                expected.cores.insert(cpus());
            }
            "Package" => {
                let number = object.attribute("os_index").map(|text| text.parse().unwrap());
                expected.packages.push((number, cpus()));
            }
            "NUMANode" => {
                let bytes = self::number(object, "local_memory");
                let node = u32::try_from(number()).unwrap();
                expected.nodes.insert(node, (cpus(), bytes, bytes));
            }
            kind if kind.contains("Cache") => expected.caches.push(cache(object)),
            _ => {}
        }
    }
    expected.cores.retain(|cpus| !cpus.is_empty());
    distances(&document, &mut expected);
    expected
}

fn number(object: Node<'_, '_>, name: &str) -> u64 {
    object.attribute(name).map_or(0, |text| text.parse().unwrap())
}

fn cache(object: Node<'_, '_>) -> ExpectedCache {
    let kind = match number(object, "cache_type") {
        0 => CacheKind::Unified,
        1 => CacheKind::Data,
        _ => CacheKind::Instruction,
    };
    (
        u8::try_from(number(object, "depth")).unwrap(),
        kind,
        mask(object.attribute("cpuset").unwrap()),
        number(object, "cache_linesize"),
        object.attribute("cache_associativity").map_or(0, |text| text.parse().unwrap_or(0)),
        (number(object, "cache_size"), number(object, "cache_size")),
    )
}

fn distances(document: &Document<'_>, expected: &mut Expected) {
    let tables = document
        .descendants()
        .filter(|node| node.has_tag_name("distances2"))
        .filter(|node| node.attribute("type") == Some("NUMANode"));
    for table in tables {
        let numbers = |tag: &str| -> Vec<u32> {
            table
                .children()
                .filter(|node| node.has_tag_name(tag))
                .flat_map(|node| node.text().unwrap_or("").split_whitespace())
                .map(|text| text.parse().unwrap())
                .collect()
        };
        let (nodes, values) = (numbers("indexes"), numbers("u64values"));
        assert_eq!(values.len(), nodes.len() * nodes.len());
        for (index, value) in values.into_iter().enumerate() {
            let pair = (nodes[index / nodes.len()], nodes[index % nodes.len()]);
            let value = u8::try_from(value).unwrap();
            expected.distances.insert(pair, value);
        }
    }
}
