//! A placement in the form of other tools' command lines.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{MemoryPolicy, Placement};
use crate::id::{CpuId, Id};
use crate::id_set::{CpuSet, IdSet, NodeSet};

/// Options that make kubelet place a Guaranteed pod with whole cpus on one node of its own choice.
/// Both static managers need a reservation for the system; the user fills in its numbers.
const KUBELET: &str = "kubelet --cpu-manager-policy=static --memory-manager-policy=Static \
                       --topology-manager-policy=single-numa-node --reserved-cpus=CPUS \
                       --reserved-memory=NODE:memory=SIZE, and a pod with \
                       resources.limits of whole cpus and memory";

impl Placement {
    /// Returns the command line of each tool that runs a program like this, and the tool's name.
    /// Tools that cannot express the placement are left out.
    pub fn commands(&self, program: &str) -> Vec<(&'static str, String)> {
        let numactl = self.numactl();
        let numactl = (!numactl.is_empty()).then(|| format!("numactl {numactl}"));
        let cpus = self.cpus.as_ref();
        let lines = [
            ("numalab", self.bind().map(|options| format!("numalab bind -q {options} --"))),
            ("numactl", numactl),
            ("srun", self.srun().map(|options| format!("srun -n1 {options}"))),
            ("OpenMP", cpus.map(|cpus| format!("{} OMP_PROC_BIND=close", openmp_places(cpus)))),
            ("taskset", cpus.map(|cpus| format!("taskset -c {cpus}"))),
            ("cgroup", self.cgroup().map(|given| format!("systemd-run --scope {given}"))),
            (
                "systemd",
                self.service().map(|given| format!("systemd-run --pipe --same-dir {given}")),
            ),
            ("Flux", self.flux().map(|options| format!("flux run -n1 {options}"))),
            ("torchrun", self.torchrun()),
        ];
        let lines = lines.into_iter().filter_map(|(tool, line)| Some((tool, line?)));
        let mut lines: Vec<_> =
            lines.map(|(tool, line)| (tool, format!("{line} {program}"))).collect();
        lines.extend(self.on_one_node().map(|_| ("Kubernetes", KUBELET.to_string())));
        lines.extend(self.guest_commands());
        lines
    }

    /// Returns the options of numactl(8).
    pub fn numactl(&self) -> String {
        let cpus = match (&self.nodes, &self.cpus) {
            (Some(nodes), _) => Some(format!("--cpunodebind={nodes}")),
            (None, cpus) => cpus.as_ref().map(|cpus| format!("--physcpubind={cpus}")),
        };
        let memory = self.policy.as_ref().map(|policy| match policy {
            MemoryPolicy::Local => "--localalloc".to_string(),
            MemoryPolicy::Bind(nodes) => format!("--membind={nodes}"),
            MemoryPolicy::Preferred(nodes) if nodes.len() > 1 => {
                format!("--preferred-many={nodes}")
            }
            MemoryPolicy::Preferred(nodes) => format!("--preferred={nodes}"),
            MemoryPolicy::Interleave(nodes) => format!("--interleave={nodes}"),
            MemoryPolicy::WeightedInterleave(nodes) => format!("--weighted-interleave={nodes}"),
        });
        joined([cpus, memory])
    }

    /// Returns the options of `numalab bind`, which gives a program without ranks one node if it
    /// binds.
    fn bind(&self) -> Option<String> {
        if let Some(node) = self.on_one_node() {
            return Some(format!("--numa={node} --cpus node"));
        }
        match self.policy.as_ref()? {
            MemoryPolicy::Interleave(nodes) if self.cpus.is_none() => {
                Some(format!("--numa={nodes} --policy interleave"))
            }
            _ => None,
        }
    }

    /// Returns the options of srun(1), which has no interleaving.
    fn srun(&self) -> Option<String> {
        let cpus = match (&self.nodes, &self.cpus) {
            (Some(nodes), _) if nodes.len() == 1 => Some(format!("--cpu-bind=map_ldom:{nodes}")),
            (_, cpus) => cpus.as_ref().map(|cpus| format!("--cpu-bind=mask_cpu:{}", mask(cpus))),
        };
        let memory = match &self.policy {
            Some(MemoryPolicy::Bind(nodes)) if nodes.len() == 1 => {
                Some(format!("--mem-bind=map_mem:{nodes}"))
            }
            Some(MemoryPolicy::Bind(nodes)) => Some(format!("--mem-bind=mask_mem:{}", mask(nodes))),
            Some(_) => Some(format!("numactl {}", self.memory_only().numactl())),
            None => None,
        };
        Some(joined([cpus, memory])).filter(|options| !options.is_empty())
    }

