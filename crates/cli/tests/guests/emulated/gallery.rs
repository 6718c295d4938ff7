//! The machines of `numalab machine list`: a guest like each finds the figures of its file.
//!
//! The file's figures for latencies, hits and ends of caches, bandwidth, load and lines from core
//! to core are measured; figures that it leaves out are not checked. Without `NUMALAB_LONG=1` two
//! guests are booted, and measure less: memory from one cpu alone, at two sizes or four, and no
//! load.

use std::collections::BTreeMap;

use numalab_formats::gallery;
use numalab_formats::machine_toml::{MachineFile, read_file, scaled};
use numalab_formats::memory_emulator::Curve;
use numalab_topology::{Cpu, CpuId, Machine, NodeId};

use super::lab::{Answer, Lab, assert_near, is_long, is_long_or_not_run};
use super::surface::{Surface, points};

const LINE_BYTES: f64 = 64.0;
const MIB: u64 = 1 << 20;

/// A machine, and a guest like it.
struct Guest {
    name: &'static str,
    file: MachineFile,
    /// The file's machine, with the guest's cpus.
    machine: Machine,
    memory: String,
    /// A size beyond its caches: chased in one order, no line is still cached when its turn comes
    /// again.
    beyond: &'static str,
}

impl Guest {
    fn new(name: &'static str, cpus: usize, memory_mib: u64, beyond: &'static str) -> Self {
        let file = read_file(gallery::machine(name).expect("it comes along")).expect("a file");
        let homes = file.machine.nodes.iter().filter(|node| !node.cpus.is_empty()).count();
        let machine = scaled(&file.machine, cpus / homes, memory_mib * MIB);
        assert_eq!(machine.cpus.len(), cpus);
        Self { name, file, machine, memory: format!("{memory_mib}M"), beyond }
    }

    fn node_of(&self, cpu: u32) -> NodeId {
        self.machine.cpu(CpuId(cpu)).and_then(|cpu| cpu.node).expect("a node")
    }

    fn idle_ns(&self, from: NodeId, to: NodeId) -> f64 {
        let pair =
            self.file.machine.access.iter().find(|of| (of.initiator, of.target) == (from, to));
        pair.and_then(|of| of.read_latency_ps).expect("a latency") as f64 / 1000.0
    }

    /// Returns the curves of a memory or of the link to it; a plain limit has the typical ones.
    fn curves(&self, from: Option<NodeId>, to: NodeId) -> Vec<Curve> {
        let loads = &self.file.memory.load;
        let load = loads.iter().find(|load| {
            let is_of = match (from, &load.from) {
                (Some(from), Some(all)) => all.contains(from),
                (None, None) => true,
                _ => false,
            };
            is_of && load.nodes.contains(to)
        });
        let homes = self.machine.nodes.iter().filter(|node| !node.cpus.is_empty());
        let nearest = homes.map(|node| self.idle_ns(node.id, to)).fold(f64::INFINITY, f64::min);
        let unloaded_ns = from.map_or(nearest, |from| self.idle_ns(from, to));
        load.map_or_else(Vec::new, |load| match load.peak_mb_s {
            Some(peak_mb_s) => Curve::typical(peak_mb_s, unloaded_ns),
            None => load.curves.clone(),
        })
    }

    /// Returns the bandwidth that cores of a node get from an idle memory, in 10^6 bytes per
    /// second: the bytes of all lines in flight, over the latency at this load.
    fn bandwidth_mb_s(&self, cores: usize, from: NodeId, to: NodeId) -> f64 {
        let core = self.file.memory.core.expect("a core");
        let under_way = cores as f64 * f64::from(core.misses) * LINE_BYTES * 1000.0;
        let (memory, link) = (self.curves(None, to), self.curves(Some(from), to));
        let (mut least, mut most) = (0.0, 1e6);
        for _ in 0..60 {
            let mb_s = f64::midpoint(least, most);
            let rises = [&memory, &link].map(|curves| Surface { curves }.rise_to_peak_ns(mb_s));
            let fits = match rises {
                [Some(memory), Some(link)] => {
                    mb_s * (self.idle_ns(from, to) + memory + link) <= under_way
                }
                _ => false,
            };
            *if fits { &mut least } else { &mut most } = mb_s;
        }
        least
    }

