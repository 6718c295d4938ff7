//! Parses lstopo's text (`lstopo --of console -v`).

use std::collections::BTreeMap;

use numalab_topology::{CacheKind, CpuId, CpuSet};

use crate::expected::{Expected, mask};

/// One object: its depth, type, logical index, text in brackets, and cpus.
struct Object {
    depth: usize,
    kind: String,
    index: u32,
    details: String,
    cpus: CpuSet,
}

/// Parses the objects, distances and memory attributes.
pub fn parse(text: &str) -> Expected {
    let objects = objects(text);
    let mut expected = Expected::default();
    let mut node_numbers = BTreeMap::new();
    for (index, object) in objects.iter().enumerate() {
        let number = || detail(&object.details, "P#").map_or(0, |text| text.parse().unwrap());
        match object.kind.as_str() {
            "PU" => {
                expected.cpus.insert(CpuId(number()));
            }
            "Core" => {
                expected.cores.insert(object.cpus.clone());
            }
            "Package" => {
                let number = detail(&object.details, "P#").map(|text| text.parse().unwrap());
                expected.packages.push((number, object.cpus.clone()));
            }
            "MemCache" => {
                let (number, unit) = quantity(detail(&object.details, "size=").unwrap());
                expected.memory_side_caches.push(number * unit);
            }
            kind if kind.starts_with("NUMANode") => {
                let parent = objects[..index]
                    .iter()
                    .rfind(|parent| parent.depth < object.depth && parent.kind != "MemCache");
                let local = detail(&object.details, "local=").unwrap_or("0B");
                let (least, most) = bounds(local);
                let cpus = parent.unwrap().cpus.clone();
                expected.nodes.insert(number(), (cpus, least, most));
                node_numbers.insert(object.index, number());
            }
            kind if kind.contains("Cache") => expected.caches.push(cache(kind, object)),
            _ => {}
        }
    }
    distances(text, &node_numbers, &mut expected);
    access(text, &node_numbers, &mut expected);
    expected
}

fn objects(text: &str) -> Vec<Object> {
    let mut objects: Vec<Object> = Vec::new();
    for line in text.lines().take_while(|line| !line.starts_with("depth ")) {
        let trimmed = line.trim_start();
        let (head, details) = trimmed.split_once(" (").unwrap_or((trimmed, ""));
        let (kind, index) = head.split_once(" L#").unwrap_or((head, "0"));
        let depth = line.len() - trimmed.len();
        if kind == "PU" {
            let cpu = CpuId(detail(details, "P#").unwrap().parse().unwrap());
            let mut below = depth;
            for object in objects.iter_mut().rev() {
                if object.depth < below {
                    object.cpus.insert(cpu);
                    below = object.depth;
                }
            }
        }
        objects.push(Object {
            depth,
            kind: kind.to_owned(),
            index: index.parse().unwrap(),
            details: details.trim_end_matches(')').to_owned(),
            cpus: CpuSet::new(),
        });
    }
    objects
}

/// Returns the word after `key`.
fn detail<'a>(details: &'a str, key: &str) -> Option<&'a str> {
    details.split([' ', '(', ')']).find_map(|word| word.strip_prefix(key))
}

fn cache(kind: &str, object: &Object) -> crate::expected::ExpectedCache {
    let level = kind[1..2].parse().unwrap();
    let cache_kind = match &kind[2..3] {
        "d" => CacheKind::Data,
        "i" => CacheKind::Instruction,
        _ => CacheKind::Unified,
    };
    let number = |key| detail(&object.details, key).map_or(0, |text| text.parse().unwrap_or(0));
    let bytes = bounds(detail(&object.details, "size=").unwrap_or("0B"));
    let cpus = object.cpus.clone();
    (level, cache_kind, cpus, number("linesize="), number("ways="), bytes)
}

/// Returns the smallest and largest number of bytes that are printed as `text`: lstopo rounds to
/// the nearest.
fn bounds(text: &str) -> (u64, u64) {
    let (number, unit) = quantity(text);
    let bytes = number * unit;
    (bytes.saturating_sub(unit / 2), bytes + unit / 2)
}

fn quantity(text: &str) -> (u64, u64) {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "KiB" | "KB" => 1 << 10,
        "MiB" | "MB" => 1 << 20,
        "GiB" | "GB" => 1 << 30,
        "B" => 1,
        unit => panic!("unit {unit}"),
    };
    (digits.parse().unwrap(), unit)
}

fn distances(text: &str, node_numbers: &BTreeMap<u32, u32>, expected: &mut Expected) {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("Relative latency matrix"));
    lines.next();
    // The header and the first column name the nodes by logical index.
    let node = |index: &str| node_numbers[&index.parse().unwrap()];
    let head = lines.next().unwrap_or("").split_whitespace();
    let columns: Vec<u32> = head.skip(1).map(node).collect();
    for line in lines.take(columns.len()) {
        let mut values = line.split_whitespace();
        let from = node(values.next().unwrap());
        for (to, value) in columns.iter().zip(values) {
            let distance = value.parse().unwrap();
            expected.distances.insert((from, *to), distance);
        }
    }
}

/// Parses lines `NUMANode L#0 = 131072 from cpuset 0x00000003 (Group L#0)` below a header.
fn access(text: &str, node_numbers: &BTreeMap<u32, u32>, expected: &mut Expected) {
    let mut attribute = "";
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("Memory attribute #") {
            attribute = rest.split(['`', '\'']).nth(1).unwrap();
        }
        let named = attribute.starts_with("Read") || attribute.starts_with("Write");
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["NUMANode", node, "=", value, "from", "cpuset", cpus, ..] = words.as_slice()
            && named
        {
            let index: u32 = node.trim_start_matches("L#").parse().unwrap();
            let key = (attribute.to_owned(), node_numbers[&index], mask(cpus));
            expected.access.insert(key, value.parse().unwrap());
        }
    }
}
