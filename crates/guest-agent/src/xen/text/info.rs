//! `xl info -n`: the machine as the hypervisor exports it.

use std::collections::BTreeMap;

/// The part of `xl info -n` that describes the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XenInfo {
    /// The hypervisor's version, such as `4.17.7`.
    pub version: String,
    pub command_line: String,
    /// The linker's build id, in hexadecimal digits; empty if there is none.
    pub build_id: String,
    pub cpu_nodes: BTreeMap<u32, u32>,
    pub cpu_sockets: BTreeMap<u32, u32>,
    /// The memory of each node in MiB, and its distances to all nodes in order.
    pub nodes: BTreeMap<u32, (u64, Vec<u8>)>,
}

/// Parses the output of `xl info -n`.
pub fn xen_info(text: &str) -> XenInfo {
    let mut info = XenInfo::default();
    let mut table = "";
    for line in text.lines() {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        match (key.trim(), value.trim()) {
            ("cpu" | "node", _) => table = key.trim(),
            ("xen_version", value) => value.clone_into(&mut info.version),
            ("xen_commandline", value) => value.clone_into(&mut info.command_line),
            ("build_id", value) => value.clone_into(&mut info.build_id),
            (key, value) => match (key.parse(), table) {
                (Ok(cpu), "cpu") => info.add_cpu(cpu, value),
                (Ok(node), "node") => info.add_node(node, value),
                _ => table = "",
            },
        }
    }
    info
}

impl XenInfo {
    /// Adds a row of `cpu: core socket node`.
    fn add_cpu(&mut self, cpu: u32, row: &str) {
        let fields: Vec<u32> = row.split_whitespace().flat_map(str::parse).collect();
        if let [_, socket, node] = fields[..] {
            self.cpu_nodes.insert(cpu, node);
            self.cpu_sockets.insert(cpu, socket);
        }
    }

    /// Adds a row of `node: memsize memfree distances`.
    fn add_node(&mut self, node: u32, row: &str) {
        let mut fields = row.split_whitespace();
        let size = fields.next().and_then(|text| text.parse().ok());
        let distances = fields.nth(1).unwrap_or_default();
        let distances = distances.split(',').flat_map(str::parse).collect();
        if let Some(size) = size {
            self.nodes.insert(node, (size, distances));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "\
host                   : (none)
nr_cpus                : 4
free_memory            : 3027
cpu_topology           :
cpu:    core    socket     node
  0:       0        0        0
  1:       1        0        0
  2:       0        1        1
  3:       1        1        1
device topology        :
device           node
No device topology data available
numa_info              :
node:    memsize    memfree    distances
   0:      1024        743      10,21
   1:      1024        974      21,10
xen_major              : 4
xen_version            : 4.17.7
xen_commandline        : console=com1 loglvl=all numa=on dom0_mem=1G
build_id               : 5f8e94d1d6b9a5c2f1b9e2a1c0d3
";

    #[test]
    fn the_exported_topology_is_read() {
        let info = xen_info(INFO);
        assert_eq!(info.cpu_nodes, BTreeMap::from([(0, 0), (1, 0), (2, 1), (3, 1)]));
        assert_eq!(info.cpu_sockets[&2], 1);
        assert_eq!(info.nodes[&1], (1024, vec![21, 10]));
        assert_eq!(info.version, "4.17.7");
        assert!(info.command_line.ends_with("dom0_mem=1G"));
        assert_eq!(info.build_id, "5f8e94d1d6b9a5c2f1b9e2a1c0d3");
    }

    #[test]
    fn truncated_text_does_not_panic() {
        for end in 0..INFO.len() {
            let _ = xen_info(&INFO[..end]);
        }
    }
}
