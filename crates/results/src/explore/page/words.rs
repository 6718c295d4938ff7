//! Problems of current memory placement in words.

use numalab_page::number::{count, share_words, size_words};
use numalab_record::explore::{HugePageMode, Unseen};
use numalab_topology::NodeSet;

use crate::explore::{
    ExploreFinding, GuestProblem, HeapProblem, NodesProblem, Obstacle, Problem, ProblemPlace,
    ProcessProblem, RanksProblem, Touched,
};

/// Returns a finding as a sentence without its full stop, with the reason if there is no remedy.
pub(super) fn sentence(finding: &ExploreFinding) -> String {
    let said = problem(finding);
    match &finding.what.obstacle {
        Some(found) => format!("{said}; no remedy: {}", obstacle(found)),
        None => said,
    }
}

fn obstacle(found: &Obstacle) -> String {
    let nodes_of = |nodes: &NodeSet| match nodes.len() {
        1 => format!("node {nodes} has"),
        _ => format!("nodes {nodes} have"),
    };
    match found {
        Obstacle::NoRoom { nodes, left_bytes: 0, .. } => format!("{} no room", nodes_of(nodes)),
        Obstacle::NoRoom { nodes, needed_bytes, left_bytes } => format!(
            "{} room for {}, not for {}",
            nodes_of(nodes),
            size_words(*left_bytes),
            size_words(*needed_bytes)
        ),
        Obstacle::FewHugePages { node, page_bytes, needed, free } => format!(
            "node {node} has {free} free huge pages of {}, and {needed} would move there",
            size_words(*page_bytes)
        ),
        Obstacle::NoMemory { nodes } => format!("{} no memory", nodes_of(nodes)),
        Obstacle::OfSegment { segment } => {
            format!("most of it is shared memory {segment}, which other processes may use too")
        }
        Obstacle::FewCpus { node, cpus, vcpus } => {
            format!("node {node} has {} for {}", count(*cpus, "cpu"), count(*vcpus, "vCPU"))
        }
        Obstacle::LittleCache { node, cache_bytes } => {
            format!("node {node} has only {} of page cache to reclaim", size_words(*cache_bytes))
        }
        Obstacle::WithoutCpus { node } => {
            format!("node {node} has no cpus, so its memory belongs to a device or is slower")
        }
    }
}

fn problem(finding: &ExploreFinding) -> String {
    match &finding.what.problem {
        Problem::Nodes(problem) => of_nodes(problem),
        Problem::Process(problem) => of_process(problem, &finding.evidence),
        Problem::Guest(problem) => of_guest(problem, &finding.evidence),
        Problem::Ranks(problem) => of_ranks(problem),
        Problem::Heap(problem) => of_heap(problem),
    }
}

fn of_nodes(problem: &NodesProblem) -> String {
    match problem {
        NodesProblem::NodeFull { node, total_bytes, available_share, roomy, roomy_share } => {
            format!(
                "node {node} has {} of its {} left, page cache included, while node {roomy} has {}: \
             new memory spills over to other nodes",
                share_words(*available_share),
                size_words(*total_bytes),
                share_words(*roomy_share)
            )
        }
        NodesProblem::AllocationsElsewhere { node, pages_per_s, share, unused_pool } => {
            let unused = unused_pool.map_or_else(String::new, |pool| {
                let bytes = size_words(pool.unused_bytes);
                format!("; {bytes} of its memory is in unused reserved huge pages")
            });
            format!(
                "{pages_per_s:.0} pages per second requested from node {node} go elsewhere, {} of \
                 all requests{unused}",
                share_words(*share)
            )
        }
        NodesProblem::FreeMemoryScattered {
            node,
            free_bytes,
            share,
            huge_page_bytes,
            movable_share,
        } => {
            let movable = movable_share.map_or_else(String::new, |share| {
                format!("; compaction can move {} of its pageblocks", share_words(share))
            });
            format!(
                "node {node} has {} free, but {} of it is in pieces smaller than a huge page of \
                 {}{movable}",
                size_words(*free_bytes),
                share_words(*share),
                size_words(*huge_page_bytes)
            )
        }
        NodesProblem::NoReservedPages { node, page_bytes, elsewhere } => format!(
            "all {elsewhere} reserved huge pages of {} are on nodes other than {node}: programs on \
             node {node} get remote ones or none",
            size_words(*page_bytes)
        ),
    }
}

