//! Detects the features of a QEMU.

use std::process::Command;
use std::time::Duration;

use numalab_host::{CommandError, Interrupt, run_command};

const ASK_LIMIT: Duration = Duration::from_secs(20);

/// Optional features of a QEMU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// True if the program loads plugins (`-plugin`).
    pub plugins: bool,
    /// True if the program binds guest memory to host nodes (built with libnuma).
    pub host_nodes: bool,
    /// True if the program supports memory in sealed files (`memory-backend-memfd`), including huge
    /// pages.
    pub memfd: bool,
    /// Threads that preallocate memory can be kept on a node (`thread-context`).
    pub prealloc_context: bool,
}

impl Abilities {
    /// Queries the QEMU that `command` starts.
    ///
    /// # Errors
    /// [`CommandError`] if it cannot be run.
    pub fn ask(command: &dyn Fn() -> Command) -> Result<Self, CommandError> {
        let ask = |arguments: &[&str]| {
            let mut command = command();
            command.args(arguments);
            let ran = run_command(command, ASK_LIMIT, &Interrupt::never())?;
            Ok::<_, CommandError>(ran.stdout)
        };
        let memory = ask(&["-object", "memory-backend-ram,help"])?;
        let memfd = ask(&["-object", "memory-backend-memfd,help"])?;
        Ok(Self::of_answers(&ask(&["--help"])?, &memory, &memfd))
    }

    fn of_answers(help: &str, memory: &str, memfd: &str) -> Self {
        let has = |text: &str, option: &str| {
            let named = |line: &str| line.trim_start().starts_with(&format!("{option}="));
            text.lines().any(named)
        };
        Self {
            plugins: help.lines().any(|line| line.starts_with("-plugin ")),
            host_nodes: has(memory, "host-nodes"),
            memfd: has(memfd, "hugetlbsize"),
            prealloc_context: has(memory, "prealloc-context"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abilities_are_read_from_the_help_texts() {
        let help = "-pflash file    use 'file'\n-plugin [file=]<file>[,<argname>=<argvalue>]\n";
        let memory = "memory-backend-ram options:\n  host-nodes=<int>\n  \
                      prealloc-context=<link<thread-context>>\n";
        let found = Abilities::of_answers(help, memory, "  hugetlb=<bool>\n  hugetlbsize=<int>\n");
        let all =
            Abilities { plugins: true, host_nodes: true, memfd: true, prealloc_context: true };
        assert_eq!(found, all);
        assert_eq!(Abilities::of_answers("", "", ""), Abilities::default());
    }
}
