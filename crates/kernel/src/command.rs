//! The kernel's command line: words of the form `key=value`.

use alloc::string::String;
use alloc::vec::Vec;

use numalab_topology::CpuSet;

use crate::work::{Generator, Work};

/// The work requested from the kernel. [`Command::parse`] reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The allocator's use of nodes.
    pub alloc: Alloc,
    pub numa: Numa,
    /// The nodes that frames come from, with [`Alloc::Numa`].
    pub policy: Placement,
    /// The workloads, in order.
    pub work: Vec<Work>,
    /// Number of repetitions of a run.
    pub runs: u32,
    pub seed: u64,
    pub cpus: Cpus,
    /// Size in bytes of each thread's arena, of a chase, of a stream or of a guest; each workload
    /// has its own default.
    pub size_bytes: Option<u64>,
    /// Number of reads, loads or frames; each workload has its own default.
    pub count: Option<u64>,
    /// Number of threads of `test_numa`, or of guests of `guests`.
    pub threads: Option<u32>,
    /// The frames of an arena's pieces, as an exponent: 0 is 4 KiB, 9 is 2 MiB.
    pub order: u8,
    /// The source of `test_numa`'s random numbers.
    pub random: Generator,
    /// True if the heap is dumped at the end.
    pub dump_heap: bool,
    /// True if the reader draws the machine; it is always reported.
    pub show_topology: bool,
}

/// The allocator's use of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alloc {
    /// Nearest first.
    Numa,
    /// By number, like an allocator without knowledge of nodes.
    Blind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Numa {
    /// The nodes of the tables.
    On,
    /// One node.
    Off,
    /// This number of nodes, with equal parts.
    Equal(usize),
    Sizes(Vec<u64>),
}

/// The nodes that frames come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The cpu's own node, then the nearest ones.
    Local,
    /// This node, then those nearest to it.
    Preferred(u16),
    Exact(u16),
    Bind(Vec<u16>),
    /// All nodes in turn.
    Interleave,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cpus {
    All,
    /// This number, distributed over the nodes in turn.
    Count(usize),
    Listed(Vec<usize>),
}

/// Reasons why a command line is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("`{word}`: expected one of {}", KEYS.join("=, "))]
    Unknown { word: String },
    /// A value with the wrong form for its key.
    #[error("`{key}={value}`: expected {expected}")]
    Value { key: String, value: String, expected: &'static str },
}

pub const KEYS: [&str; 13] = [
    "alloc", "numa", "policy", "work", "runs", "seed", "cpus", "size", "count", "threads", "order",
    "rand", "dump=",
];

impl Default for Command {
    fn default() -> Self {
        Self {
            alloc: Alloc::Numa,
            numa: Numa::On,
            policy: Placement::Local,
            work: [Work::Chase].into(),
            runs: 20,
            seed: 1,
            cpus: Cpus::All,
            size_bytes: None,
            count: None,
            threads: None,
            order: 9,
            random: Generator::Inline,
            dump_heap: false,
            show_topology: false,
        }
    }
}

impl Command {
    /// Parses a command line; omitted keys have the values of [`Command::default`].
    ///
    /// # Errors
    /// [`CommandError`] with the first invalid word.
    pub fn parse(line: &str) -> Result<Self, CommandError> {
        let mut command = Self::default();
        for word in line.split_ascii_whitespace() {
            let unknown = || CommandError::Unknown { word: word.into() };
            let (key, value) = word.split_once('=').ok_or_else(unknown)?;
            if !KEYS.iter().any(|known| known.trim_end_matches('=') == key) {
                return Err(unknown());
            }
            command.set(key, value).map_err(|expected| CommandError::Value {
                key: key.into(),
                value: value.into(),
                expected,
            })?;
        }
        Ok(command)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        match key {
            "alloc" => self.alloc = alloc_of(value).ok_or("numa or blind")?,
            "numa" => self.numa = numa_of(value).ok_or("on, off, fake=N or fake=SIZE,SIZE")?,
            "policy" => {
                let expected = "local, preferred:N, exact:N, bind:N,N or interleave";
                self.policy = placement_of(value).ok_or(expected)?;
            }
            "work" => self.work = works_of(value).ok_or(Work::EXPECTED)?,
            "runs" => self.runs = number(value).filter(|&n| n > 0).ok_or("1 or more")?,
            "seed" => self.seed = number(value).ok_or("a number below 2^64")?,
            "cpus" => self.cpus = cpus_of(value).ok_or("all, a number, or a list such as 0,2-5")?,
            "size" => {
                let size = size_of(value).filter(|&size| size > 0);
                self.size_bytes = Some(size.ok_or("a size such as 64M or 4G")?);
            }
            "count" => {
                self.count = Some(count_of(value).ok_or("a number such as 20000000 or 20M")?);
            }
            "threads" => {
                let threads = number(value).filter(|&threads| threads > 0);
                self.threads = Some(threads.ok_or("1 or more")?);
            }
            "order" => {
                self.order = number(value).filter(|&n| n <= 18).ok_or("0 to 18")?;
            }
            "rand" => {
                self.random = match value {
                    "inline" => Generator::Inline,
                    "seed" => Generator::Shared,
                    _ => return Err("inline or seed"),
                }
            }
            _ => {
                for what in value.split(',') {
                    match what {
                        "heap" => self.dump_heap = true,
                        "topology" => self.show_topology = true,
                        _ => return Err("heap, topology, or both separated by a comma"),
                    }
                }
            }
        }
        Ok(())
    }
}

fn alloc_of(value: &str) -> Option<Alloc> {
    match value {
        "numa" => Some(Alloc::Numa),
        "blind" => Some(Alloc::Blind),
        _ => None,
    }
}