fn of_process(problem: &ProcessProblem, evidence: &[ProblemPlace]) -> String {
    match problem {
        ProcessProblem::ThreadsRemote { node, home, share, touched } => {
            let what = match touched {
                Touched::ByThese => "the memory touched from there",
                Touched::ByOnlyThread => "the memory it touched",
                Touched::ByProcess => "the process's own memory",
            };
            let (who, share) = (threads(evidence), share_words(*share));
            format!("{who} on node {node}; {share} of {what} is on node {home}")
        }
        ProcessProblem::BoundApart { nodes, bytes } => format!(
            "{} is bound to node {nodes} by the program's own policy (mbind or set_mempolicy), \
             but no thread runs there: it stays there until the program, or its wrapper, changes \
             the policy",
            size_words(*bytes)
        ),
        ProcessProblem::FewHugePages { anonymous_bytes, share, mode } => {
            few_huge_pages(*anonymous_bytes, *share, *mode)
        }
        ProcessProblem::DeviceRemote { device, device_kind, near, nodes, .. } => {
            let which = if nodes.len() == 1 { "node" } else { "nodes" };
            format!(
                "{device} ({device_kind}), which it has open, is near node {near}, but its \
                 threads run on {which} {nodes}"
            )
        }
        ProcessProblem::SegmentCrowds { segment, bytes, nodes, share, roomy } => {
            let (which, have) = match nodes.len() {
                1 => ("node", "has"),
                _ => ("nodes", "have at most"),
            };
            format!(
                "shared memory {segment} of {} is on {which} {nodes}, where it was first touched \
                 and which {have} {} left, so that memory requested there comes from other \
                 nodes, or the program is killed; there is room on {roomy}",
                size_words(*bytes),
                share_words(*share)
            )
        }
        ProcessProblem::FileRemote { file, bytes, home, share, nodes } => {
            let which = if nodes.len() == 1 { "node" } else { "nodes" };
            format!(
                "{} of {file} is in memory, {} of it on node {home}, where it was first read, but \
                 the threads run on {which} {nodes}",
                size_words(*bytes),
                share_words(*share)
            )
        }
        ProcessProblem::UnknownNodes { nodes, bytes } => format!(
            "{} of its memory is on node {nodes}, which the machine does not have: the files are of \
             different machines, so its placement is not judged",
            size_words(*bytes)
        ),
        ProcessProblem::SwappedOut { bytes, share } => format!(
            "{} of its memory ({}) is swapped out; it is swapped in on the node of the thread \
             that touches it",
            share_words(*share),
            size_words(*bytes)
        ),
    }
}

/// Describes threads as a subject: `thread 12 runs`, `threads 12 and 13 run`.
fn threads(evidence: &[ProblemPlace]) -> String {
    let numbers = evidence.iter().filter_map(|place| match place {
        ProblemPlace::Thread(number) => Some(number),
        _ => None,
    });
    match numbers.collect::<Vec<_>>().as_slice() {
        [] => "threads run".to_owned(),
        [thread] => format!("thread {thread} runs"),
        [first, second] => format!("threads {first} and {second} run"),
        [first, rest @ ..] => format!("thread {first} and {} more run", rest.len()),
    }
}

fn few_huge_pages(anonymous_bytes: u64, share: f64, mode: HugePageMode) -> String {
    let why = match mode {
        HugePageMode::Madvise => {
            "; transparent huge pages are on only for programs that request \
             them (madvise)"
        }
        HugePageMode::Never => "; transparent huge pages are off",
        HugePageMode::Always => {
            ", although transparent huge pages are on: memory may be \
             fragmented"
        }
    };
    format!(
        "{} of its {} of anonymous memory is on huge pages: {} pages of 4 KiB where {} of 2 MiB \
         would do, so random access walks page tables (to measure the cost of a walk here: \
         numalab latency --size {}M --pattern random --pages 4k, then --pages thp){why}",
        share_words(share),
        size_words(anonymous_bytes),
        anonymous_bytes >> 12,
        anonymous_bytes.div_ceil(2 << 20),
        anonymous_bytes >> 20,
    )
}

