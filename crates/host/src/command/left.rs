//! What a command has running besides itself.

use std::fs;

use rustix::process::Pid;

/// The processes of a group but its leader, as `sleep (1234)`. Numbers below the leader's
/// were given out before it and are skipped, which keeps the look short on a machine with
/// thousands of processes.
pub(super) fn in_group(leader: Pid) -> Vec<String> {
    let leader = leader.as_raw_nonzero().get();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter(|number| *number > leader).filter_map(|number| member(number, leader)).collect()
}

fn member(number: i32, group: i32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name stands in parentheses, and may hold some itself.
    let (start, rest) = text.rsplit_once(')')?;
    let (_, name) = start.split_once('(')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let its_group = fields.nth(1)?.parse::<i32>().ok()?;
    (its_group == group && !matches!(state, "Z" | "X")).then(|| format!("{name} ({number})"))
}
