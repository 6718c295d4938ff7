//! The threads of a process: their cpus, their affinity, and the memory they touched.

use numalab_host::Root;
use numalab_host::proc::{Stat, allowed};
use numalab_record::explore::{BytesByNode, ThreadView};
use numalab_topology::{Machine, NodeId};

/// Returns every thread of the process, by number; those that end meanwhile are left out.
pub(super) fn read(root: &Root, process: u32, machine: &Machine) -> Vec<ThreadView> {
    let directory = format!("proc/{process}/task");
    let threads = root.numbered(&directory, "").into_iter();
    threads
        .filter_map(|thread| read_one(root, &format!("{directory}/{thread}"), thread, machine))
        .collect()
}

fn read_one(root: &Root, directory: &str, thread: u32, machine: &Machine) -> Option<ThreadView> {
    let stat = Stat::parse(&root.document(&format!("{directory}/stat")).ok()?)?;
    let status = root.document(&format!("{directory}/status")).unwrap_or_default();
    let sched = root.document(&format!("{directory}/sched")).unwrap_or_default();
    Some(ThreadView {
        thread,
        node: machine.cpu(stat.cpu).and_then(|cpu| cpu.node),
        name: stat.name,
        state: stat.state,
        cpu: stat.cpu,
        allowed: allowed(&status, "Cpus").unwrap_or_default(),
        cpu_ticks: stat.cpu_ticks,
        touched_pages: touched(&sched),
        remote_share: None,
    })
}

/// Parses `numa_faults node=0 task_private=3 task_shared=1 …` in `/proc/PID/sched`
/// (`kernel/sched/debug.c`): pages on the node that the thread itself touched.
fn touched(sched: &str) -> BytesByNode {
    let mut pages = BytesByNode::new();
    for line in sched.lines().filter_map(|line| line.strip_prefix("numa_faults ")) {
        let values: Vec<(&str, u64)> = line
            .split_ascii_whitespace()
            .filter_map(|word| word.split_once('='))
            .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
            .collect();
        let value = |name| values.iter().find(|(found, _)| *found == name).map(|(_, value)| *value);
        let node = value("node").and_then(|node| u32::try_from(node).ok());
        if let Some(node) = node {
            let own = value("task_private").unwrap_or(0);
            let count = own.saturating_add(value("task_shared").unwrap_or(0));
            let sum = pages.entry(NodeId(node)).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    pages.retain(|_, count| *count > 0);
    pages
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn touched_pages_are_counted_for_the_thread_by_node() {
        let sched = "\
mm->numa_scan_seq                            :                    3
numa_faults node=0 task_private=40 task_shared=8 group_private=900 group_shared=0
numa_faults node=1 task_private=0 task_shared=0 group_private=900 group_shared=0
numa_faults node=3 task_private=2 task_shared=0 group_private=0 group_shared=0
";
        assert_eq!(touched(sched), BytesByNode::from([(NodeId(0), 48), (NodeId(3), 2)]));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(?s)\\PC{0,200}") {
            let _ = touched(&text);
        }
    }
}
