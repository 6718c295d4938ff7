//! Facts about the system that can affect a measurement.

mod arm;

use std::collections::BTreeMap;

use numalab_record::{Environment, Fact};
use numalab_topology::CpuSet;

use crate::cgroup::cpu_quota;
use crate::proc::field;
use crate::root::Root;
use crate::system_page::pool_kilobytes;
use crate::system_page::{chosen, transparent_sizes};
use crate::virtual_machine::{has_guest_flag, hypervisor};

/// Returns the name of this machine in its network.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Facts that are the whole text of one file.
const WHOLE_FILES: [(&str, &str); 16] = [
    ("kernel", "proc/sys/kernel/osrelease"),
    ("kernel_version", "proc/sys/kernel/version"),
    ("kernel_command_line", "proc/cmdline"),
    ("numa_balancing", "proc/sys/kernel/numa_balancing"),
    ("zone_reclaim_mode", "proc/sys/vm/zone_reclaim_mode"),
    ("swappiness", "proc/sys/vm/swappiness"),
    ("overcommit_memory", "proc/sys/vm/overcommit_memory"),
    ("governor", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("frequency_driver", "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"),
    ("boost", "sys/devices/system/cpu/cpufreq/boost"),
    ("smt", "sys/devices/system/cpu/smt/control"),
    ("isolated_cpus", "sys/devices/system/cpu/isolated"),
    ("clocksource", "sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("hypervisor", "sys/hypervisor/type"),
    ("load_average", "proc/loadavg"),
    ("machine", "sys/class/dmi/id/product_name"),
];

/// Facts that are the bracketed word of a file such as `always [madvise] never`.
const CHOSEN_WORDS: [(&str, &str); 2] = [
    ("thp_enabled", "sys/kernel/mm/transparent_hugepage/enabled"),
    ("thp_defrag", "sys/kernel/mm/transparent_hugepage/defrag"),
];

/// Facts that are the number of members of a list such as `0-3,8`.
const COUNTED_LISTS: [(&str, &str); 2] =
    [("cpus", "sys/devices/system/cpu/online"), ("nodes", "sys/devices/system/node/online")];

/// Facts that are lines of `/proc/cpuinfo`, with the names that architectures use for them.
const CPUINFO_LINES: [(&str, &[&str]); 3] = [
    // The names on x86, MIPS, POWER and LoongArch.
    ("cpu_model", &["model name", "cpu model", "cpu", "Model Name"]),
    ("cpu_vendor", &["vendor_id", "CPU implementer"]),
    ("microcode", &["microcode"]),
];

/// Facts that are lines of `/proc/meminfo`.
const MEMINFO_LINES: [(&str, &str); 4] = [
    ("swap_total_kb", "SwapTotal"),
    ("swap_free_kb", "SwapFree"),
    ("memory_total_kb", "MemTotal"),
    ("memory_available_kb", "MemAvailable"),
];

/// Reads the facts that the system reports; others are absent.
///
/// | name | value |
/// |---|---|
/// | `kernel`, `kernel_version`, `kernel_command_line` | release, build, boot arguments |
/// | `architecture` | the one that the binary was built for |
/// | `distribution` | `PRETTY_NAME` of os-release |
/// | `cpu_model`, `cpu_vendor`, `microcode` | as `/proc/cpuinfo` names the first cpu; Arm's by number |
/// | `cpu_family`, `cpu_model_number` | as CPUID numbers the first cpu, in decimal; on x86 only |
/// | `cpu_prefetches_code` | true if CPUID reports it (Intel SDM: 7.1:EDX bit 14, PREFETCHI) |
/// | `hypervisor`, `machine` | the hypervisor if this is a guest; vendor and product |
/// | `thp_enabled`, `thp_defrag` | transparent huge pages: the chosen words |
/// | `thp_sizes` | their sizes that are not off, each with its word (Linux 6.8 or later) |
/// | `numa_balancing`, `zone_reclaim_mode`, `swappiness`, `overcommit_memory` | sysctls |
/// | `huge_pages_<size>kb`, `huge_pages_<size>kb_free` | pages reserved, and those of them that are free |
/// | `governor`, `frequency_driver`, `boost` | frequency control of cpu 0 |
/// | `cpus`, `nodes` | number of online ones |
/// | `smt`, `isolated_cpus`, `clocksource` | as in sysfs |
/// | `mitigations` | vulnerabilities that are mitigated, with the means |
/// | `swap_total_kb`, `swap_free_kb`, `memory_total_kb`, `memory_available_kb` | `/proc/meminfo` |
/// | `cpu_quota` | the cpu time that control groups allow, in cpus, if they limit it |
/// | `load_average` | of 1, 5 and 15 minutes when it was read |
pub fn read_environment(root: &Root) -> Environment {
    let mut facts = BTreeMap::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), Fact::read(name, &value));
        }
    };
    add("architecture", Some(std::env::consts::ARCH.to_owned()));
    for (name, path) in WHOLE_FILES {
        add(name, root.value(path).ok());
    }
    for (name, path) in CHOSEN_WORDS {
        add(name, root.value(path).ok().and_then(|text| chosen(&text)));
    }
    for (name, path) in COUNTED_LISTS {
        let list = root.value(path).ok().and_then(|text| text.parse::<CpuSet>().ok());
        add(name, list.map(|members| members.len().to_string()));
    }
    let cpuinfo = root.document("proc/cpuinfo").unwrap_or_default();
    for (name, keys) in CPUINFO_LINES {
        add(name, keys.iter().find_map(|key| field(&cpuinfo, key)).map(str::to_owned));
    }
    add("cpu_model", arm::model(&cpuinfo));
    if let Some(family) = field(&cpuinfo, "cpu family") {
        add("cpu_family", Some(family.to_owned()));
        add("cpu_model_number", field(&cpuinfo, "model").map(str::to_owned));
    }
    let meminfo = root.document("proc/meminfo").unwrap_or_default();
    for (name, key) in MEMINFO_LINES {
        let value = field(&meminfo, key);
        add(name, value.map(|text| text.trim_end_matches(" kB").to_owned()));
    }
    let sizes = transparent_sizes(root);
    let sizes = sizes.iter().map(|(kilobytes, word)| format!("{kilobytes}kb {word}"));
    add("thp_sizes", Some(sizes.collect::<Vec<_>>().join(", ")));
    for (name, value) in huge_pages(root) {
        add(&name, Some(value));
    }
    add("cpu_quota", cpu_quota(root).map(|quota| format!("{}", quota.cpus)));
    add("distribution", distribution(root));
    add("mitigations", mitigations(root));
    // CPUID describes this machine, not the one that a tree was copied from.
    if root.is_live() && processor_prefetches_code() {
        facts.insert("cpu_prefetches_code".to_owned(), true.into());
    }
    complete_hypervisor(&mut facts, root, &cpuinfo);
    Environment { facts }
}

