//! Lines of `/proc/PID/maps` and `smaps` (`proc_pid_maps(5)`).

/// First address and end of a mapping: `7f00-7f80 rw-p 00000000 00:00 0`.
#[must_use]
pub fn address_range(line: &str) -> Option<(u64, u64)> {
    let (start, rest) = line.split_once('-')?;
    let (end, _) = rest.split_once(' ')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(start)?, number(end)?))
}
