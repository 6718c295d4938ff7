//! `xl list -n` and `xl vcpu-list`.

use crate::xen::event::VcpuPlace;

/// A domain in `xl list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainLine {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: u32,
    /// Its state: `r`, `b`, `p`, `s` (shut down), `c` (crashed), `d` and dashes.
    pub state: String,
    /// Its node affinity, with `-n`.
    pub nodes: String,
}

/// The domains of `xl list` or `xl list -n`.
#[must_use]
pub fn domain_list(text: &str) -> Vec<DomainLine> {
    text.lines().filter_map(domain_line).collect()
}

fn domain_line(line: &str) -> Option<DomainLine> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [name, id, _memory, _vcpus, state, _time, nodes @ ..] = &fields[..] else {
        return None;
    };
    Some(DomainLine {
        name: (*name).to_owned(),
        id: id.parse().ok()?,
        state: (*state).to_owned(),
        nodes: nodes.join(" "),
    })
}

/// The virtual cpus of `xl vcpu-list`, with the domain of each.
#[must_use]
pub fn vcpu_list(text: &str) -> Vec<(u32, VcpuPlace)> {
    text.lines().filter_map(vcpu_line).collect()
}

fn vcpu_line(line: &str) -> Option<(u32, VcpuPlace)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_name, id, vcpu, cpu, _state, _time, affinity @ ..] = &fields[..] else {
        return None;
    };
    let affinity = affinity.join(" ");
    let (hard, soft) = affinity.split_once(" / ")?;
    let place = VcpuPlace {
        vcpu: vcpu.parse().ok()?,
        cpu: cpu.parse().ok(),
        hard: hard.to_owned(),
        soft: soft.to_owned(),
    };
    Some((id.parse().ok()?, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_have_names_states_and_node_affinity() {
        let text = "\
Name                                        ID   Mem VCPUs	State	Time(s) NODE Affinity
Domain-0                                     0  1024     2     r-----      26.9 all
d3                                           3   128     1     --p---       0.0 2
gone                                         4   128     1     ---sc-       0.0
";
        let domains = domain_list(text);
        let seen: Vec<_> = domains.iter().map(|d| (d.id, &d.state[..], &d.nodes[..])).collect();
        assert_eq!(seen, [(0, "r-----", "all"), (3, "--p---", "2"), (4, "---sc-", "")]);
    }

    #[test]
    fn virtual_cpus_have_a_place_or_none_yet() {
        let text = "\
Name                                ID  VCPU   CPU State   Time(s) Affinity (Hard / Soft)
s3                                   2     0    6   ---       0.0  6-7 / 4-5
d2                                   5     1    -   --p       0.0  all / 0,2
";
        let cpus = vcpu_list(text);
        assert_eq!(cpus[0].0, 2);
        assert_eq!(
            (cpus[0].1.cpu, &cpus[0].1.hard[..], &cpus[0].1.soft[..]),
            (Some(6), "6-7", "4-5")
        );
        assert_eq!((cpus[1].1.vcpu, cpus[1].1.cpu), (1, None));
    }
}
