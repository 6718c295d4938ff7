//! Weights of nodes for weighted interleaving, as settings of the kernel.

use numalab_host::{Classed, ErrorClass};
use numalab_topology::{Machine, NodeId, count, interleave_weights};

/// Weights of nodes for interleaving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weights {
    /// In proportion to the bandwidths of the machine's nodes.
    Auto,
    /// One weight for each node with memory, in order.
    Listed(Vec<u8>),
}

/// Reason why weights cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    #[error(
        "--weights auto: the firmware (HMAT) does not report the bandwidth of two nodes' memory; \
         measure it with numalab bandwidth, and give --weights such as 2,1"
    )]
    NoBandwidths,
    #[error(
        "--weights: {} for {} with memory, expected one for each",
        count(*given, "weight"),
        count(*nodes, "node")
    )]
    Count { given: usize, nodes: usize },
}

impl Classed for WeightsError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NoBandwidths => ErrorClass::Lacking,
            Self::Count { .. } => ErrorClass::BadInput,
        }
    }
}

impl std::str::FromStr for Weights {
    type Err = String;

    /// Reads `auto`, or weights from 1 to 255.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let weight = |item: &str| item.trim().parse::<u8>().ok().filter(|&weight| weight > 0);
        let listed: Option<Vec<u8>> = text.split(',').map(weight).collect();
        listed.map(Self::Listed).ok_or_else(|| {
            format!("`{text}`: expected auto, or a weight from 1 to 255 for each node, such as 2,1")
        })
    }
}

impl Weights {
    /// Returns a knob and its value for each node, `NAME=VALUE`.
    ///
    /// # Errors
    /// [`WeightsError`] if they are not known, or not one for each node.
    pub fn settings(&self, machine: &Machine) -> Result<Vec<String>, WeightsError> {
        let nodes: Vec<NodeId> = machine.memory_nodes().iter().collect();
        let weights: Vec<(NodeId, u64)> = match self {
            Self::Auto => interleave_weights(machine).ok_or(WeightsError::NoBandwidths)?,
            Self::Listed(listed) if listed.len() == nodes.len() => {
                nodes.into_iter().zip(listed.iter().map(|&weight| weight.into())).collect()
            }
            Self::Listed(listed) => {
                let (given, nodes) = (listed.len(), nodes.len());
                return Err(WeightsError::Count { given, nodes });
            }
        };
        let setting = |(node, weight)| format!("interleave_weight_node{node}={weight}");
        Ok(weights.into_iter().map(setting).collect())
    }
}

/// Removes `--weights` and its value from the words of numalab's own command.
pub fn without_weights(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.peekable();
    let mut is_ours = true;
    while let Some(word) = words.next() {
        is_ours &= word != "--";
        match word.strip_prefix("--weights") {
            Some("") if is_ours => drop(words.next()),
            Some(rest) if is_ours && rest.starts_with('=') => {}
            _ => kept.push(word),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_option_is_taken_away() {
        let words = "bind --weights auto --numa=0 --weights=2,1 -- a.out --weights auto";
        let kept = without_weights(words.split(' ').map(str::to_owned));
        assert_eq!(kept.join(" "), "bind --numa=0 -- a.out --weights auto");
    }

    #[test]
    fn a_node_without_a_weight_is_refused() {
        let machine = numalab_topology::UniformMachine::of_packages(1, 1, 1 << 30).build().unwrap();
        let settings = |text: &str| text.parse::<Weights>().unwrap().settings(&machine);
        assert_eq!(settings("3"), Ok(vec!["interleave_weight_node0=3".to_owned()]));
        assert_eq!(settings("2,1"), Err(WeightsError::Count { given: 2, nodes: 1 }));
        let said = settings("2,1").unwrap_err().to_string();
        assert!(said.starts_with("--weights: 2 weights for 1 node with memory"), "{said}");
        assert_eq!(settings("auto"), Err(WeightsError::NoBandwidths));
        assert!("0,1".parse::<Weights>().unwrap_err().contains("from 1 to 255"));
    }
}