    /// Returns true if all cores but the chasing one demand more than a memory's bandwidth,
    /// whatever they do.
    fn saturates(&self, to: NodeId) -> bool {
        let core = self.file.memory.core.expect("a core");
        let others = self.machine.cpus.iter().filter(|cpu| cpu.id != CpuId(0));
        let latency_ns = |cpu: &Cpu| self.idle_ns(cpu.node.expect("a node"), to);
        let each = |cpu: &Cpu| f64::from(core.misses) * LINE_BYTES * 1000.0 / latency_ns(cpu);
        let asked_mb_s: f64 = others.map(each).sum();
        let curves = self.curves(None, to);
        // Latency at the peak is some three times the idle one.
        !curves.is_empty() && asked_mb_s > 3.0 * Surface { curves: &curves }.peak_mb_s(0.0)
    }

    /// Returns the latency of a line from core to core, one way.
    fn transfer_ns(&self, from: u32, to: u32) -> f64 {
        let transfers = self.file.memory.transfers.as_ref().expect("transfers");
        let [a, b] = [from, to].map(|cpu| self.machine.cpu(CpuId(cpu)).expect("a cpu"));
        let place = |cpu: u32| {
            let node = self.node_of(cpu);
            self.machine.nodes.iter().position(|of| of.id == node).expect("a node")
        };
        match a.l3_group == b.l3_group {
            true => transfers.group_ns,
            false => transfers.node_ns[place(from)][place(to)],
        }
    }

    /// Returns sizes and hit latencies of the data caches with a known latency, nearest first.
    fn caches(&self) -> Vec<(f64, f64)> {
        let hits = &self.file.memory.cache_latency_ns;
        let caches = &self.file.machine.caches;
        let size = |level: usize| {
            let cache = caches.iter().find(|cache| usize::from(cache.level) == level + 1);
            cache.and_then(|cache| cache.size_bytes).expect("a size") as f64
        };
        hits.iter().enumerate().map(|(level, ns)| (size(level), *ns)).collect()
    }

    /// Returns for each cache a size that it holds but nearer ones do not.
    fn sizes_within(&self) -> Vec<f64> {
        let sizes: Vec<f64> = self.caches().iter().map(|(bytes, _)| *bytes).collect();
        let nearer = std::iter::once(f64::INFINITY).chain(sizes.iter().map(|bytes| bytes * 4.0));
        sizes.iter().zip(nearer).map(|(bytes, nearer)| nearer.min(bytes / 2.0)).collect()
    }

    /// Returns the first cpu of the last node with cpus.
    fn far_cpu(&self) -> u32 {
        let last = self.machine.cpus.iter().filter_map(|cpu| cpu.node).max().expect("a node");
        let first = self.machine.cpus.iter().find(|cpu| cpu.node == Some(last));
        first.expect("a cpu").id.0
    }

    fn far_memory(&self) -> NodeId {
        self.machine.nodes.last().expect("a node").id
    }
}

const STREAM: &str = "bandwidth --kernel read";
const HUGE: &str = "echo always > /sys/kernel/mm/transparent_hugepage/enabled\n";

/// Returns a part of the script: a numalab command with CSV output, and its limit in guest time.
fn part(name: &str, command: &str, budget: &str) -> String {
    format!(
        "echo '== {name}'\nnumalab {command} --pages thp --budget {budget} --seed 1 -q --format csv\n"
    )
}

fn short_script(guest: &Guest) -> String {
    let (beyond, cpu, node) = (guest.beyond, guest.far_cpu(), guest.far_memory().0);
    let mut script = HUGE.to_owned();
    let near_and_far = format!("latency --size {beyond} --cpus 0 --nodes 0,{node}");
    script += &part("memory", &near_and_far, "1s");
    let sizes: Vec<String> =
        guest.sizes_within().iter().map(|bytes| format!("{}K", bytes / 1024.0)).collect();
    if !sizes.is_empty() {
        let sizes = sizes.join(",");
        script += &part("hits", &format!("latency --size {sizes} --cpus 0 --nodes 0"), "1s");
    }
    let reader = format!("{STREAM} --size {beyond} --cpus 0 --nodes {node}");
    script += &part("one reader", &reader, "100ms");
    if guest.file.memory.transfers.is_some() {
        script += &part("lines", &format!("c2c --cpus 0,1,{cpu}"), "1s");
    }
    script
}

