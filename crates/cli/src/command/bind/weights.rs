//! `numalab bind --policy weighted --weights ...`.

use std::process::ExitCode;

use numalab_host::{Root, read_machine};
use numalab_launch::bind::PolicyKind;
use numalab_topology::{Machine, NodeId, interleave_weights};

use super::become_command;
use crate::args::{BindArgs, Weights};
use crate::command::own::own_word;
use crate::failure::{Code, Failure};
use crate::output;

/// Becomes `numalab knobs run` with the weights, which then runs this command without `--weights`
/// and restores the old ones.
pub(super) fn run(args: &BindArgs, weights: &Weights) -> Result<ExitCode, Failure> {
    if args.policy != PolicyKind::Weighted {
        return Err(Failure::bad_input("--weights: expected --policy weighted as well"));
    }
    let machine = read_machine(&Root::live())?.machine;
    let settings = settings(&machine, weights)?;
    let own = own_word()?;
    let mut command = vec![own.clone(), "knobs".to_owned(), "run".to_owned()];
    command.extend(settings);
    command.extend(["--".to_owned(), own]);
    command.extend(without_weights(std::env::args().skip(1)));
    if args.dry_run {
        return output::print(&format!("{}\n", command.join(" "))).map(|()| ExitCode::SUCCESS);
    }
    become_command(&command)
}

/// Returns a knob and its value for each node.
fn settings(machine: &Machine, weights: &Weights) -> Result<Vec<String>, Failure> {
    let nodes: Vec<NodeId> = machine.memory_nodes().iter().collect();
    let weights: Vec<(NodeId, u64)> = match weights {
        Weights::Auto => interleave_weights(machine).ok_or_else(|| {
            Failure::new(
                Code::Lacking,
                "--weights auto: the firmware (HMAT) does not report the bandwidth of two nodes' \
                 memory; measure it with numalab bandwidth, and give --weights such as 2,1",
            )
        })?,
        Weights::Listed(listed) if listed.len() == nodes.len() => {
            nodes.into_iter().zip(listed.iter().map(|&weight| weight.into())).collect()
        }
        Weights::Listed(listed) => {
            return Err(Failure::bad_input(format!(
                "--weights: {} weights for {} nodes with memory, expected one for each",
                listed.len(),
                nodes.len()
            )));
        }
    };
    let setting = |(node, weight)| format!("interleave_weight_node{node}={weight}");
    Ok(weights.into_iter().map(setting).collect())
}

/// Removes `--weights` and its value from the words of this command.
fn without_weights(words: impl Iterator<Item = String>) -> Vec<String> {
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
}
