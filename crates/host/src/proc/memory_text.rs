//! Whether what `/proc` tells of a process's memory is all of it: where the process ends while its
//! file is read, the kernel ends the file too.

use std::fs::read_to_string;

/// Whether the process has memory: not when it is ending, or has ended.
#[must_use]
pub fn has_memory(process: u32) -> bool {
    // proc_pid_statm(5): the first number is the size of all.
    read_to_string(format!("/proc/{process}/statm")).is_ok_and(|text| !text.starts_with("0 "))
}

/// The text of a file of a process's memory (`maps`, `numa_maps`, `smaps`); `None` where the process
/// has none, or not in whole as it ended meanwhile.
#[must_use]
pub fn memory_text(process: u32, file: &str) -> Option<String> {
    let text = read_to_string(format!("/proc/{process}/{file}")).ok()?;
    has_memory(process).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;
    use crate::proc::Stat;

    #[test]
    fn a_process_that_has_ended_has_no_memory_even_before_it_is_waited_for() {
        let own = std::process::id();
        assert!(has_memory(own));
        assert!(memory_text(own, "maps").unwrap().contains("[stack]"));
        let mut child = Command::new("true").spawn().unwrap();
        while !Stat::of(child.id()).unwrap().has_ended() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!has_memory(child.id()));
        assert_eq!(memory_text(child.id(), "maps"), None);
        child.wait().unwrap();
        assert!(!has_memory(child.id()));
    }
}