/// Adds the hypervisor. Only Xen reports itself in sysfs; others are recognised by CPUID, as in
/// lscpu(1), else by the firmware's tables. The cpu flag `hypervisor` alone means an unknown one.
fn complete_hypervisor(facts: &mut BTreeMap<String, Fact>, root: &Root, cpuinfo: &str) {
    let vendor = root.value("sys/class/dmi/id/sys_vendor").unwrap_or_default();
    if let Some(machine) = facts.get_mut("machine") {
        *machine = format!("{vendor} {machine}").trim().into();
    }
    if facts.contains_key("hypervisor") {
        return;
    }
    let is_flagged = has_guest_flag(cpuinfo);
    let of_processor = || (root.is_live() && is_flagged).then(hypervisor_of_processor).flatten();
    let name = of_processor().or_else(|| hypervisor(root));
    let unnamed = || if vendor.is_empty() { "unknown".to_owned() } else { vendor };
    if let Some(name) = name.or_else(|| is_flagged.then(unnamed)) {
        facts.insert("hypervisor".to_owned(), name.into());
    }
}

/// Returns the hypervisor that CPUID leaf 0x4000_0000 reports.
#[cfg(target_arch = "x86_64")]
fn hypervisor_of_processor() -> Option<String> {
    const NAMES: [(&[u8; 12], &str); 7] = [
        (b"KVMKVMKVM\0\0\0", "KVM"),
        (b"XenVMMXenVMM", "Xen"),
        (b"Microsoft Hv", "Microsoft"),
        (b"VMwareVMware", "VMware"),
        (b"TCGTCGTCGTCG", "QEMU TCG"),
        (b"bhyve bhyve ", "bhyve"),
        (b"ACRNACRNACRN", "ACRN"),
    ];
    // Reserved for hypervisors, which put their signature there.
    let leaf = core::arch::x86_64::__cpuid(0x4000_0000);
    let words = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes).concat();
    let found = NAMES.iter().find(|(signature, _)| signature[..] == words[..]);
    found.map(|(_, name)| (*name).to_owned())
}

/// Returns true if the processor has PREFETCHIT0, which Linux does not list among its flags.
#[cfg(target_arch = "x86_64")]
fn processor_prefetches_code() -> bool {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    // Beyond its highest leaf, an Intel processor returns the data of another leaf.
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).eax >= 1 && __cpuid_count(7, 1).edx & (1 << 14) != 0
}

