//! The output of `xl list -n`, `xl vcpu-list` and `xl cpupool-list -c` (xl(1)).

use numalab_topology::{CpuId, CpuSet, NodeSet};

/// A line of `xl list -n`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedDomain {
    pub name: String,
    pub domain: u32,
    pub memory_bytes: u64,
    /// State letters: `r`, `b`, `p`, `s` (shut down), `c` (crashed), `d`, and dashes.
    pub state: String,
    /// The nodes of the domain's affinity, which may differ from those of its memory; `None` for
    /// all.
    pub nodes: Option<NodeSet>,
}

/// A line of `xl vcpu-list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedVcpu {
    pub domain: u32,
    pub index: u32,
    /// The cpu that the vCPU runs on, or ran on last; `None` while it is offline.
    pub cpu: Option<CpuId>,
    /// The cpus that the vCPU may run on; `None` for all.
    pub hard: Option<CpuSet>,
    /// The cpus that the vCPU should run on; `None` for all.
    pub soft: Option<CpuSet>,
}

/// Parses `xl list -n`; other lines are skipped.
pub fn read_list(text: &str) -> Vec<ListedDomain> {
    text.lines().filter_map(listed_domain).collect()
}

fn listed_domain(line: &str) -> Option<ListedDomain> {
    // Name, ID, Mem, VCPUs, State, Time(s), then the affinity, if requested.
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [name, domain, memory, _vcpus, state, _time, nodes @ ..] = words.as_slice() else {
        return None;
    };
    let memory_mib: u64 = memory.parse().ok()?;
    Some(ListedDomain {
        name: (*name).to_owned(),
        domain: domain.parse().ok()?,
        memory_bytes: memory_mib.checked_mul(1 << 20)?,
        state: (*state).to_owned(),
        nodes: nodes.concat().parse().ok().filter(|nodes: &NodeSet| !nodes.is_empty()),
    })
}

/// Parses `xl vcpu-list`; other lines are skipped.
pub fn read_vcpus(text: &str) -> Vec<ListedVcpu> {
    text.lines().filter_map(listed_vcpu).collect()
}

fn listed_vcpu(line: &str) -> Option<ListedVcpu> {
    let (front, soft) = line.rsplit_once(" / ")?;
    // Name, ID, VCPU, CPU, State, Time(s), hard affinity.
    let words: Vec<&str> = front.split_ascii_whitespace().collect();
    let [_name, domain, index, cpu, _state, _time, hard @ ..] = words.as_slice() else {
        return None;
    };
    Some(ListedVcpu {
        domain: domain.parse().ok()?,
        index: index.parse().ok()?,
        cpu: cpu.parse().ok().map(CpuId),
        hard: cpus(&hard.concat()),
        soft: cpus(soft.trim()),
    })
}

/// Parses `xl cpupool-list -c`: the name and the cpus of each pool, below a title.
pub fn cpupools(text: &str) -> Vec<(String, String)> {
    let pools = text.lines().skip(1).filter_map(|line| {
        let (name, cpus) = line.trim().split_once(char::is_whitespace)?;
        Some((name.to_owned(), cpus.trim().to_owned()))
    });
    pools.collect()
}

/// Parses a list such as `0-1,4`; `all` means no restriction.
fn cpus(text: &str) -> Option<CpuSet> {
    text.parse().ok().filter(|cpus: &CpuSet| !cpus.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIST: &str = "\
Name                                        ID   Mem VCPUs\tState\tTime(s) NODE Affinity
Domain-0                                     0  1024     2     r-----      80.3 all
d2                                           2   128     1     -b----      22.4 1-2
p3                                           3   128     1     --p---       0.0 3
gone                                         4   128     1     ---sc-       0.0
";
    const VCPUS: &str = "\
Name                                ID  VCPU   CPU State   Time(s) Affinity (Hard / Soft)
Domain-0                             0     0    3   -b-      46.7  all / all
d2                                   2     0    2   -b-      22.4  2-3,7 / 4-5
d2                                   2     1    -   --p       0.0  2-3 / all
";

    #[test]
    fn domains_and_vcpus_are_read_with_their_affinity() {
        let domains = read_list(LIST);
        assert_eq!(domains.len(), 4);
        assert_eq!((domains[3].nodes.as_ref(), &domains[3].state[..]), (None, "---sc-"));
        assert_eq!((domains[0].nodes.as_ref(), domains[0].memory_bytes), (None, 1 << 30));
        assert_eq!(domains[1].nodes.as_ref().unwrap().to_string(), "1,2");
        let vcpus = read_vcpus(VCPUS);
        assert_eq!(vcpus.len(), 3);
        assert_eq!((vcpus[0].cpu, vcpus[0].hard.as_ref()), (Some(CpuId(3)), None));
        assert_eq!(vcpus[1].hard.as_ref().unwrap().to_string(), "2,3,7");
        assert_eq!(vcpus[1].soft.as_ref().unwrap().to_string(), "4,5");
        assert_eq!(vcpus[2].cpu, None);
    }

    #[test]
    fn pools_are_read_with_their_cpus() {
        let text =
            "Name               CPU list\nPool-node0         0,1\nPool-node1         2,3\n\n";
        let pools = cpupools(text);
        assert_eq!(pools.len(), 2);
        assert_eq!(pools[1], ("Pool-node1".to_owned(), "2,3".to_owned()));
        assert_eq!(cpupools(""), []);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(?s)\\PC{0,200}", end in 0..VCPUS.len()) {
            let _ = (read_list(&text), read_vcpus(&text), read_vcpus(&VCPUS[..end]));
            let _ = cpupools(&text);
        }
    }
}
