//! What a command line needs of the machine.

use crate::need::KernelNeed;

const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// The value of an option: `-l 5`, `-l5`, `--loop=5` or `--loop 5`.
pub(super) fn option<'a>(words: &'a [String], names: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(index, word)| {
        let name = names.iter().find(|name| word.starts_with(**name))?;
        match word.strip_prefix(name)? {
            "" => words.get(index + 1).map(String::as_str),
            rest if name.starts_with("--") => rest.strip_prefix('='),
            rest => Some(rest),
        }
    })
}

/// What the kernel and the machine must have for a command line.
#[must_use]
pub fn of(command: &[String]) -> Vec<KernelNeed> {
    let mut needs = Vec::new();
    if let Some(pages) = sysbench_huge_pages(command) {
        needs.push(KernelNeed::HugePages { page_kib: HUGE_PAGE_BYTES >> 10, pages });
    }
    needs
}

/// How many huge pages `--memory-hugetlb=on` takes: for a buffer sysbench asks for one
/// byte less than two pages beyond its block (6,291,455 bytes for 2 MiB), which the
/// kernel rounds up. Buffers are one for all threads, or one for each.
fn sysbench_huge_pages(command: &[String]) -> Option<u64> {
    if command.first().map(String::as_str) != Some("sysbench") {
        return None;
    }
    let is_on =
        |word: &&String| matches!(word.as_str(), "--memory-hugetlb" | "--memory-hugetlb=on");
    command.iter().find(is_on)?;
    let block = option(command, &["--memory-block-size"]).and_then(bytes).unwrap_or(1 << 10);
    let threads = option(command, &["--threads"]).and_then(|text| text.parse().ok());
    let buffers = match option(command, &["--memory-scope"]) {
        Some("local") => threads.unwrap_or(1),
        _ => 1,
    };
    let each = block.saturating_add(2 * HUGE_PAGE_BYTES - 1).div_ceil(HUGE_PAGE_BYTES);
    Some(each.saturating_mul(buffers))
}

/// Bytes of `2M` as sysbench writes sizes.
fn bytes(text: &str) -> Option<u64> {
    let (number, shift) = match text.as_bytes().last()?.to_ascii_uppercase() {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        b'T' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn huge_pages_are_counted_as_sysbench_asks_for_them() {
        let pages = |text: &str| sysbench_huge_pages(&words(text));
        assert_eq!(
            pages("sysbench memory --memory-hugetlb=on --memory-block-size=2M run"),
            Some(3)
        );
        assert_eq!(pages("sysbench memory --memory-hugetlb=on run"), Some(3));
        let local = "sysbench memory --memory-hugetlb --memory-scope=local --threads=4 run";
        assert_eq!(pages(local), Some(12));
        assert_eq!(pages("sysbench memory --memory-hugetlb=off run"), None);
        assert_eq!(pages("stress-ng --memory-hugetlb=on"), None);
    }

    #[test]
    fn options_are_found_in_each_of_their_forms() {
        for text in ["-x -l 5", "-x -l5", "--loop=5", "--loop 5"] {
            assert_eq!(option(&words(text), &["-l", "--loop"]), Some("5"), "{text}");
        }
        assert_eq!(option(&words("-x"), &["-l"]), None);
        assert_eq!(option(&words("-l"), &["-l"]), None);
    }
}