/// Returns false: other processors have no CPUID.
#[cfg(not(target_arch = "x86_64"))]
fn processor_prefetches_code() -> bool {
    false
}

/// Returns `None`: other processors have no such instruction.
#[cfg(not(target_arch = "x86_64"))]
fn hypervisor_of_processor() -> Option<String> {
    None
}

fn huge_pages(root: &Root) -> Vec<(String, String)> {
    let directory = "sys/kernel/mm/hugepages";
    let names = root.names(directory);
    let pools = names.iter().filter_map(|name| Some((name, pool_kilobytes(name)?)));
    let facts = pools.flat_map(|(name, kilobytes)| {
        [("nr_hugepages", ""), ("free_hugepages", "_free")].map(|(file, suffix)| {
            let pages = root.value(&format!("{directory}/{name}/{file}")).ok()?;
            Some((format!("huge_pages_{kilobytes}kb{suffix}"), pages))
        })
    });
    facts.flatten().collect()
}

fn distribution(root: &Root) -> Option<String> {
    let text =
        // The first takes precedence (os-release(5)).
        root.document("etc/os-release").or_else(|_| root.document("usr/lib/os-release")).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

/// Returns the kernel's mitigations of processor vulnerabilities: `meltdown: PTI; ...`.
fn mitigations(root: &Root) -> Option<String> {
    let directory = "sys/devices/system/cpu/vulnerabilities";
    let names = root.names(directory);
    let items: Vec<String> = names
        .iter()
        .filter_map(|name| {
            let text = root.value(&format!("{directory}/{name}")).ok()?;
            // Others are `Vulnerable` or `Not affected`, and cost nothing.
            let means = text.strip_prefix("Mitigation: ")?;
            Some(format!("{name}: {means}"))
        })
        .collect();
    (!names.is_empty()).then(|| match items.as_slice() {
        [] => "none".to_owned(),
        items => items.join(" | "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    #[test]
    fn facts_are_read_by_name_and_absent_ones_omitted() {
        let top = tree(&[
            ("proc/sys/kernel/osrelease", "6.1.0\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            (
                "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled",
                "[always] inherit madvise never\n",
            ),
            (
                "proc/cpuinfo",
                "processor : 0\ncpu family\t: 23\nmodel\t\t: 49\nmodel name\t: Some CPU @ 2GHz: x\n\
                 flags\t: fpu hypervisor\n",
            ),
            ("proc/meminfo", "MemTotal:  100 kB\nSwapTotal:   0 kB\n"),
            ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
            ("sys/devices/system/cpu/online", "0-3,8\n"),
            ("sys/class/dmi/id/product_name", "Standard PC\n"),
            ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "7\n"),
            ("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3\n"),
            ("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"),
            ("sys/devices/system/cpu/vulnerabilities/mds", "Not affected\n"),
            ("etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian 12\"\n"),
        ]);
        let environment = read_environment(&Root::at(top.path()));
        let expected = [
            ("kernel", "6.1.0"),
            ("thp_enabled", "madvise"),
            ("thp_sizes", "64kb always"),
            ("cpu_model", "Some CPU @ 2GHz: x"),
            ("cpu_family", "23"),
            ("cpu_model_number", "49"),
            ("cpus", "5"),
            ("memory_total_kb", "100"),
            ("swap_total_kb", "0"),
            ("hypervisor", "QEMU"),
            ("machine", "QEMU Standard PC"),
            ("huge_pages_2048kb", "7"),
            ("huge_pages_2048kb_free", "3"),
            ("mitigations", "meltdown: PTI"),
            ("distribution", "Debian 12"),
        ];
        for (name, value) in expected {
            assert_eq!(environment.fact(name), Some(&Fact::read(name, value)), "{name}");
        }
        assert_eq!(environment.fact("governor"), None);
        assert_eq!(environment.fact("nodes"), None);
    }

    #[test]
    fn it_serialises_in_a_stable_order_and_back() {
        let environment = read_environment(&Root::live());
        let json = serde_json::to_string(&environment).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&json).unwrap(), environment);
        let kernel = json.find("\"kernel\"").unwrap();
        assert!(json.find("\"architecture\"").unwrap() < kernel);
    }

    #[test]
    fn the_live_system_reports_its_kernel_and_cpu_architecture() {
        let environment = read_environment(&Root::live());
        assert!(environment.fact("kernel").is_some());
        assert_eq!(environment.text("architecture"), Some(std::env::consts::ARCH));
    }
}
