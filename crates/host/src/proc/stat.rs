//! `/proc/PID/stat` (`proc_pid_stat(5)`).

use std::fs;

use numalab_topology::CpuId;

/// The fields used here of a process or thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Command name: at most 15 characters, any of them.
    pub name: String,
    /// State as printed by `ps`: R runs, S sleeps, D waits for a device, Z has ended.
    pub state: char,
    pub parent: u32,
    pub group: u32,
    /// Session id; 0 for kernel threads and process 1.
    pub session: u32,
    /// Cpu time so far, in ticks of the kernel (100 a second).
    pub cpu_ticks: u64,
    /// Cpu time of the children that the process has waited for, in ticks.
    pub children_ticks: u64,
    /// Start time, in ticks since boot.
    pub started_ticks: u64,
    /// The cpu that it runs on, or ran on last.
    pub cpu: CpuId,
}

impl Stat {
    /// Parses the line. The name is in parentheses and may hold any character.
    pub fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once('(')?;
        // The name may contain parentheses and spaces, so the last parenthesis ends it.
        let (name, rest) = rest.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The state, field 3 of proc_pid_stat(5), has index 0 here.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let small = |field: usize| u32::try_from(number(field)?).ok();
        Some(Self {
            name: name.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: small(4)?,
            group: small(5)?,
            session: small(6)?,
            cpu_ticks: number(14)?.saturating_add(number(15)?),
            children_ticks: number(16)?.saturating_add(number(17)?),
            started_ticks: number(22)?,
            cpu: CpuId(small(39)?),
        })
    }

    /// Reads a process's line, if it exists.
    pub fn of(process: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    /// Reads a thread's line, if it exists.
    pub fn of_thread(process: u32, thread: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).ok()?)
    }

    /// Reports whether the process is a zombie: it has ended, but its parent has not waited for it.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// Returns the numbers of all processes.
pub fn processes() -> impl Iterator<Item = u32> {
    numbers("/proc")
}

/// Returns the numbers of a process's threads.
pub fn threads(process: u32) -> impl Iterator<Item = u32> {
    numbers(&format!("/proc/{process}/task"))
}

/// Returns the living descendants of a process; none on a kernel that does not list children
/// (`CONFIG_PROC_CHILDREN`).
pub fn descendants(process: u32) -> impl Iterator<Item = u32> {
    let mut waiting = children(process);
    std::iter::from_fn(move || {
        let next = waiting.pop()?;
        waiting.extend(children(next));
        Some(next)
    })
}

/// Returns the processes that any thread of a process started.
fn children(process: u32) -> Vec<u32> {
    let of_thread = |thread| fs::read_to_string(format!("/proc/{process}/task/{thread}/children"));
    let lists = threads(process).filter_map(|thread| of_thread(thread).ok());
    let numbers = |list: String| list.split_whitespace().filter_map(|id| id.parse().ok()).collect();
    lists.flat_map(|list| -> Vec<u32> { numbers(list) }).collect()
}

fn numbers(directory: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAT: &str = "4242 (a) b (c) R 1 4240 4242 0 -1 4194304 100 0 0 0 150 50 3 4 20 0 3 0 \
        83399 1000 10 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 13 0 0 0 0 0 0 0 0 0 0 0 0 0";

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let expected = Stat {
            name: "a) b (c".to_owned(),
            state: 'R',
            parent: 1,
            group: 4240,
            session: 4242,
            cpu_ticks: 200,
            children_ticks: 7,
            started_ticks: 83399,
            cpu: CpuId(13),
        };
        assert_eq!(Stat::parse(STAT), Some(expected));
    }

    #[test]
    fn this_process_exists_and_runs() {
        let own = std::process::id();
        assert!(processes().any(|process| process == own));
        assert!(threads(own).any(|thread| thread == own));
        assert!(!Stat::of(own).unwrap().has_ended());
        assert_eq!(Stat::of_thread(own, own).unwrap().parent, Stat::of(own).unwrap().parent);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(?s)\\PC{0,200}", end in 0..STAT.len()) {
            let _ = (Stat::parse(&text), Stat::parse(&STAT[..end]));
        }
    }
}
