//! Recognises the tool that printed the input, for errors about output that was given under another
//! tool's name.

/// A tool, with the marks of its text and the advice for the user.
struct Tool {
    /// A text of the tool contains one of these in its first lines.
    marks: &'static [&'static str],
    /// The source that reads the tool's output, if there is one.
    source: Option<&'static str>,
    /// The kind of text, and the input to give instead.
    advice: &'static str,
}

/// The tools, the surest marks first.
const TOOLS: [Tool; 27] = [
    Tool {
        marks: &["<capabilities>"],
        source: Some("libvirt"),
        advice: "this is the output of `virsh capabilities`: give it as libvirt:FILE",
    },
    Tool {
        marks: &["<domain type=", "<domstatus", "<domainCapabilities"],
        source: None,
        advice: "this describes a guest: give `virsh capabilities` of its host as libvirt:FILE",
    },
    Tool {
        marks: &["<topology version", "hwloc.dtd", "hwloc2.dtd", "<object type=\"Machine\""],
        source: Some("lstopo"),
        advice: "this is lstopo XML: give it as lstopo:FILE",
    },
    Tool {
        marks: &["SYSTEM_NAME="],
        source: Some("arch"),
        advice: "this is an architecture file: give it as arch:FILE",
    },
    Tool {
        marks: &["available: ", " cpus: "],
        source: Some("numactl"),
        advice: "this is the output of `numactl -H`: give it as numactl:FILE",
    },
    Tool {
        marks: &["CPU NODE", "CPU,Core", "CPU,Node", "On-line CPU(s)", "\"lscpu\"", "\"cpus\""],
        source: Some("lscpu"),
        advice: "this is the output of lscpu: give it as lscpu:FILE",
    },
    Tool {
        marks: &["PU L#", "PU P#", "NUMANode L#", "Machine ("],
        source: Some("lstopo"),
        advice: "this is what lstopo prints: give it as lstopo:FILE, or `lstopo --of xml`, which does \
                 not round sizes",
    },
    Tool {
        marks: &["NUMANode:"],
        source: None,
        advice: "this lstopo drawing has rounded sizes and no distances: give `lstopo --of xml` as \
                 lstopo:FILE",
    },
    Tool {
        marks: &["HWThread", "Hardware Thread Topology", "NUMA Topology"],
        source: Some("likwid"),
        advice: "this is the output of likwid-topology: give it as likwid:FILE",
    },
    Tool {
        marks: &["depth 0:"],
        source: None,
        advice: "hwloc-info prints only counts: give `lstopo --of xml` as lstopo:FILE",
    },
    Tool {
        marks: &["cpu_topology", "numa_info", "xen_version"],
        source: Some("xl"),
        advice: "this is the output of `xl info`: give that of `xl info -n` as xl:FILE",
    },
    Tool {
        marks: &["physcpubind:", "nodebind:", "membind:"],
        source: None,
        advice: "`numactl -s` shows the policy of a process, neither memory nor distances: give \
                 `numactl -H` as numactl:FILE",
    },
    Tool {
        marks: &["numa_hit", "Per-node "],
        source: None,
        advice: "numastat has neither cpus nor distances: give `numactl -H` as numactl:FILE",
    },
    Tool {
        marks: &["SRAT: ", "NUMA: Initialized", "Early memory node ranges"],
        source: None,
        advice: "the kernel's log has only part of the tables: give a copy of \
            /sys/firmware/acpi/tables as acpi:DIR",
    },
    Tool {
        marks: &["processor\t:", "processor       :", "processor 0: version"],
        source: None,
        advice: "this is /proc/cpuinfo: copy it to DIR/proc/cpuinfo and give sysfs:DIR",
    },
    Tool {
        marks: &["NUMA Affinity", "nvidia-smi", "ROCm "],
        source: None,
        advice: "this lists GPUs: give a copy of the machine's /sys and /proc as sysfs:DIR",
    },
    Tool {
        marks: &["# dmidecode", "DMI type "],
        source: None,
        advice: "dmidecode has neither nodes nor distances: give a copy of \
                 /sys/firmware/acpi/tables as acpi:DIR",
    },
    Tool {
        marks: &["\"memdev\"", "\"chardev\"", "\"target_node\"", "DimmID"],
        source: None,
        advice: "this lists memory devices, without cpus and distances: give a copy of the machine's \
                 /sys and /proc as sysfs:DIR",
    },
    Tool {
        marks: &["NUMA cell(s):", "NUMA domains:", "MemTotal:"],
        source: None,
        advice: "numalab does not read this tool's summary: give `numactl -H` as numactl:FILE",
    },
    Tool {
        marks: &["NodeName=", "AutoDetect=", "Name=gpu "],
        source: None,
        advice: "SLURM has only counts of a node: give its `numactl -H` as numactl:FILE",
    },
    Tool {
        marks: &["cpu-bind=", "bound to ", "current affinity"],
        source: None,
        advice: "this is the binding of processes: give `numactl -H` as numactl:FILE; `numalab explore \
                 --ranks` shows where ranks run",
    },
    Tool {
        marks: &["\"policyName\"", "Allocatable:"],
        source: None,
        advice: "Kubernetes shows only what it allocates: give the node's own `numactl -H` as \
                 numactl:FILE",
    },
    Tool {
        marks: &[", zone ", " kernelpagesize_kB="],
        source: None,
        advice: "this file of /proc has no cpus: give a copy of the machine's /sys and /proc as \
                 sysfs:DIR, which `numalab explore --root DIR` reads too",
    },
    Tool {
        marks: &["topology_spec", "<flag name=", "vm.phys_", "vm.ndomains", "FreeBSD/SMP"],
        source: None,
        advice: "this is FreeBSD's sysctl or log: give `lstopo --of xml` of its hwloc2 as lstopo:FILE, which \
                 has nodes, memory and distances",
    },
    Tool {
        marks: &["Windows", "Logical to Physical Processor Map", "hw.ncpu", "REF1 SRAD"],
        source: None,
        advice: "this system is not Linux: describe its nodes in a file for --topology, such as \
                 `numalab topology --emulate 2 --cpus 8 --format toml` prints",
    },
    Tool {
        marks: &["\u{1f}\u{fffd}", "\u{1f}\u{8b}"],
        source: None,
        advice: "this file is compressed: give the output of `gunzip -c FILE`",
    },
    Tool {
        marks: &["[[node]]", "[[cpu]]"],
        source: None,
        advice: "this is a machine file: give it as --topology FILE",
    },
];
/// Number of lines at the top of the input that are examined.
const LINES: usize = 400;

