//! The checks that the whole output was read, and the machine that it describes.

use std::collections::BTreeMap;

use numalab_topology::{Cache, CpuId, CpuSet, Distances, NodeId, NodeSet};

use super::list::List;
use super::{Domain, FORMAT, Level, Reader, malformed};
use crate::assembly::Assembly;
use crate::distance::record;
use crate::error::ReadError;
use crate::pasted;
use crate::reading::Reading;

impl Reader {
    /// Checks that each announced domain has its processors and memory.
    pub(super) fn check_domains(&self) -> Result<(), ReadError> {
        let what = "`NUMA domains:` with their number";
        let announced = self.domain_count.ok_or(ReadError::Absent { format: FORMAT, what })?;
        let is_whole = |of: &&Domain| of.total_bytes.is_some() && of.processors.is_closed();
        let whole = self.domains.iter().filter(is_whole).count();
        check("NUMA domains", announced, whole.min(self.domains.len()))
    }

    /// Checks that no part of the text is missing.
    fn check_whole(&self) -> Result<(), ReadError> {
        if self.rows.is_empty() {
            let what = "table that begins with HWThread, as likwid-topology prints it";
            return Err(ReadError::Absent { format: FORMAT, what });
        }
        let closed = self.sockets.iter().filter(|list| list.is_closed());
        let of_sockets: CpuSet = closed.clone().flat_map(List::all).map(CpuId).collect();
        check("sockets", self.socket_count.unwrap_or_default(), closed.count())?;
        let in_table: CpuSet = self.rows.keys().copied().collect();
        check_cpus("cpus of sockets", &of_sockets, &in_table)?;
        check_cpus("hardware threads", &in_table, &of_sockets)?;
        self.check_domains()
    }

    /// Returns the machine.
    ///
    /// # Errors
    /// As [`super::read`].
    pub(super) fn finish(mut self) -> Result<Reading, ReadError> {
        self.check_whole()?;
        pasted::note_ignored(&self.around, &mut self.findings);
        let mut assembly = Assembly::default();
        let mut cores: BTreeMap<(u32, u32), CpuSet> = BTreeMap::new();
        for (&id, row) in &self.rows {
            assembly.cpu(id).package = Some(row.socket);
            cores.entry((row.socket, row.core)).or_default().insert(id);
        }
        let mut cores: Vec<CpuSet> = cores.into_values().collect();
        cores.sort_by_key(CpuSet::first);
        for (number, core) in (0..).zip(&cores) {
            for (thread, id) in (0..).zip(core.iter()) {
                let cpu = assembly.cpu(id);
                (cpu.core, cpu.thread) = (Some(number), thread);
            }
        }
        self.place(&mut assembly)?;
        let caches = self.caches(&cores);
        let is_l3 = |cache: &&Cache| cache.level == 3;
        for (group, cache) in (0..).zip(caches.iter().filter(is_l3)) {
            cache.cpus.iter().for_each(|id| assembly.cpu(id).l3_group = Some(group));
        }
        let mut machine = assembly.finish(FORMAT)?;
        machine.caches = caches;
        machine.distances = self.distances()?;
        let findings = &mut self.findings;
        if machine.nodes.iter().any(|node| !node.memory_unknown) {
            let message =
                "sizes of memory have six digits: `numactl -H` and `lstopo --of xml` have all";
            findings.note("sizes-rounded", "text", message);
        }
        machine.note_odd_distances(findings);
        machine.note_odd_shapes(findings);
        Ok(Reading { value: machine, findings: self.findings.into_list() })
    }

