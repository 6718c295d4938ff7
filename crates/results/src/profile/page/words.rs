//! Profile sources, their limits, and the reasons why others were not usable, in words.

use numalab_page::number::{figure, share_words, trimmed};
use numalab_record::profile::{
    CannotSee, Ended, FaultsSeen, Hindrance, Profile, ProfileSource, SamplingUnit, Target,
};

pub(super) fn counted(source: &ProfileSource) -> &'static str {
    match source {
        ProfileSource::Samples { .. } => "samples",
        ProfileSource::Emulation { .. } => "accesses",
        ProfileSource::Faults { .. } => "page faults",
        ProfileSource::Damon { .. } | ProfileSource::Referenced { .. } => "page uses",
    }
}

pub(super) fn source_name(source: &ProfileSource) -> String {
    match source {
        ProfileSource::Samples { unit, .. } => unit_name(*unit),
        ProfileSource::Emulation { .. } => "emulation",
        ProfileSource::Faults { .. } => "page faults",
        ProfileSource::Damon { .. } => "DAMON",
        ProfileSource::Referenced { .. } => "referenced bits",
    }
    .to_owned()
}

fn unit_name(unit: SamplingUnit) -> &'static str {
    match unit {
        SamplingUnit::Pebs => "PEBS samples",
        SamplingUnit::Ibs => "IBS samples",
    }
}

/// Returns the definition of one counted event.
pub(super) fn unit_is(source: &ProfileSource) -> String {
    match source {
        ProfileSource::Samples { .. } => "a sample of all accesses".to_owned(),
        ProfileSource::Emulation { one_in: 0 | 1 } => "every access".to_owned(),
        ProfileSource::Emulation { one_in } => format!("one access in {one_in}, scaled"),
        ProfileSource::Faults { balancing: true } => "first touches and NUMA balancing".to_owned(),
        ProfileSource::Faults { balancing: false } => "first touches".to_owned(),
        ProfileSource::Damon { .. } | ProfileSource::Referenced { .. } => {
            "pages in use, scan by scan".to_owned()
        }
    }
}

/// Returns a sentence about the source of the figures.
pub(super) fn source_sentence(profile: &Profile) -> String {
    match &profile.source {
        ProfileSource::Samples { unit, events, taken, lost, throttled } => {
            let events: Vec<String> = events
                .iter()
                .map(|event| format!("{} (one in {})", event.event, event.period))
                .collect();
            let mut text = format!(
                "{}: {taken}, on the events {}. Shares are shares of samples.",
                unit_name(*unit),
                events.join(" and ")
            );
            if *lost > 0 {
                text.push_str(&format!(" {lost} records were lost."));
            }
            if *throttled > 0 {
                text.push_str(&format!(" The kernel paused sampling {throttled} times."));
            }
            text
        }
        ProfileSource::Emulation { .. } => {
            "Every access of the program, run in QEMU's user mode on an emulated machine: times \
             are that machine's."
                .to_owned()
        }
        ProfileSource::Faults { balancing } => faults_sentence(*balancing, profile.faults),
        ProfileSource::Damon { sample_us, rounds } => format!(
            "DAMON, the kernel's data access monitor: it checked each part of memory every {} ms, \
             and was read {rounds} times.",
            trimmed(*sample_us as f64 / 1e3)
        ),
        ProfileSource::Referenced { rounds, interval_ns, soft_dirty } => {
            let written = if *soft_dirty { ", and soft-dirty bits for those written" } else { "" };
            format!(
                "Referenced bits: {rounds} scans, one every {}, for the pages of each mapping \
                 used since the last one{written}. Pages of libraries and other files that other \
                 processes map too are left out: their bits do not show who used them.",
                time(*interval_ns)
            )
        }
    }
}

fn faults_sentence(balancing: bool, faults: Option<FaultsSeen>) -> String {
    let FaultsSeen { seen, again, lost } = faults.unwrap_or_default();
    let first = seen.saturating_sub(again);
    let again = match balancing {
        true => format!(
            "{again} on present pages, most of them unmapped by NUMA balancing: periodic samples \
             of page use"
        ),
        false => format!("{again} on pages already present"),
    };
    let lost = if lost > 0 { format!(" {lost} more were lost.") } else { String::new() };
    format!("Page faults: {first} first touches, and {again}.{lost}")
}

pub(super) fn cannot_words(of: &CannotSee) -> String {
    match of {
        CannotSee::LaterAccesses => "accesses to a page after the first one".to_owned(),
        CannotSee::HowOften => {
            "how often a page is used, only whether it was since the last scan".to_owned()
        }
        CannotSee::LoadsFromStores => "whether an access is a load or a store".to_owned(),
        CannotSee::Threads => "which threads use which memory, and from which node".to_owned(),
        CannotSee::FastLoads { cycles } => {
            format!("loads of fewer than {cycles} cycles, which hit in caches")
        }
        CannotSee::Waiting => "the time spent waiting for memory".to_owned(),
        CannotSee::HeapSites => "which malloc calls allocated parts of the heap".to_owned(),
        CannotSee::CallsWithoutFramePointers => {
            "callers in code that was compiled without frame pointers".to_owned()
        }
        CannotSee::FirstTouches => "the code and thread of first touches".to_owned(),
        CannotSee::FaultsInKernel => {
            "first touches by the kernel on the program's behalf, as in read(2)".to_owned()
        }
        CannotSee::Before => "memory touched before profiling began".to_owned(),
        CannotSee::PageNodes { reason } => format!("the nodes of single pages ({reason})"),
        CannotSee::SharesOfMappings => {
            "which of adjacent regions was used, if the kernel joins them to one mapping (their \
             uses are divided by resident memory)"
                .to_owned()
        }
        CannotSee::PagesBeyond { most } => format!("single pages beyond the first {most}"),
        CannotSee::ThisMachine => "this machine's own caches, memory and kernel".to_owned(),
    }
}

