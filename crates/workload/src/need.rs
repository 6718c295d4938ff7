//! Requirements of a workload.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A program that must be installed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tool {
    pub program: String,
    /// Debian package; `None` for a user's own program.
    pub package: Option<String>,
    /// The arguments with which it prints its version; `None` if they are unknown.
    pub version_arguments: Option<Vec<String>>,
}

impl Tool {
    /// Creates the requirement of a program from a distribution's package.
    pub(crate) fn packaged(program: &str, package: &str, version: &str) -> Self {
        Self {
            program: program.to_owned(),
            package: Some(package.to_owned()),
            version_arguments: Some(vec![version.to_owned()]),
        }
    }

    /// Returns how to fix it if the program is missing.
    pub fn remedy(&self) -> String {
        match &self.package {
            Some(package) => format!("install it: apt-get install {package}"),
            None => format!("expected {} to be a program that can be started", self.program),
        }
    }

    /// Returns the version in a program's output, such as `sysbench 1.0.20 (using system LuaJIT
    /// 2.1.0-beta3)`: the first word that begins with a digit and has a dot, without a leading `v`
    /// or `v=`.
    pub fn version_in(text: &str) -> Option<&str> {
        text.split(|c: char| c.is_whitespace() || c == ',' || c == '=').find_map(|word| {
            let word = word.strip_prefix('v').unwrap_or(word);
            let begins = word.starts_with(|c: char| c.is_ascii_digit());
            (begins && word.contains('.')).then_some(word)
        })
    }
}

/// A requirement on the kernel or the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelNeed {
    /// Free huge pages of one size, at least this number.
    HugePages {
        /// Size of a page in KiB: 2,048 or 1,048,576.
        page_kib: u64,
        pages: u64,
    },
    /// At least this number of memory nodes.
    Nodes(u32),
}

impl fmt::Display for KernelNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HugePages { page_kib, pages } => {
                write!(f, "{pages} free huge pages of {page_kib} KiB")
            }
            Self::Nodes(count) => write!(f, "at least {count} memory nodes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_the_output_of_tools() {
        let said = [
            ("perf version 6.1.187\n", "6.1.187"),
            ("sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n", "1.0.20"),
            ("dbench version 4.00 - Copyright Andrew Tridgell 1999-2004\n", "4.00"),
            ("redis-benchmark 7.0.15\n", "7.0.15"),
            ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0\n", "7.0.15"),
            ("stress-ng, version 0.15.06 (gcc 12.2.0, x86_64 Linux 6.1)\n", "0.15.06"),
            ("numalab 0.1.0\n", "0.1.0"),
        ];
        for (text, version) in said {
            assert_eq!(Tool::version_in(text), Some(version), "{text}");
        }
        assert_eq!(Tool::version_in("no version here 7\n"), None);
    }

    #[test]
    fn a_missing_tool_names_its_package() {
        let tool = Tool::packaged("perf", "linux-perf", "--version");
        assert_eq!(tool.remedy(), "install it: apt-get install linux-perf");
    }
}