fn of_guest(problem: &GuestProblem, evidence: &[ProblemPlace]) -> String {
    let GuestProblem::VcpusRemote { guest, vcpus, nodes, home, share, cpus_as_string } = problem;
    let who = match evidence {
        [ProblemPlace::Vcpu(only)] => format!("vCPU {only} runs"),
        many => format!("{} of its {vcpus} vCPUs run", many.len()),
    };
    let where_ = if nodes.len() == 1 { "node" } else { "nodes" };
    let share = share_words(*share);
    let lies = match home {
        Some(home) => format!("{share} of the guest's memory is on node {home}"),
        None => format!("{share} of their guest node's memory is elsewhere"),
    };
    let why = match cpus_as_string {
        true => ": libxl ignores cpus given as a string when it places memory",
        false => "",
    };
    format!("guest {guest}: {who} on {where_} {nodes}; {lies}{why}")
}

fn of_ranks(problem: &RanksProblem) -> String {
    match problem {
        RanksProblem::CpusShared { cpus, threads, ranks } => {
            let which = if cpus.len() == 1 { "cpu" } else { "cpus" };
            let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
            let of = if ranks.len() == 1 { "rank" } else { "ranks" };
            format!(
                "{threads} threads of {of} {} are all bound to {which} {cpus}",
                ranks.join(", ")
            )
        }
        RanksProblem::RankRemote { rank, home, share } => format!(
            "rank {rank}: {} of its own memory is remote to its threads, most of it on node {home}",
            share_words(*share)
        ),
    }
}

fn of_heap(problem: &HeapProblem) -> String {
    match problem {
        HeapProblem::HeapNodeFull { node, free_share, roomy, roomy_share } => format!(
            "node {node} has {} free while node {roomy} has {}: allocations for it fall back to \
             other nodes",
            share_words(*free_share),
            share_words(*roomy_share)
        ),
        HeapProblem::HeapScattered { node, share } => format!(
            "{} of the free memory of node {node} is in pieces smaller than 2 MiB: requests for \
             huge pages fall back or fail",
            share_words(*share)
        ),
        HeapProblem::HeapFreeExceeds { node, free_bytes, managed_bytes } => format!(
            "node {node} has {} free of {}: the dump is damaged; take it again",
            size_words(*free_bytes),
            size_words(*managed_bytes)
        ),
        HeapProblem::DomainIncomplete { domain, share } => format!(
            "domain {domain}: the dump gives the nodes of only {} of its memory, because Xen \
             limits the rate of its console and lines were lost: take it again",
            share_words(*share)
        ),
        HeapProblem::DomainSpread { domain, node, share } => format!(
            "domain {domain} spans several nodes: {} of its memory is on node {node}",
            share_words(*share)
        ),
    }
}

/// Describes what could not be read, and who could read it.
pub(super) fn unseen(unseen: &Unseen) -> String {
    match unseen {
        Unseen::Pageblocks => "the share of memory that compaction can move: only root can read \
             it (/proc/pagetypeinfo)"
            .to_owned(),
        Unseen::NodeMemory { nodes } => format!(
            "the size or free memory of node {nodes}: its file meminfo has no MemTotal or no MemFree"
        ),
        Unseen::PageSample { reason } => format!("no pages were sampled: {reason}"),
        Unseen::SumsByMapping { pages } => {
            format!(
                "exact sums: without numa_maps they are estimated from {pages} pages of \
                 move_pages(2)"
            )
        }
        Unseen::TouchedByThread => "the memory that each thread touches: the kernel does not \
             sample memory placed by a policy"
            .to_owned(),
        Unseen::HugePagesByMapping { most_mappings } => format!(
            "huge pages by mapping: with more than {most_mappings} mappings only their total is \
             shown"
        ),
        Unseen::GuestOfAnotherUser { guest, process } => format!(
            "guest {guest}: the kernel denies access to process {process}: sudo numalab explore \
             --guests (in a container: docker run --cap-add SYS_PTRACE)"
        ),
        Unseen::EnvironmentsOfOthers { processes } => format!(
            "whether some processes are ranks ({processes}, to which the kernel denies access): sudo \
             numalab explore --ranks (in a container: docker run --cap-add SYS_PTRACE)"
        ),
        Unseen::VcpuThreads { guest } => format!(
            "which threads of guest {guest} are its vCPUs: QEMU names them with -name \
             {guest},debug-threads=on"
        ),
        Unseen::NodesOfDomains => {
            "the nodes of the domains' memory: Xen runs with numa=off, or rejected the firmware's \
             tables (xl dmesg | grep -i -e numa -e srat); boot it with numa=on"
                .to_owned()
        }
    }
}
