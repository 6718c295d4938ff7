//! Reads files of a process's memory completely: the kernel truncates such a file if the process
//! ends while it is read.

use std::fs::read_to_string;

/// Reports whether the process has memory; false while it is ending and after it has ended.
pub fn has_memory(process: u32) -> bool {
    // proc_pid_statm(5): the first number is the total size.
    read_to_string(format!("/proc/{process}/statm")).is_ok_and(|text| !text.starts_with("0 "))
}

/// Reads a file of a process's memory (`maps`, `numa_maps`, `smaps`); `None` if the process has no
/// memory or ended meanwhile, so that the text may be incomplete.
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