fn numa_of(value: &str) -> Option<Numa> {
    match value {
        "on" => return Some(Numa::On),
        "off" => return Some(Numa::Off),
        _ => {}
    }
    let nodes = value.strip_prefix("fake=")?;
    match number(nodes) {
        Some(0) => None,
        Some(count) => Some(Numa::Equal(count)),
        None => nodes.split(',').map(size_of).collect::<Option<_>>().map(Numa::Sizes),
    }
}

fn placement_of(value: &str) -> Option<Placement> {
    match value.split_once(':') {
        None if value == "local" => Some(Placement::Local),
        None if value == "interleave" => Some(Placement::Interleave),
        Some(("preferred", node)) => number(node).map(Placement::Preferred),
        Some(("exact", node)) => number(node).map(Placement::Exact),
        Some(("bind", nodes)) => {
            nodes.split(',').map(number).collect::<Option<_>>().map(Placement::Bind)
        }
        _ => None,
    }
}

fn works_of(value: &str) -> Option<Vec<Work>> {
    match value {
        "none" => Some(Vec::new()),
        _ => value.split(',').map(Work::of_name).collect(),
    }
}

/// Parses the cpus: a number is a count; anything else is a list.
fn cpus_of(value: &str) -> Option<Cpus> {
    if value == "all" {
        return Some(Cpus::All);
    }
    if let Some(count) = number::<usize>(value) {
        return (count > 0).then_some(Cpus::Count(count));
    }
    let listed: CpuSet = value.parse().ok()?;
    let listed: Vec<usize> = listed.iter().map(|cpu| cpu.0 as usize).collect();
    (!listed.is_empty()).then_some(Cpus::Listed(listed))
}

/// Parses a size in MiB, or with K, M, G, T (powers of 1024), alone or as KB or KiB, or in B.
fn size_of(value: &str) -> Option<u64> {
    let letters = value.strip_suffix(['B', 'b']);
    let unit = letters.map_or(value, |value| value.strip_suffix(['I', 'i']).unwrap_or(value));
    match unit.bytes().all(|byte| byte.is_ascii_digit()) {
        true if letters.is_some() => unit.parse().ok(),
        true => unit.parse::<u64>().ok()?.checked_mul(1 << 20),
        false => scaled(unit, 1024),
    }
}

/// Parses a count: plain, or with K, M, G, T (powers of 1000).
fn count_of(value: &str) -> Option<u64> {
    scaled(value, 1000)
}

fn scaled(value: &str, step: u64) -> Option<u64> {
    let powers = [('K', 1), ('M', 2), ('G', 3), ('T', 4)];
    let of_letter = |(letter, power): (char, u32)| {
        value.strip_suffix([letter, letter.to_ascii_lowercase()]).map(|digits| (digits, power))
    };
    let (digits, power) = powers.into_iter().find_map(of_letter).unwrap_or((value, 0));
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(step.pow(power))
}

/// Parses a number of any type, with code that all types share.
fn number<T: TryFrom<u64>>(value: &str) -> Option<T> {
    value.parse::<u64>().ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec;

    #[test]
    fn an_empty_line_gives_the_defaults() {
        assert_eq!(Command::parse(" ").unwrap(), Command::default());
    }

    #[test]
    fn every_key_is_understood() {
        let line = "alloc=blind numa=fake=1G,512m policy=bind:0,2 work=test_numa,storm runs=3 \
                    seed=7 cpus=0,2-3 size=4G count=20M threads=2 order=0 rand=seed dump=heap,topology";
        let expected = Command {
            alloc: Alloc::Blind,
            numa: Numa::Sizes(vec![1 << 30, 512 << 20]),
            policy: Placement::Bind(vec![0, 2]),
            work: vec![Work::TestNuma, Work::Storm],
            runs: 3,
            seed: 7,
            cpus: Cpus::Listed(vec![0, 2, 3]),
            size_bytes: Some(4 << 30),
            count: Some(20_000_000),
            threads: Some(2),
            order: 0,
            random: Generator::Shared,
            dump_heap: true,
            show_topology: true,
        };
        assert_eq!(Command::parse(line).unwrap(), expected);
        assert_eq!(Command::parse("numa=fake=4").unwrap().numa, Numa::Equal(4));
        assert_eq!(Command::parse("numa=off cpus=8").unwrap().cpus, Cpus::Count(8));
        assert_eq!(Command::parse("work=none").unwrap().work, []);
    }

    #[test]
    fn a_wrong_word_is_quoted_with_the_expected_form() {
        let message = |line: &str| Command::parse(line).unwrap_err().to_string();
        assert_eq!(message("alloc=both"), "`alloc=both`: expected numa or blind");
        assert_eq!(message("runs=0"), "`runs=0`: expected 1 or more");
        assert_eq!(message("size=4Q"), "`size=4Q`: expected a size such as 64M or 4G");
        assert_eq!(
            message("cpus=3-1"),
            "`cpus=3-1`: expected all, a number, or a list such as 0,2-5"
        );
        let unknown = message("quiet");
        assert!(unknown.starts_with("`quiet`: expected one of alloc=, numa=, "), "{unknown}");
        assert!(unknown.ends_with("rand=, dump="), "{unknown}");
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "([a-z]{1,8}=[0-9A-Za-z:,=-]{0,12} ?){0,4}") {
            let _ = Command::parse(&line);
        }

        #[test]
        fn no_value_of_a_known_key_panics(key in 0..KEYS.len(), value in "\\PC{0,12}") {
            let key = KEYS[key].trim_end_matches('=');
            let _ = Command::parse(&alloc::format!("{key}={value}"));
        }
    }
}
