//! The name of a candidate in a study and its journal: a stable id, independent of any page's
//! wording.

use numalab_results::advice::{Candidate, Spread, cpu_list, node_list};

/// Returns the name of a candidate's level.
pub(super) fn id(candidate: &Candidate) -> String {
    let joined = |weights: &[u32]| weights.iter().map(u32::to_string).collect::<Vec<_>>().join(":");
    match candidate {
        Candidate::Bind { .. } | Candidate::Interleave { .. } => {
            let policy = candidate.placement().and_then(|placement| placement.policy);
            policy.map_or_else(String::new, |policy| policy.to_string())
        }
        Candidate::WeightedInterleave { weights } => format!("weighted:{}", joined(weights)),
        Candidate::FastMemory { nodes } => format!("fast-memory:{}", node_list(nodes)),
        Candidate::HugePages => "huge-pages".to_owned(),
        Candidate::Pack => "pack".to_owned(),
        Candidate::Cpus { spread, cpus } => {
            let by = match spread {
                Spread::Cores => "cores",
                Spread::Siblings => "siblings",
                Spread::Groups => "l3-groups",
                Spread::OneGroup => "few-l3-groups",
            };
            format!("{by}:{}", cpu_list(cpus))
        }
        Candidate::Balancing { mode } => format!("balancing:{mode}"),
        Candidate::BindRegion { nodes, address, .. } => {
            format!("bind-region:{}:{address:#x}", node_list(nodes))
        }
        Candidate::PlaceFile { path, nodes, .. } => {
            format!("place-file:{}:{path}", node_list(nodes))
        }
        Candidate::FirstTouch { region, .. } => format!("first-touch:{region}"),
        Candidate::Replicate { region, .. } => format!("replicate:{region}"),
        Candidate::SeparateLines { lines } => format!("separate-lines:{}", lines.join(",")),
        Candidate::Ranks { options } => format!("srun:{}", options.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Later versions compare with earlier journals by these names.
    #[test]
    fn the_names_of_levels_stay_unchanged() {
        let cpus = |spread| Candidate::Cpus { spread, cpus: vec![0, 2] };
        let named = [
            (Candidate::Bind { node: 1 }, "bind:1"),
            (Candidate::Interleave { nodes: vec![0, 1, 2] }, "interleave:0-2"),
            (Candidate::WeightedInterleave { weights: vec![2, 1] }, "weighted:2:1"),
            (Candidate::FastMemory { nodes: vec![0] }, "fast-memory:0"),
            (Candidate::HugePages, "huge-pages"),
            (Candidate::Pack, "pack"),
            (
                Candidate::BindRegion {
                    region: "grid".to_owned(),
                    address: 0x7f00,
                    line: "a.c:3".to_owned(),
                    nodes: vec![0, 1],
                },
                "bind-region:0,1:0x7f00",
            ),
            (
                Candidate::PlaceFile { path: "/a:b".to_owned(), address: 0, nodes: vec![1] },
                "place-file:1:/a:b",
            ),
            (Candidate::FirstTouch { line: None, region: "grid".to_owned() }, "first-touch:grid"),
            (Candidate::Replicate { line: None, region: "table".to_owned() }, "replicate:table"),
            (
                Candidate::SeparateLines { lines: ["a.c:3", "a.c:9"].map(str::to_owned).to_vec() },
                "separate-lines:a.c:3,a.c:9",
            ),
            (cpus(Spread::Cores), "cores:0,2"),
            (cpus(Spread::Siblings), "siblings:0,2"),
            (cpus(Spread::Groups), "l3-groups:0,2"),
            (cpus(Spread::OneGroup), "few-l3-groups:0,2"),
            (Candidate::Balancing { mode: 2 }, "balancing:2"),
            (
                Candidate::Ranks { options: vec!["--cpu-bind=ldoms".to_owned()] },
                "srun:--cpu-bind=ldoms",
            ),
        ];
        for (candidate, name) in named {
            assert_eq!(id(&candidate), name);
        }
    }
}
