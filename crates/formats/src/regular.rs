//! Machines in which all packages, L3 groups and cores have equal sizes.

use numalab_topology::{Cpu, CpuId, Findings, Machine};

/// The number of parts of each kind in one of the next larger kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) packages: usize,
    pub(crate) l3_groups: usize,
    pub(crate) cores: usize,
    pub(crate) threads: usize,
}

/// Notes the parts that a format has to give although they are unknown, as [`Ordered`] counts them.
pub(crate) fn note_unknown_parts(machine: &Machine, findings: &mut Findings) {
    let is_unknown = |part: fn(&Cpu) -> Option<u32>| {
        machine.cpus.iter().filter(|cpu| cpu.online).any(|cpu| part(cpu).is_none())
    };
    if is_unknown(|cpu| cpu.package) {
        findings.note("packages-assumed", "cpus", "unknown packages are written as one");
    }
    if is_unknown(|cpu| cpu.core) {
        findings.note("cores-assumed", "cpus", "unknown cores are written with one thread each");
    }
}

/// The online cpus by package, L3 group, core and thread.
#[derive(Clone, Debug)]
pub(crate) struct Ordered {
    cpus: Vec<Cpu>,
}

impl Ordered {
    pub(crate) fn of(machine: &Machine) -> Self {
        let mut cpus: Vec<Cpu> = machine.cpus.iter().filter(|cpu| cpu.online).cloned().collect();
        cpus.sort_by_key(|cpu| (cpu.package, cpu.l3_group, cpu.core, cpu.thread, cpu.id));
        Self { cpus }
    }

    pub(crate) fn ids(&self) -> Vec<CpuId> {
        self.cpus.iter().map(|cpu| cpu.id).collect()
    }

    /// Returns the shape with L3 groups, if all have equal sizes.
    pub(crate) fn shape_with_l3_groups(&self) -> Option<Shape> {
        self.shape(|cpu| cpu.l3_group)
    }

    /// Returns the shape without L3 groups, if all packages and cores have equal sizes.
    pub(crate) fn shape_without_l3_groups(&self) -> Option<Shape> {
        self.shape(|_| None)
    }

    /// Returns the shape. Cpus without a known package or L3 group count as one package or group
    /// together, and a cpu without a known core counts as a core.
    fn shape(&self, l3_group: impl Fn(&Cpu) -> Option<u32>) -> Option<Shape> {
        let packages = parts(&self.cpus, |a, b| a.package == b.package);
        let l3_groups =
            parts(&self.cpus, |a, b| a.package == b.package && l3_group(a) == l3_group(b));
        let cores = parts(&self.cpus, |a, b| {
            a.core.is_some() && a.core == b.core && a.package == b.package
        });
        let shape = Shape {
            packages: packages.len(),
            l3_groups: each(&l3_groups, &packages)?,
            cores: each(&cores, &l3_groups)?,
            threads: *cores.first()?,
        };
        let alike = |sizes: &[usize]| sizes.windows(2).all(|pair| pair[0] == pair[1]);
        (alike(&packages) && alike(&l3_groups) && alike(&cores)).then_some(shape)
    }
}

/// Returns the sizes of runs of cpus that belong together.
fn parts(cpus: &[Cpu], together: impl Fn(&Cpu, &Cpu) -> bool) -> Vec<usize> {
    cpus.chunk_by(together).map(<[Cpu]>::len).collect()
}

/// Returns the number of inner parts in each outer one, if that is a whole number.
fn each(inner: &[usize], outer: &[usize]) -> Option<usize> {
    (!outer.is_empty() && inner.len().is_multiple_of(outer.len()))
        .then(|| inner.len() / outer.len())
}