fn long_script(guest: &Guest) -> String {
    let (beyond, all) = (guest.beyond, guest.machine.cpus.len() - 1);
    let node = guest.machine.nodes[0].cpus.to_string();
    let mut script = short_script(guest);
    // Half a second for each pair of nodes.
    let seconds = (guest.machine.nodes.len().pow(2) / 2).max(4);
    let matrix = format!("latency --size {beyond} --per node");
    script += &part("matrix", &matrix, &format!("{seconds}s"));
    script += &part("sweep", &format!("latency --size 8K-{beyond} --cpus 0 --nodes 0"), "4s");
    let readers = format!("{STREAM} --size {beyond} --cpus {node} --nodes 0");
    script += &part("node", &readers, "500ms");
    // A copy reads half of its buffer.
    for (kernel, size) in [("read", beyond.to_owned()), ("copy-nt", doubled(beyond))] {
        for NodeId(to) in loaded_nodes(guest) {
            let loaded = format!("loaded --kernel {kernel} --size {size} --cpus 0-{all}");
            script += &part(&format!("{kernel} {to}"), &format!("{loaded} --nodes {to}"), "2s");
        }
    }
    script
}

/// Doubles a size in MiB.
fn doubled(size: &str) -> String {
    let mib: u64 = size.trim_end_matches('M').parse().expect("MiB");
    format!("{}M", 2 * mib)
}

/// Returns node 0, and nodes without cpus.
fn loaded_nodes(guest: &Guest) -> impl Iterator<Item = NodeId> {
    let nodes = guest.machine.nodes.iter();
    nodes.filter(|node| node.id == NodeId(0) || node.cpus.is_empty()).map(|node| node.id)
}

/// Boots the guest, measures, and compares.
fn is_replayed(guest: &Guest) {
    let lab = Lab::open();
    let cpus = guest.machine.cpus.len().to_string();
    let like = ["--emulate-like", guest.name, "--cpus", &cpus, "--memory", &guest.memory];
    let script = if is_long() { long_script(guest) } else { short_script(guest) };
    let Some(answer) = lab.guest(&like, &script) else { return };
    println!("{}", answer.text);
    memory(guest, &answer.medians("memory"));
    hits(guest, &answer);
    let home = guest.node_of(0);
    let one = guest.bandwidth_mb_s(1, home, guest.far_memory()) / 1000.0;
    assert_near(answer.last_median("one reader"), one, 0.05, "one reader");
    lines(guest, &answer);
    if is_long() {
        memory(guest, &answer.medians("matrix"));
        ends(guest, &answer);
        let cores = guest.machine.nodes[0].cpus.len();
        let node = guest.bandwidth_mb_s(cores, home, home) / 1000.0;
        assert_near(answer.last_median("node"), node, 0.05, "all cores of a node");
        loaded_nodes(guest).for_each(|to| loads(guest, &answer, to));
    }
}

/// Runs the same checks if there is time for them.
fn is_replayed_if_long(guest: &Guest) {
    if is_long_or_not_run(&format!("a guest like {}", guest.name)) {
        is_replayed(guest);
    }
}

/// Checks memory latencies by cpu and node, allowing for the load of the chase itself.
fn memory(guest: &Guest, medians: &BTreeMap<(u32, u32), f64>) {
    assert!(medians.len() >= 2 || guest.machine.nodes.len() == 1, "{medians:?}");
    for (&(cpu, node), &median) in medians {
        let (from, to) = (guest.node_of(cpu), NodeId(node));
        let mb_s = LINE_BYTES * 1000.0 / median;
        let ways = [guest.curves(None, to), guest.curves(Some(from), to)];
        let rise = |curves: &Vec<Curve>| Surface { curves }.rise_ns(mb_s, 0.0).expect("a chase");
        let charged = guest.idle_ns(from, to) + ways.iter().map(rise).sum::<f64>();
        assert_near(median, charged, 0.05, &format!("{}: cpu {cpu} to node {node}", guest.name));
    }
}