/// Returns a description of the input and the input to give instead, if this one was given as input
/// for `source`; `None` if it is valid there, or from an unknown tool.
pub fn advice(source: &str, text: &str) -> Option<&'static str> {
    let lines: Vec<String> = text.lines().take(LINES).map(single_spaces).collect();
    let has = |tool: &&Tool| {
        let mark = |line: &String| tool.marks.iter().any(|mark| line.contains(*mark));
        lines.iter().any(mark)
    };
    let tools: Vec<&Tool> = TOOLS.iter().filter(has).collect();
    let is_right = tools.iter().any(|tool| tool.source == Some(source));
    tools.first().filter(|_| !is_right).map(|tool| tool.advice)
}

fn single_spaces(line: &str) -> String {
    line.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_other_tools_are_recognised_and_those_of_the_source_are_not_blamed() {
        let texts = [
            ("$ lscpu -e\nCPU NODE SOCKET\n  0    0\n", "lscpu:FILE"),
            ("Machine (11GB total)\n  Package L#0\n", "this is what lstopo prints"),
            ("host      : box\nnuma_info              :\n", "`xl info`"),
            ("HWThread        Thread        Core\n0  0  0\n", "likwid:FILE"),
            ("depth 0:           1 Machine (type #0)\n", "`lstopo --of xml`"),
            ("                           node0\nnuma_hit         7\n", "`numactl -H`"),
            ("policy: preferred-many\nphyscpubind: 0 1\nmembind: 0\n", "`numactl -s` shows"),
            ("[    0.01] ACPI: SRAT: Node 0 PXM 0 [mem 0x0-0x9ffff]\n", "acpi:DIR"),
            ("processor\t: 0\nvendor_id\t: GenuineIntel\n", "DIR/proc/cpuinfo"),
            ("available: 1 nodes (0)\nnode 0 cpus: 0\n", "numactl:FILE"),
            ("<!DOCTYPE topology SYSTEM \"hwloc.dtd\">\n<topology>\n", "this is lstopo XML"),
            ("<capabilities><host><topology><cells num='2'>", "it as libvirt:FILE"),
            ("<domain type='kvm'>\n<cpu><topology sockets='1'/>", "describes a guest"),
            ("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X", "sysfs:DIR"),
            ("= ROCm System Management Interface =\nGPU[0] : Numa Node: 0", "this lists GPUs"),
            ("Handle 0x1100, DMI type 17, 92 bytes\nMemory Device\n", "acpi:DIR"),
            ("[\n {\n  \"memdev\":\"mem0\",\n  \"numa_node\":1\n }\n]\n", "memory devices"),
            ("[{\"chardev\":\"dax0.0\",\"target_node\":2}]", "memory devices"),
            ("CPU socket(s): 1\nNUMA cell(s):        2\n", "`numactl -H`"),
            ("# processors    : 2\nprocessor 0: version = FF\n", "DIR/proc/cpuinfo"),
            ("# dmidecode 3.4\nGetting SMBIOS data from sysfs.\n", "acpi:DIR"),
            ("SYSTEM_NAME=\"LUMI\"\nCPU(s): 2\n", "arch:FILE"),
            ("[[node]]\nid = 0\n", "--topology"),
            ("NodeName=n01 Arch=x86_64 CoresPerSocket=64\n", "SLURM has only counts"),
            ("NodeName=n01 CPUs=256 Boards=1 SocketsPerBoard=2\n", "SLURM has only counts"),
            ("AutoDetect=nvml\nName=gpu File=/dev/nvidia[0-3] Cores=0-15\n", "SLURM has only"),
            ("cpu-bind=MASK - n01, task  0  0 [42]: mask 0x1 set\n", "numalab explore --ranks"),
            ("[n01:42] MCW rank 0 bound to socket 0[core 0[hwt 0-1]]: [BB]\n", "binding of"),
            ("pid 42's current affinity list: 0-7\n", "binding of processes"),
            (r#"{"policyName":"static","defaultCpuSet":"0,4-7","entries":{}}"#, "Kubernetes"),
            ("Capacity:\n  cpu: 16\nAllocatable:\n  cpu: 15\n", "Kubernetes"),
            ("Node 0, zone      DMA      1      1\n", "numalab explore --root DIR"),
            ("7f00 default anon=16 N0=16 kernelpagesize_kB=4\n", "numalab explore --root DIR"),
            ("OS Name:                   Microsoft Windows 11 Pro\n", "not Linux"),
            ("kern.sched.topology_spec: <groups>\n <group level=\"1\">", "lstopo --of xml"),
            ("vm.phys_segs: \nSEGMENT 0:\n\nstart:     0x1000\n", "lstopo --of xml"),
            ("hw.ncpu: 10\nhw.memsize: 34359738368\n", "not Linux"),
            ("REF1   SRAD        MEM      CPU\n0\n", "not Linux"),
            ("\u{1f}\u{fffd}\u{8}\0", "gunzip"),
        ];
        for (text, expected) in texts {
            let said = advice("xyz", text).unwrap_or_default();
            assert!(said.contains(expected), "{text}: {said}");
        }
        assert_eq!(advice("numactl", "available: 2 nodes (0-1)\nnode 0 cpus: x\n"), None);
        let capabilities = "<capabilities><host><topology><cells num='2'>";
        assert!(advice("lstopo", capabilities).is_some(), "not back to where it came from");
        assert_eq!(advice("lstopo", "<topology version=\"2.0\">\n"), None);
        assert_eq!(advice("numactl", "my shopping list\n"), None);
    }
}
