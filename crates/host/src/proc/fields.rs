//! Parses lines of a name and a value, the format of many files in `/proc` and `/sys`.

/// Returns the value of the line `Name:  value`, or `Node 3 Name:  value` in a node's file.
pub fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (before, value) = line.split_once(':')?;
        let before = before.trim();
        let of_node = || before.strip_prefix("Node ")?.split_once(' ').map(|(_, name)| name);
        (before == name || of_node() == Some(name)).then(|| value.trim())
    })
}

/// Returns the bytes of a line `Name:  8 kB`, or the value's text if it is not a number of kB.
pub fn bytes<'t>(text: &'t str, name: &str) -> Option<Result<u64, &'t str>> {
    let value = field(text, name)?;
    let kib = value.strip_suffix("kB").and_then(|kib| kib.trim_end().parse::<u64>().ok());
    Some(kib.and_then(|kib| kib.checked_mul(1 << 10)).ok_or(value))
}

/// Returns the lines `name 12` of a file of counters such as `/proc/vmstat`.
pub fn counters(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name, value.trim().parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "Name:\tx\nTgid:\t12\nMems_allowed:\t0000000d\nMems_allowed_list:\t0,2-3\n";
        assert_eq!(field(status, "Mems_allowed_list"), Some("0,2-3"));
        assert_eq!(field(status, "Tgid"), Some("12"));
        assert_eq!(field(status, "Mems"), None);
        assert_eq!(field("model name\t: X: 2\n", "model name"), Some("X: 2"));
    }

    #[test]
    fn bytes_are_found_with_and_without_their_node() {
        let text = "Node 3 MemTotal:        5597396 kB\nNode 3 MemFree: x kB\n";
        assert_eq!(bytes(text, "MemTotal"), Some(Ok(5_597_396 << 10)));
        assert_eq!(bytes(text, "MemFree"), Some(Err("x kB")));
        assert_eq!(bytes("MemTotal: 1 kB", "MemTotal"), Some(Ok(1024)));
        assert_eq!(bytes(text, "MemUsed"), None);
    }

    #[test]
    fn a_size_without_its_unit_or_beyond_64_bits_is_rejected() {
        for text in ["MemTotal: 18446744073709551615 kB", "MemTotal: 7", "MemTotal: 7 MB"] {
            assert!(bytes(text, "MemTotal").unwrap().is_err(), "{text}");
        }
    }

    #[test]
    fn counters_are_the_lines_with_a_number() {
        let found: Vec<_> =
            counters("nr_free_pages 7\nnonsense\npgmigrate_fail 0\nx y\n").collect();
        assert_eq!(found, [("nr_free_pages", 7), ("pgmigrate_fail", 0)]);
    }
}
