//! The order in which threads take a machine's cpus.

use std::str::FromStr;

use numalab_topology::{CpuId, CpuSet, Machine};

/// The cpus that threads take in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadPlacement {
    /// Round robin over the nodes.
    Spread,
    /// All cpus of a node before those of the next.
    Pack,
    Cpus(Vec<CpuId>),
}

impl FromStr for ThreadPlacement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cpus = || text.split(',').map(str::parse::<CpuSet>).collect::<Result<Vec<_>, _>>();
        match text {
            "spread" => Ok(Self::Spread),
            "pack" => Ok(Self::Pack),
            _ => cpus()
                .map(|parts| Self::Cpus(parts.iter().flat_map(CpuSet::iter).collect()))
                .map_err(|error| {
                    format!("{error}; expected spread, pack or a list of cpus such as 0-3,8")
                }),
        }
    }
}

impl ThreadPlacement {
    /// Returns the positions of the cpus among those that are online.
    ///
    /// # Errors
    /// A sentence for a cpu that the machine does not have.
    pub fn cpus(&self, machine: &Machine) -> Result<Vec<usize>, String> {
        let online = machine.cpus.iter().filter(|cpu| cpu.online);
        let (cpus, nodes): (Vec<CpuId>, Vec<_>) = online.map(|cpu| (cpu.id, cpu.node)).unzip();
        Ok(match self {
            Self::Pack => {
                let mut order: Vec<usize> = (0..cpus.len()).collect();
                order.sort_by_key(|at| nodes[*at]);
                order
            }
            Self::Spread => in_turn(&nodes),
            Self::Cpus(wanted) => {
                let position = |cpu: &CpuId| cpus.iter().position(|id| id == cpu);
                let unknown = |cpu| format!("no cpu {cpu} on a machine of {} cpus", cpus.len());
                let found = wanted.iter().map(|cpu| position(cpu).ok_or_else(|| unknown(cpu)));
                found.collect::<Result<_, _>>()?
            }
        })
    }
}

/// Returns positions of cpus in turn by owner (a node, for example): the first one of each, then
/// the second ones, and so on.
pub fn in_turn<Of: Copy + Ord>(of: &[Of]) -> Vec<usize> {
    let turn = |cpu: usize| of[..cpu].iter().filter(|before| **before == of[cpu]).count();
    let mut order: Vec<usize> = (0..of.len()).collect();
    order.sort_by_key(|cpu| (turn(*cpu), of[*cpu]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_placed_by_word_or_by_list() {
        assert_eq!("pack".parse(), Ok(ThreadPlacement::Pack));
        let cpus = [4, 0, 1].map(CpuId).to_vec();
        assert_eq!("4,0-1".parse(), Ok(ThreadPlacement::Cpus(cpus)));
        let error = "everywhere".parse::<ThreadPlacement>().unwrap_err();
        assert!(error.contains("expected spread, pack or a list"), "{error}");
    }

    #[test]
    fn nodes_take_turns_until_the_larger_one_is_alone() {
        assert_eq!(in_turn(&[0, 0, 0, 1]), [0, 3, 1, 2]);
        assert_eq!(in_turn::<usize>(&[]), [] as [usize; 0]);
    }
}
