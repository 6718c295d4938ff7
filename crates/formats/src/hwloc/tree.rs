//! The tree of objects that hwloc needs, by inclusion of cpu sets.

use std::collections::{BTreeMap, BTreeSet};

use numalab_topology::{Cache, CacheKind, CpuId, CpuSet, Machine, NodeId, NodeSet};

use super::FORMAT;
use crate::error::WriteError;

/// A depth above that of any machine, and small enough for recursion.
const MAX_DEPTH: usize = 128;

/// The type of an object; of objects with equal sets the smaller type contains the larger.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ObjectKind {
    /// The whole machine.
    Machine,
    Package(u32),
    /// The cpus of a node, if no other object has the same set.
    Group,
    /// A cache: highest level first, then unified, data, instruction.
    Cache(CacheOrder),
    Core(u32),
    /// A cpu.
    Pu(CpuId),
}

impl ObjectKind {
    /// Returns true if a node is attached directly to such an object, without an object made for
    /// the node.
    fn holds_nodes(&self) -> bool {
        !matches!(self, Self::Core(_) | Self::Pu(_))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CacheOrder {
    nearness: u8,
    kind_rank: u8,
    /// The index of the cache in [`Machine::caches`]; `None` for an L3 group without a known cache.
    pub(super) index: Option<usize>,
}

/// An object, its children and the nodes attached to it.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) kind: ObjectKind,
    pub(super) cpus: CpuSet,
    pub(super) children: Vec<usize>,
    pub(super) nodes: Vec<NodeId>,
    parent: usize,
    /// Number of objects above it.
    depth: usize,
}

/// The objects; the first is the machine.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) objects: Vec<Object>,
}

impl Tree {
    /// Builds the tree of the online cpus and nodes.
    pub(super) fn build(machine: &Machine) -> Result<Self, WriteError> {
        let online = machine.online_cpus();
        let mut items = items(machine, &online);
        let node_sets: Vec<(NodeId, CpuSet)> = machine
            .nodes
            .iter()
            .filter(|node| node.online)
            .map(|node| (node.id, node.cpus.intersection(&online)))
            .collect();
        for (_, set) in &node_sets {
            let found = *set == online
                || items.iter().any(|(kind, cpus)| kind.holds_nodes() && cpus == set);
            if !set.is_empty() && !found {
                items.push((ObjectKind::Group, set.clone()));
            }
        }
        items.sort_by(|(a_kind, a), (b_kind, b)| {
            b.len()
                .cmp(&a.len())
                .then_with(|| a.first().cmp(&b.first()))
                .then_with(|| a_kind.cmp(b_kind))
        });
        let mut tree = Self::insert(online, items)?;
        for (id, set) in node_sets {
            let home = tree.home(&set);
            tree.objects[home].nodes.push(id);
        }
        tree.sort_children();
        Ok(tree)
    }

    /// Returns the nodes attached to an object, to those above it and to those below it.
    pub(super) fn nodes_around(&self, index: usize) -> NodeSet {
        let mut nodes = NodeSet::new();
        let mut above = index;
        loop {
            nodes.extend(self.objects[above].nodes.iter().copied());
            if above == 0 {
                break;
            }
            above = self.objects[above].parent;
        }
        let mut below = vec![index];
        while let Some(index) = below.pop() {
            nodes.extend(self.objects[index].nodes.iter().copied());
            below.extend(&self.objects[index].children);
        }
        nodes
    }

    /// Inserts sets, larger ones first, each below the smallest one that contains it.
    fn insert(online: CpuSet, items: Vec<(ObjectKind, CpuSet)>) -> Result<Self, WriteError> {
        let mut owner: BTreeMap<CpuId, usize> = online.iter().map(|cpu| (cpu, 0)).collect();
        let mut objects = vec![Object {
            kind: ObjectKind::Machine,
            cpus: online,
            children: Vec::new(),
            nodes: Vec::new(),
            parent: 0,
            depth: 0,
        }];
        for (kind, cpus) in items {
            let parents: BTreeSet<usize> =
                cpus.iter().filter_map(|cpu| owner.get(&cpu).copied()).collect();
            let parent = parents.first().copied().unwrap_or_default();
            if let Some(&other) = parents.iter().nth(1) {
                let what = format!(
                    "that cpus {cpus} belong together but are partly in {} and partly in {}",
                    objects[parent].cpus, objects[other].cpus
                );
                return Err(WriteError::Inexpressible { format: FORMAT, what });
            }
            let depth = objects[parent].depth + 1;
            if depth > MAX_DEPTH {
                let what = format!("more than {MAX_DEPTH} objects around cpus {cpus}");
                return Err(WriteError::Inexpressible { format: FORMAT, what });
            }
            let index = objects.len();
            for cpu in cpus.iter() {
                owner.insert(cpu, index);
            }
            objects[parent].children.push(index);
            objects.push(Object {
                kind,
                cpus,
                children: Vec::new(),
                nodes: Vec::new(),
                parent,
                depth,
            });
        }
        Ok(Self { objects })
    }

    /// Returns the object to which a node with these cpus is attached.
    fn home(&self, set: &CpuSet) -> usize {
        let fits =
            |object: &Object| !set.is_empty() && object.kind.holds_nodes() && object.cpus == *set;
        let inner = self.objects.iter().skip(1).position(fits);
        inner.map_or(0, |position| position + 1)
    }

    fn sort_children(&mut self) {
        let firsts: Vec<Option<CpuId>> =
            self.objects.iter().map(|object| object.cpus.first()).collect();
        for object in &mut self.objects {
            object.children.sort_by_key(|&child| firsts[child]);
        }
    }
}

/// Returns the sets of packages, caches, cores and cpus.
fn items(machine: &Machine, online: &CpuSet) -> Vec<(ObjectKind, CpuSet)> {
    let mut items = Vec::new();
    let mut add = |kind: ObjectKind, cpus: &CpuSet| {
        let cpus = cpus.intersection(online);
        if !cpus.is_empty() {
            items.push((kind, cpus));
        }
    };
    for package in machine.packages() {
        add(ObjectKind::Package(package.number), &package.cpus);
    }
    for (index, cache) in machine.caches.iter().enumerate() {
        add(ObjectKind::Cache(CacheOrder::of(cache, index)), &cache.cpus);
    }
    for group in machine.l3_groups() {
        let has_group = |cache: &Cache| {
            is_l3(cache) && cache.cpus.intersection(online) == group.cpus.intersection(online)
        };
        if !machine.caches.iter().any(has_group) {
            add(ObjectKind::Cache(CacheOrder::UNKNOWN_L3), &group.cpus);
        }
    }
    for core in machine.cores() {
        add(ObjectKind::Core(core.number), &core.cpus);
    }
    for cpu in online.iter() {
        add(ObjectKind::Pu(cpu), &CpuSet::from_iter([cpu]));
    }
    items
}

fn is_l3(cache: &Cache) -> bool {
    cache.level == 3 && cache.kind == CacheKind::Unified
}

impl CacheOrder {
    fn of(cache: &Cache, index: usize) -> Self {
        let kind_rank = match cache.kind {
            CacheKind::Unified => 0,
            CacheKind::Data => 1,
            CacheKind::Instruction => 2,
        };
        Self { nearness: u8::MAX - cache.level, kind_rank, index: Some(index) }
    }

    /// An L3 group without a known cache.
    const UNKNOWN_L3: Self = Self { nearness: u8::MAX - 3, kind_rank: 0, index: None };
}
