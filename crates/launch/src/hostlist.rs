//! SLURM's lists of hosts: `nid[001-004,007],login1`.

/// Returns the first host of a list.
pub fn first_host(list: &str) -> Option<String> {
    // A comma within brackets does not end the item.
    let end = list.find([',', '[']).unwrap_or(list.len());
    if !list[end..].starts_with('[') {
        return Some(list[..end].to_owned()).filter(|host| !host.is_empty());
    }
    let (numbers, after) = list[end + 1..].split_once(']')?;
    let number = numbers.split([',', '-']).next()?;
    let rest = &after[..after.find(',').unwrap_or(after.len())];
    // There may be several dimensions: `x[1-2]y[3-4]`.
    let rest = if rest.is_empty() { String::new() } else { first_host(rest)? };
    Some(format!("{}{number}{rest}", &list[..end]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_host_is_found_in_every_form() {
        for (list, first) in [
            ("n1", "n1"),
            ("n1,n2", "n1"),
            ("nid[001-004,007],login1", "nid001"),
            ("nid[007],x", "nid007"),
            ("rack[2-3]-n[08-09]", "rack2-n08"),
        ] {
            assert_eq!(first_host(list).as_deref(), Some(first), "{list}");
        }
        assert_eq!(first_host(""), None);
        assert_eq!(first_host("n[1-2"), None);
    }

    proptest! {
        #[test]
        fn no_list_makes_it_panic(list in "[a-z0-9,\\[\\]-]{0,30}") {
            let _ = first_host(&list);
        }
    }
}