/// Returns latencies by size.
fn sizes(answer: &Answer, part: &str) -> Vec<(f64, f64)> {
    let rows = answer.rows(part);
    let figure = |row: &BTreeMap<&str, &str>, name| row[name].parse::<f64>().ok();
    let mut found: Vec<(f64, f64)> = rows
        .iter()
        .filter_map(|row| Some((figure(row, "size_bytes")?, figure(row, "median")?)))
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found
}

fn hits(guest: &Guest, answer: &Answer) {
    let caches = guest.caches();
    if caches.is_empty() {
        return;
    }
    let found = sizes(answer, "hits");
    assert_eq!(found.len(), caches.len(), "{found:?}");
    for ((bytes, median), (_, ns)) in found.iter().zip(&caches) {
        assert_near(*median, *ns, 0.05, &format!("{}: a chase in {bytes} bytes", guest.name));
    }
}

/// Checks the ends of caches: the largest size that is faster than the mean of a hit there and one
/// beyond.
fn ends(guest: &Guest, answer: &Answer) {
    let found = sizes(answer, "sweep");
    let caches = guest.caches();
    let memory_ns = found.last().expect("sizes").1;
    for (level, (bytes, ns)) in caches.iter().enumerate() {
        let beyond_ns = caches.get(level + 1).map_or(memory_ns, |next| next.1);
        let is_within = |point: &&(f64, f64)| point.1 < (ns * beyond_ns).sqrt();
        let end = found.iter().rfind(is_within).expect("a size within").0;
        let factor = end / bytes;
        assert!((0.5..=2.0).contains(&factor), "{}: L{} ends at {end}", guest.name, level + 1);
    }
}

fn lines(guest: &Guest, answer: &Answer) {
    if guest.file.memory.transfers.is_none() {
        return;
    }
    let mut rows = answer.rows("lines");
    // The others are the spread over lines.
    rows.retain(|row| row["metric"] == "round-trip");
    // Pairs on one node, and on different nodes with the line on either of them.
    assert!(rows.len() >= 3, "{rows:?}");
    for row in rows {
        let cpus: Vec<u32> = row["cpu"].split(' ').map(|cpu| cpu.parse().expect("a cpu")).collect();
        let one_way_ns = row["median"].parse::<f64>().expect("a median") / 2.0;
        let expected = guest.transfer_ns(cpus[0], cpus[1]);
        assert_near(one_way_ns, expected, 0.05, &format!("{}: {cpus:?}", guest.name));
    }
}

/// Checks latency under load; the chase runs on node 0, and the load comes from all nodes.
fn loads(guest: &Guest, answer: &Answer, to: NodeId) {
    let curves = guest.curves(None, to);
    let surface = Surface { curves: &curves };
    let idle_ns = guest.idle_ns(guest.node_of(0), to);
    for kernel in ["read", "copy-nt"] {
        let points = points(answer, &format!("{kernel} {}", to.0));
        let judged = points.iter().filter(|point| point.is_on(&surface, idle_ns)).count();
        assert!(judged >= 4, "{}: {points:?}", guest.name);
        let most = points.iter().map(|point| point.of_peak(&surface)).fold(0.0, f64::max);
        println!("{}: {kernel} moves {most:.3} of node {}'s peak", guest.name, to.0);
        if guest.saturates(to) {
            assert_near(most, 1.0, 0.05, &format!("the peak of {kernel} of node {}", to.0));
        }
    }
}

#[test]
fn a_guest_like_the_epyc_7452_with_cxl_memory_finds_its_file() {
    is_replayed(&Guest::new("epyc-7452-cxl", 8, 1024, "20M"));
}

#[test]
fn a_guest_like_the_epyc_7763_finds_its_file() {
    is_replayed_if_long(&Guest::new("epyc-7763-nps4", 16, 12288, "36M"));
}

#[test]
fn a_guest_like_the_graviton3_finds_its_file() {
    is_replayed_if_long(&Guest::new("graviton3", 8, 1024, "36M"));
}

#[test]
fn a_guest_like_the_x460_of_eight_cpus_finds_its_file() {
    is_replayed_if_long(&Guest::new("x460", 8, 1536, "12M"));
}

#[test]
fn a_guest_like_the_xeon_8360y_finds_its_file() {
    is_replayed(&Guest::new("xeon-8360y-2s", 4, 2048, "80M"));
}
