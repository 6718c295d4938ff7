//! The tools that numalab knows: their command lines, packages and metrics.

mod entries;
pub(crate) mod needs;

use crate::need::Tool;
use crate::reader::Reader;
use crate::workload::{Service, Workload};

/// A tool of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name in studies: `perf-sched-pipe`.
    pub name: &'static str,
    /// What it measures, in a few words.
    pub summary: &'static str,
    /// The command line before the arguments.
    pub command: &'static [&'static str],
    /// The arguments if the user gives none.
    pub arguments: &'static [&'static str],
    /// The command line after the arguments.
    pub end: &'static [&'static str],
    /// The metrics that matter if the user names none; all if empty.
    pub metrics: &'static [&'static str],
    /// After how many seconds it has failed.
    pub timeout_s: u64,
    kind: Kind,
}

/// Which program a tool is, which decides what is installed and how output is read.
#[derive(Clone, Copy, Debug)]
enum Kind {
    PerfOperations { option: &'static str, usual: u64 },
    PerfTime,
    PerfMemory,
    PerfWakeups,
    PerfAverage,
    PerfNuma,
    Sysbench,
    Dbench,
    Redis,
    StressNg,
    Numalab,
}

/// All tools.
#[must_use]
pub fn all() -> &'static [Entry] {
    &entries::ENTRIES
}

/// The tool of this name.
#[must_use]
pub fn entry(name: &str) -> Option<&'static Entry> {
    all().iter().find(|entry| entry.name == name)
}

/// The names of all tools.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().iter().map(|entry| entry.name)
}

impl Entry {
    /// The Debian packages that have its programs.
    #[must_use]
    pub fn packages(&self) -> Vec<&'static str> {
        self.kind.programs().iter().map(|(_, package, _)| *package).collect()
    }

    /// The workload with these arguments, or the usual ones.
    pub(crate) fn workload(&self, name: String, arguments: Option<&[String]>) -> Workload {
        let usual: Vec<String> = self.arguments.iter().map(|word| (*word).to_owned()).collect();
        let arguments = arguments.unwrap_or(&usual);
        let fixed = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let command: Vec<String> =
            [fixed(self.command), arguments.to_vec(), fixed(self.end)].concat();
        let tool = |&(program, package, version): &_| Tool::packaged(program, package, version);
        Workload {
            name,
            service: self.kind.service(),
            timeout_s: self.timeout_s,
            tools: self.kind.programs().iter().map(tool).collect(),
            kernel_needs: needs::of(&command),
            wanted: self.metrics.iter().map(|metric| (*metric).to_owned()).collect(),
            reader: self.kind.reader(arguments),
            command,
        }
    }
}

impl Kind {
    /// Program, package and the argument that makes it tell its version.
    fn programs(self) -> &'static [(&'static str, &'static str, &'static str)] {
        match self {
            Self::Sysbench => &[("sysbench", "sysbench", "--version")],
            Self::Dbench => &[("dbench", "dbench", "--help")],
            Self::Redis => &[
                ("redis-server", "redis-server", "--version"),
                ("redis-benchmark", "redis-tools", "--version"),
                ("redis-cli", "redis-tools", "--version"),
            ],
            Self::StressNg => &[("stress-ng", "stress-ng", "--version")],
            Self::Numalab => &[],
            _ => &[("perf", "linux-perf", "--version")],
        }
    }

    fn service(self) -> Option<Service> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        // A socket needs no free port; nothing is saved.
        const SERVER: [&str; 9] = [
            "redis-server",
            "--port",
            "0",
            "--unixsocket",
            "{scratch}/redis.sock",
            "--dir",
            "{scratch}",
            "--save",
            "",
        ];
        const READY: [&str; 5] = ["redis-cli", "-e", "-s", "{scratch}/redis.sock", "ping"];
        matches!(self, Self::Redis).then(|| Service {
            command: words(&SERVER),
            ready: words(&READY),
            ready_within_s: 60,
        })
    }

    fn reader(self, arguments: &[String]) -> Reader {
        match self {
            Self::PerfOperations { option, usual } => {
                let given = needs::option(arguments, &[option, "--loop"]);
                Reader::PerfOperations(given.and_then(|text| text.parse().ok()).unwrap_or(usual))
            }
            Self::PerfTime => Reader::PerfTime,
            Self::PerfMemory => Reader::PerfMemory,
            Self::PerfWakeups => Reader::PerfWakeups,
            Self::PerfAverage => Reader::PerfAverage,
            Self::PerfNuma => Reader::PerfNuma,
            Self::Sysbench => Reader::Sysbench,
            Self::Dbench => Reader::Dbench,
            Self::Redis => Reader::RedisBenchmark,
            Self::StressNg => Reader::StressNg,
            Self::Numalab => Reader::Numalab,
        }
    }
}
