//! `/proc/PID/status` (`proc_pid_status(5)`).

/// The value of one line, `Name:  value`, if it is there and can be read.
#[must_use]
pub fn status_field<T: std::str::FromStr>(text: &str, name: &str) -> Option<T> {
    let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned());
    text.lines().find_map(value)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "Name:\tx\nTgid:\t12\nMems_allowed:\t0000000d\nMems_allowed_list:\t0,2-3\n";
        let list: Option<numalab_topology::NodeSet> = status_field(status, "Mems_allowed_list");
        assert_eq!(list.unwrap().to_string(), "0,2,3");
        assert_eq!(status_field(status, "Tgid"), Some(12));
        assert_eq!(status_field::<u32>(status, "Mems"), None);
        assert_eq!(status_field::<u32>(status, "Name"), None);
    }
}