    /// Returns the properties of a control group (systemd.resource-control(5)), which can only
    /// restrict.
    fn cgroup(&self) -> Option<String> {
        let nodes = match &self.policy {
            Some(MemoryPolicy::Bind(nodes)) => Some(format!("-p AllowedMemoryNodes={nodes}")),
            Some(_) => return None,
            None => None,
        };
        let cpus = self.cpus.as_ref().map(|cpus| format!("-p AllowedCPUs={cpus}"));
        Some(joined([cpus, nodes])).filter(|properties| !properties.is_empty())
    }

    /// Returns the properties of a service with a memory policy, which a scope cannot have
    /// (systemd.exec(5)).
    fn service(&self) -> Option<String> {
        let (policy, nodes) = match self.policy.as_ref()? {
            MemoryPolicy::Preferred(nodes) if nodes.len() == 1 => ("preferred", nodes),
            _ => self.strict_or_in_turn("bind")?,
        };
        let cpus = self.cpus.as_ref().map(|cpus| format!("-p CPUAffinity={cpus}"));
        Some(joined([cpus, Some(format!("-p NUMAPolicy={policy} -p NUMAMask={nodes}"))]))
    }

    /// Returns the options of flux-run(1), which places cpus only.
    fn flux(&self) -> Option<String> {
        let (cpus, _) = self.cpus.as_ref().zip(self.policy.as_ref())?;
        let memory = self.memory_only().numactl();
        Some(format!("-o cpu-affinity=map:{cpus} numactl {memory}"))
    }

    /// Returns the command of torchrun, which places no ranks itself.
    fn torchrun(&self) -> Option<String> {
        let numactl = self.numactl();
        let line = || format!("torchrun --nproc-per-node=1 --no-python numactl {numactl}");
        (!numactl.is_empty()).then(line)
    }

    /// Returns the node if cpus and memory are on a single one.
    fn on_one_node(&self) -> Option<&NodeSet> {
        match self.policy.as_ref()? {
            MemoryPolicy::Bind(nodes) if nodes.len() == 1 && self.nodes.as_ref() == Some(nodes) => {
                Some(nodes)
            }
            _ => None,
        }
    }

    /// Returns the commands for a guest that runs the program; the guest's name is left to fill in.
    fn guest_commands(&self) -> impl Iterator<Item = (&'static str, String)> {
        let libvirt = self.strict_or_in_turn("strict").map(|(mode, nodes)| {
            ("libvirt", format!("virsh numatune GUEST --mode {mode} --nodeset {nodes} --config"))
        });
        let node = self.nodes.as_ref().filter(|nodes| nodes.len() == 1);
        // Given as a string instead, cpus bind the vCPUs but not the memory.
        let xl = node.map(|node| {
            let line = format!("xl create GUEST.cfg 'cpus=[\"node:{node}\"]'");
            ("xl", format!("{line}, with an entry for each vCPU"))
        });
        libvirt.into_iter().chain(xl)
    }

    /// Returns the policy's word and nodes for tools that know two policies: interleaving, and
    /// binding, which they call `bind`.
    fn strict_or_in_turn(&self, bind: &'static str) -> Option<(&'static str, &NodeSet)> {
        match self.policy.as_ref()? {
            MemoryPolicy::Bind(nodes) => Some((bind, nodes)),
            MemoryPolicy::Interleave(nodes) => Some(("interleave", nodes)),
            _ => None,
        }
    }

    fn memory_only(&self) -> Self {
        Self { policy: self.policy.clone(), ..Self::default() }
    }
}

fn joined(options: [Option<String>; 2]) -> String {
    options.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Formats the intervals of OpenMP: `{0}:4` are four places of a CPU each. Places do not change the
/// number of threads, which libgomp takes from the affinity that the process was started with.
fn openmp_places(cpus: &CpuSet) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for CpuId(cpu) in cpus.iter() {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == cpu => *count += 1,
            _ => runs.push((cpu, 1)),
        }
    }
    let places: Vec<String> =
        runs.iter().map(|(cpu, count)| format!("{{{cpu}}}:{count}")).collect();
    format!("OMP_NUM_THREADS={} OMP_PLACES='{}'", cpus.len(), places.join(","))
}

/// Formats a mask in hexadecimal digits, as SLURM takes it.
fn mask<I: Id>(set: &IdSet<I>) -> String {
    let words = set.mask_words();
    let words = words.iter().rev().map(|word| format!("{word:08x}")).collect::<String>();
    format!("0x{}", words.trim_start_matches('0'))
}