    /// Adds the domains, and places every cpu on one.
    fn place(&self, assembly: &mut Assembly) -> Result<(), ReadError> {
        let all: CpuSet = self.rows.keys().copied().collect();
        if self.domains.is_empty() {
            assembly.node(NodeId(0)).memory_unknown = true;
            assembly.place(&all, NodeId(0), "NUMA domains");
        }
        let mut placed = CpuSet::new();
        for domain in &self.domains {
            let node = assembly.node(domain.id);
            node.memory_bytes = domain.total_bytes.unwrap_or_default();
            node.free_bytes = domain.free_bytes;
            // Run on a part of the cpus, the tool lists the same number, but not the same ones.
            let cpus = match self.domains.len() {
                1 => all.clone(),
                _ => domain.processors.all().map(CpuId).collect(),
            };
            if !cpus.is_subset(&all) || !cpus.intersection(&placed).is_empty() {
                let found = format!("processors {cpus} of domain {}", domain.id);
                return Err(malformed(domain.line, &found, "each hardware thread in one domain"));
            }
            placed.extend_from(&cpus);
            assembly.place(&cpus, domain.id, "NUMA domains");
        }
        match self.domains.is_empty() || placed == all {
            true => Ok(()),
            false => {
                let what = "domain of some hardware threads: likwid-topology could not run on all of \
                            them, and then lists wrong processors; expected its output from a shell \
                            that may use all";
                Err(ReadError::Absent { format: FORMAT, what })
            }
        }
    }

    /// Returns the caches. The tool prints groups of one size, which are wrong where cores differ: a
    /// level with such groups is left out.
    fn caches(&mut self, cores: &[CpuSet]) -> Vec<Cache> {
        let mut caches = Vec::new();
        let differ = cores.iter().any(|core| core.len() != cores[0].len());
        let all: CpuSet = self.rows.keys().copied().collect();
        for level in &self.levels {
            let groups: Vec<CpuSet> = level
                .groups
                .groups()
                .map(|group| group.iter().copied().map(CpuId).collect())
                .collect();
            let splits = |core: &CpuSet| !groups.iter().any(|group: &CpuSet| core.is_subset(group));
            if cores.iter().any(splits) || differ && groups.len() > 1 {
                let message = "cores have different numbers of threads, for which likwid-topology \
                               prints wrong groups: these caches are left out";
                self.findings.warning("caches-unknown", format!("level {}", level.level), message);
                continue;
            }
            for cpus in groups.into_iter().filter(|cpus| cpus.is_subset(&all)) {
                let &Level { level, kind, size_bytes, line_bytes, ways, .. } = level;
                caches.push(Cache { level, kind, size_bytes, line_bytes, ways, cpus });
            }
        }
        caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
        caches
    }

    fn distances(&mut self) -> Result<Distances, ReadError> {
        let ids: NodeSet = self.domains.iter().map(|domain| domain.id).collect();
        let mut distances = Distances::default();
        if self.domains.iter().any(|domain| domain.distances.all().next().is_some()) {
            distances = Distances::unknown(ids.len());
        }
        for domain in &self.domains {
            let row: Vec<u32> = domain.distances.all().collect();
            if row.len() != ids.len() && distances != Distances::default() {
                let (node, columns) = (domain.id.to_string(), ids.len());
                return Err(ReadError::Row { format: FORMAT, node, distances: row.len(), columns });
            }
            let from = ids.iter().position(|id| id == domain.id).unwrap_or_default();
            for (to, value) in row.into_iter().enumerate() {
                let found = value.to_string();
                let value = u8::try_from(value);
                let value = value
                    .map_err(|_| malformed(domain.line, &found, "distances of at most 255"))?;
                record(&mut distances, from, to, value, &mut self.findings);
            }
        }
        Ok(distances)
    }
}

fn check(what: &'static str, announced: usize, described: usize) -> Result<(), ReadError> {
    ReadError::unless_whole(announced == described, FORMAT, what, (announced, described))
}

fn check_cpus(what: &'static str, announced: &CpuSet, described: &CpuSet) -> Result<(), ReadError> {
    let is_whole = announced.is_subset(described);
    ReadError::unless_whole(is_whole, FORMAT, what, (announced, described))
}
