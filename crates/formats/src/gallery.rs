//! Machines that come with numalab, as [`crate::machine_toml`] files: each figure has its public
//! source in a comment, and unpublished figures are left out. One has a fitted
//! figure; its name says so.

/// Name and text of every machine.
pub const MACHINES: [(&str, &str); 7] = [
    ("epyc-7452-cxl", include_str!("../machines/epyc-7452-cxl.toml")),
    ("epyc-7763-nps4", include_str!("../machines/epyc-7763-nps4.toml")),
    ("epyc-9965-2s", include_str!("../machines/epyc-9965-2s.toml")),
    ("graviton3", include_str!("../machines/graviton3.toml")),
    ("x460", include_str!("../machines/x460.toml")),
    ("x460-fitted", include_str!("../machines/x460-fitted.toml")),
    ("xeon-8360y-2s", include_str!("../machines/xeon-8360y-2s.toml")),
];

/// Returns the names of all machines.
pub fn names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|(name, _)| *name)
}

/// Returns the text of the machine of this name.
pub fn machine(name: &str) -> Option<&'static str> {
    MACHINES.iter().find(|(known, _)| *known == name).map(|&(_, text)| text)
}

/// Returns the title of a machine file: its first line, a comment.
pub fn title(text: &str) -> &str {
    text.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_toml;

    #[test]
    fn every_machine_can_be_read_has_a_title_and_latencies_between_all_its_nodes() {
        for (name, text) in MACHINES {
            assert_eq!(machine(name), Some(text));
            assert!(title(text).len() > 20 && title(text).len() <= 75, "{name}: {}", title(text));
            let machine =
                machine_toml::read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let initiators = machine.nodes.iter().filter(|node| !node.cpus.is_empty()).count();
            assert_eq!(machine.access.len(), initiators * machine.nodes.len(), "{name}");
            assert!(machine.access.iter().all(|pair| pair.read_latency_ps.is_some()), "{name}");
        }
    }

    #[test]
    fn a_guest_of_every_machine_can_be_described() {
        for (name, text) in MACHINES {
            let file = machine_toml::read_file(text).unwrap();
            let guest = machine_toml::scaled(&file.machine, 2, 2 << 30);
            let described = file.emulated(&guest).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!described.caches.is_empty(), "{name}");
            assert!(guest.memory_bytes() <= 5 << 29, "{name}: {}", guest.memory_bytes());
        }
    }

    #[test]
    fn a_guest_with_some_of_a_machines_nodes_has_the_figures_of_those_nodes() {
        let file = machine_toml::read_file(machine("epyc-7763-nps4").unwrap()).unwrap();
        let mut guest = machine_toml::scaled(&file.machine, 1, 2 << 30);
        let kept = [0, 5].map(|at: usize| guest.nodes[at].id);
        guest.nodes.retain(|node| kept.contains(&node.id));
        guest.cpus.retain(|cpu| cpu.node.is_some_and(|node| kept.contains(&node)));
        guest.distances =
            numalab_topology::Distances::from_rows(&[vec![10, 32], vec![32, 10]]).unwrap();
        guest.access.retain(|pair| kept.contains(&pair.initiator) && kept.contains(&pair.target));
        let described = file.emulated(&guest).unwrap();
        assert_eq!(described.latency_ns.len(), 2);
        assert_eq!(described.node_load.unwrap().len(), 2);
        let (all, part) = (file.memory.transfers.unwrap(), described.transfers.unwrap());
        assert_eq!(part.node_ns[0], [all.node_ns[0][0], all.node_ns[0][5]]);
        assert_eq!(part.node_ns[1], [all.node_ns[5][0], all.node_ns[5][5]]);
    }

    #[test]
    fn the_fitted_x460_is_marked_and_differs_from_the_sourced_one_in_one_figure() {
        let figures = |name: &str| -> Vec<&str> {
            let text = machine(name).unwrap();
            text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect()
        };
        let (sourced, fitted) = (figures("x460"), figures("x460-fitted"));
        assert_eq!(sourced.len(), fitted.len());
        let pairs = sourced.iter().zip(&fitted);
        let differ: Vec<_> = pairs.filter(|(sourced, fitted)| sourced != fitted).collect();
        assert_eq!(differ, [(&"peak_mb_s = 10660.0", &"peak_mb_s = 3000.0")]);
        let text = machine("x460-fitted").unwrap();
        assert!(title(text).contains("fitted") && !machine("x460").unwrap().contains("itted"));
        assert!(text.contains("# Fitted: 28 % of the public figure, 10,660 MB/s"));
    }

    #[test]
    fn every_figure_of_a_machine_has_a_source() {
        for (name, text) in MACHINES {
            assert!(
                text.lines().filter(|line| line.starts_with("# Source")).count() >= 3,
                "{name}"
            );
        }
    }
}
