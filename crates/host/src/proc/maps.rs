//! Lines of `/proc/PID/maps` and `smaps` (`proc_pid_maps(5)`).

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapsLine {
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// True if execution is permitted.
    pub executable: bool,
    /// Offset of the mapping in its file, in bytes.
    pub offset: u64,
    /// The file, or the kernel's name for the mapping; empty if it has neither.
    pub name: String,
}

/// Returns every mapping of `maps`, skipping other lines.
pub fn maps(text: &str) -> impl Iterator<Item = MapsLine> {
    text.lines().filter_map(MapsLine::parse)
}

impl MapsLine {
    /// Parses `7f00-7f80 rw-p 00000000 00:00 0    [heap]`.
    fn parse(line: &str) -> Option<Self> {
        let (start, end) = address_range(line)?;
        let mut words = line.splitn(6, ' ');
        let (protection, offset) = (words.nth(1)?, words.next()?);
        Some(Self {
            start,
            end,
            executable: protection.contains('x'),
            offset: u64::from_str_radix(offset, 16).ok()?,
            name: words.nth(2).unwrap_or_default().trim_start().to_owned(),
        })
    }
}

/// Parses the first address and the end of a mapping: `7f00-7f80 rw-p 00000000 00:00 0`.
pub fn address_range(line: &str) -> Option<(u64, u64)> {
    let (start, rest) = line.split_once('-')?;
    let (end, _) = rest.split_once(' ')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(start)?, number(end)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_has_addresses_offset_and_name() {
        let text = "\
5581a2e0a000-5581a2e0b000 r-xp 00002000 fe:00 1234                       /bin/a b
7f00000000-7f00800000 ---p 00000000 00:00 0 
7f00800000-7f01000000 rw-p 00000000 00:00 0                              [stack]
nonsense
";
        let found: Vec<_> = maps(text).collect();
        assert_eq!((found[0].start, found[0].end), (0x5581_a2e0_a000, 0x5581_a2e0_b000));
        assert_eq!((found[0].offset, found[0].name.as_str()), (0x2000, "/bin/a b"));
        assert!(found[0].executable && !found[2].executable);
        assert_eq!((found[1].name.as_str(), found[2].name.as_str()), ("", "[stack]"));
        assert_eq!(found.len(), 3);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(?s)([0-9a-f]{1,17}-[0-9a-f]{1,17} \\PC{0,60}\n){0,4}\\PC{0,40}") {
            let _ = maps(&text).count();
        }
    }
}