/// Returns the reason why a source was not usable, and the fix.
pub fn hindrance_words(of: &Hindrance) -> String {
    match of {
        Hindrance::NoPmu => {
            "the kernel reports no performance monitoring unit, as in most virtual \
                             machines"
                .to_owned()
        }
        Hindrance::NoMemoryEvents { units } => {
            format!("no unit has events with data addresses ({})", units.join(", "))
        }
        Hindrance::UnreadForm { unit } => {
            format!("numalab cannot read the sample format of {unit}")
        }
        Hindrance::PerfParanoid { level } => format!(
            "kernel.perf_event_paranoid is {level}: run as root, or sysctl \
             kernel.perf_event_paranoid=2"
        ),
        Hindrance::PerfRefused { reason } => format!(
            "perf_event_open(2): {reason}; a system call filter, as in containers, may block it"
        ),
        Hindrance::TooFewFiles { limit } => format!(
            "each thread needs file descriptors on each cpu, and the limit is {limit}: raise \
             ulimit -n"
        ),
        Hindrance::OneNode => "the machine has one node: NUMA balancing does nothing".to_owned(),
        Hindrance::BalancingOff => {
            "NUMA balancing is off: sysctl kernel.numa_balancing=1 as root".to_owned()
        }
        Hindrance::NoBalancing => "the kernel is built without NUMA balancing".to_owned(),
        Hindrance::RunsAlready => "a running process cannot be emulated".to_owned(),
        Hindrance::HasToEnd => {
            "the emulator reports only when the program ends, not after --for".to_owned()
        }
        Hindrance::NoEmulation { reason } => reason.clone(),
        Hindrance::NoDamon => "the kernel has no DAMON, or no files for it in sysfs".to_owned(),
        Hindrance::DamonWithoutProcesses { operations } => format!(
            "DAMON cannot watch processes here (it needs CONFIG_DAMON_VADDR), only {}",
            operations.join(", ")
        ),
        Hindrance::DamonUnavailable { reason } => format!("DAMON: {reason}"),
        Hindrance::NoReferencedBits { reason } => format!("/proc/PID/clear_refs: {reason}"),
    }
}

pub(super) fn ended(profile: &Profile) -> String {
    let command = matches!(profile.target, Target::Command(_));
    match profile.ended {
        Ended::Exited(0) => "exited".to_owned(),
        Ended::Exited(code) => format!("exited with {code}"),
        Ended::Signalled(signal) => format!("ended by signal {signal}"),
        Ended::ProcessEnded => "until the process ended".to_owned(),
        Ended::TimeOver if command => "then ended".to_owned(),
        Ended::TimeOver => "and it still ran".to_owned(),
        Ended::Interrupted => "interrupted".to_owned(),
    }
}

/// Formats a share as a percentage: `12.3 %`.
pub(super) fn percent(share: f64) -> String {
    share_words(share)
}

/// Formats a time: `850 ms`, `1.24 s`.
pub(super) fn time(nanoseconds: u64) -> String {
    match nanoseconds {
        0..1_000_000_000 => format!("{} ms", figure(nanoseconds as f64 / 1e6)),
        _ => format!("{} s", figure(nanoseconds as f64 / 1e9)),
    }
}

/// Formats a count in few characters.
pub(super) fn short_count(count: u64) -> String {
    let count = count as f64;
    match count {
        count if count >= 1e9 => format!("{}·10⁹", figure(count / 1e9)),
        count if count >= 1e6 => format!("{}·10⁶", figure(count / 1e6)),
        count => format!("{count:.0}"),
    }
}

/// Returns remarks that the user needs in every format.
pub fn remarks(profile: &Profile) -> Vec<String> {
    let left = (!profile.left.is_empty()).then(|| {
        let left = profile.left.join(", ");
        format!(
            "the command left {left} running, now terminated: profile a daemon in the foreground, \
             or by --pid"
        )
    });
    let why = match profile.ended {
        Ended::Interrupted => Some("interrupted"),
        Ended::TimeOver if matches!(profile.target, Target::Command(_)) => {
            Some("the time limit was reached, and the command was terminated")
        }
        Ended::ProcessEnded => Some("the process has ended"),
        Ended::TimeOver | Ended::Exited(_) | Ended::Signalled(_) => None,
    };
    let until = why.map(|why| format!("{why}; the report covers the time until then"));
    left.into_iter().chain(until).collect()
}
