//! The readers, on the output of tools on real machines.

mod corpus;

use corpus::{corpus, texts};
use numalab_formats::{architecture, hwloc, lscpu, machine_toml, numactl, svg};
use numalab_topology::{Machine, NodeId};

/// Returns every machine that a file of the corpus describes, by file name.
fn machines(root: &std::path::Path) -> Vec<(String, Machine)> {
    let mut machines = Vec::new();
    for (name, text) in texts(&root.join("text"), ".txt") {
        if name.starts_with("numactl-H") {
            machines.push((name, numactl::read(&text).unwrap().value));
        }
    }
    for folder in ["sysfs/xml", "sysfs/expected", "samples"] {
        for (name, text) in texts(&root.join(folder), ".xml") {
            machines.push((name, hwloc::read_xml(&text).unwrap().value));
        }
    }
    for (name, text) in texts(&root.join("numa-mem-bench/architectures"), "") {
        machines.push((name, architecture::read(&text).unwrap().value.machine));
    }
    machines
}

fn machine<'m>(machines: &'m [(String, Machine)], name: &str) -> &'m Machine {
    &machines.iter().find(|(file, _)| file == name).unwrap().1
}

#[test]
fn every_text_of_a_machine_is_read_and_written_again() {
    let Some(root) = corpus("every_text_of_a_machine_is_read_and_written_again") else {
        return;
    };
    let machines = machines(&root);
    assert!(machines.len() >= 30, "{} machines", machines.len());
    for (name, machine) in &machines {
        let toml = machine_toml::write(machine).unwrap();
        assert_eq!(machine_toml::read(&toml).unwrap(), *machine, "{name}");
        assert!(svg::write(machine).ends_with("</svg>\n"), "{name}");
        let xml = hwloc::write_xml(machine).unwrap();
        let again = hwloc::read_xml(&xml).unwrap().value;
        assert_eq!(again.online_cpus(), machine.online_cpus(), "{name}");
        assert_eq!(again.caches.len(), machine.caches.len(), "{name}");
        assert_eq!(again.distances, machine.distances, "{name}");
        let cpus = |machine: &Machine| -> Vec<_> {
            let online = machine.online_cpus();
            machine.nodes.iter().map(|node| (node.id, node.cpus.intersection(&online))).collect()
        };
        let placed = |cpu: &numalab_topology::Cpu| cpu.node.is_some() || !cpu.online;
        if machine.cpus.iter().all(placed) {
            assert_eq!(cpus(&again), cpus(machine), "{name}");
        }
    }
}

#[test]
fn numactl_texts_are_written_again_byte_for_byte() {
    let Some(root) = corpus("numactl_texts_are_written_again_byte_for_byte") else {
        return;
    };
    for (name, text) in texts(&root.join("text"), ".txt") {
        if !name.starts_with("numactl-H") {
            continue;
        }
        // One post has no distances, and one continues after them.
        let body = text.split("\n\n").next().unwrap().trim_end();
        let written = numactl::write(&numactl::read(&text).unwrap().value);
        let written = written.trim_end_matches("No distance information available.\n");
        let lines =
            |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(lines(written), lines(body), "{name}");
    }
}

#[test]
fn xml_gives_the_number_of_cpus_and_nodes_of_its_objects() {
    let Some(root) = corpus("xml_gives_the_number_of_cpus_and_nodes_of_its_objects") else {
        return;
    };
    for folder in ["sysfs/xml", "sysfs/expected", "samples"] {
        for (name, text) in texts(&root.join(folder), ".xml") {
            let machine = hwloc::read_xml(&text).unwrap().value;
            let count = |kind: &str| text.matches(&format!("<object type=\"{kind}\"")).count();
            assert_eq!(machine.online_cpus().len(), count("PU"), "{name}");
            assert_eq!(machine.nodes.len(), count("NUMANode"), "{name}");
            assert_eq!(machine.cores().len(), count("Core"), "{name}");
        }
    }
}

#[test]
fn known_machines_are_read_with_their_known_properties() {
    let Some(root) = corpus("known_machines_are_read_with_their_known_properties") else {
        return;
    };
    let machines = machines(&root);
    let uv = machine(&machines, "192em64t-24n8c2t.xml");
    assert_eq!((uv.nodes.len(), uv.packages().len(), uv.cpus.len()), (24, 24, 384));
    assert_eq!(uv.distances.values(), [10, 50, 65, 79]);
    let epyc = machine(&machines, "AMD-19h-Zen3-2xEpyc-7763.xml");
    assert_eq!((epyc.packages().len(), epyc.l3_groups().len()), (2, 16));
    let hbm = machine(&machines, "64intel64-heteromem.xml");
    assert_eq!(hbm.cpu_nodes().to_string(), "0-3");
    assert_eq!(hbm.memory_nodes().to_string(), "0-7");
    let power = machine(&machines, "numactl-H-power9-gpu-holes.txt");
    assert_eq!(power.distance(NodeId(8), NodeId(255)), Some(80));
    let lumi = machine(&machines, "lumi_partc");
    assert_eq!((lumi.nodes.len(), lumi.l3_groups().len(), lumi.cores().len()), (8, 16, 128));
    let sample = machine(&machines, "lstopo-synthetic-2s-16ccd-128c.xml");
    assert_eq!((sample.nodes.len(), sample.l3_groups().len()), (2, 16));
    let hidden = machine(&machines, "32amd64-4s2n4c-cgroup2.xml");
    assert_eq!(hidden.online_cpus().to_string(), "0-5");
    assert!(hidden.cpus.len() >= 32);
}

#[test]
fn lscpu_texts_of_other_architectures_are_read() {
    let Some(root) = corpus("lscpu_texts_of_other_architectures_are_read") else {
        return;
    };
    let mut read = 0;
    for (name, text) in texts(&root.join("sysfs/expected"), "") {
        if name.starts_with("lscpu-") {
            // The second table is of physical ids.
            let sentence = "# The following is the parsable";
            let end = text.match_indices(sentence).nth(1).map_or(text.len(), |(place, _)| place);
            let both = lscpu::read(&text).unwrap_err().to_string();
            assert!(both.contains("expected one table"), "{name}: {both}");
            let reading =
                lscpu::read(&text[..end]).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!reading.value.online_cpus().is_empty(), "{name}");
            read += 1;
        }
    }
    assert_eq!(read, 10);
}

#[test]
fn fallback_orders_of_real_machines_have_rising_distances() {
    let Some(root) = corpus("fallback_orders_of_real_machines_have_rising_distances") else {
        return;
    };
    for (name, machine) in machines(&root) {
        let memory: Vec<NodeId> = machine.memory_nodes().iter().collect();
        for entry in machine.fallback_orders() {
            let mut sorted = entry.order.clone();
            sorted.sort();
            assert_eq!(sorted, memory, "{name}");
            // The penalty of one for smaller ids can only swap neighbours.
            let distance = |to: &NodeId| machine.distance(entry.node, *to).unwrap_or(20);
            let outwards =
                entry.order.windows(2).all(|pair| distance(&pair[0]) <= distance(&pair[1]) + 1);
            assert!(outwards, "{name}: {entry:?}");
        }
    }
}
