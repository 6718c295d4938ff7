//! Values on the command line: sizes, patterns, percentages, times.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use numalab_formats::size;
use numalab_host::allowed_now;
use numalab_page::{Format, Source};
use numalab_record::StreamKernel;
use numalab_stats::Direction;
use numalab_topology::{Allowed, Chosen, CpuId, CpuSet, Id, IdSet, NodeSet};

/// Smallest buffer: a smaller one has no order in which to visit it.
const LEAST_BYTES: u64 = 1 << 10;
/// Maximum number of blocks of a study.
const MOST_BLOCKS: usize = 100_000;

/// Sizes in bytes; clap would take a `Vec` for several values.
pub(crate) type SizeList = Vec<u64>;

/// Reads `256M`, `32K,1M`, or `16K-1G` by powers of two; a bare number is megabytes.
pub(crate) fn sizes(text: &str) -> Result<SizeList, String> {
    let sizes = size::parse_list(text).map_err(|error| error.to_string())?;
    match sizes.iter().find(|&&size| size < LEAST_BYTES || !size.is_multiple_of(64)) {
        Some(small) => Err(format!(
            "{small} bytes in `{text}`: expected at least {LEAST_BYTES}, and whole cache lines"
        )),
        None => Ok(sizes),
    }
}

/// Reads a number of blocks: `12`.
pub(crate) fn blocks(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=MOST_BLOCKS).contains(count));
    count.ok_or_else(|| format!("expected 1 to {MOST_BLOCKS}"))
}

/// Reads `NAME=VALUE`; the value may contain more equals signs.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected a name, `=` and a value, such as numa_balancing=0".to_owned()),
    }
}

/// Reads cpus in the order given, one for each rank: `0,8,1,9` or `0-3,8`; `all` and `!0` are in
/// numerical order.
pub(crate) fn cpu_list(text: &str) -> Result<Vec<CpuId>, String> {
    if text == "all" || text.starts_with('!') {
        return host_cpus(text).map(|cpus| cpus.iter().collect());
    }
    let items = text.split(',').map(|item| item.trim().parse::<CpuSet>());
    let sets: Vec<CpuSet> = items.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    if sets.iter().any(CpuSet::is_empty) {
        return Err(format!("`{text}`: an empty item, expected cpus such as 0,8,1,9"));
    }
    let cpus: Vec<CpuId> = sets.iter().flat_map(CpuSet::iter).collect();
    let mut known = BTreeSet::new();
    match cpus.iter().find(|cpu| !known.insert(**cpu)) {
        Some(twice) => Err(format!("`{text}`: cpu {twice} twice, expected cpus such as 0,8,1,9")),
        None => Ok(cpus),
    }
}

/// Reads cpus of this machine in numactl's notation: `0-3,8`, `all`, `!0`.
pub(crate) fn host_cpus(text: &str) -> Result<CpuSet, String> {
    chosen(text, "cpus", |allowed| allowed.cpus)
}

/// Reads nodes of this machine in numactl's notation: `0,1`, `all`, `!0`.
pub(crate) fn host_nodes(text: &str) -> Result<NodeSet, String> {
    chosen(text, "nodes", |allowed| allowed.memory_nodes)
}

/// Selects from the items that this process may use; a number in `text` may also name others.
fn chosen<I: Id>(
    text: &str,
    what: &str,
    of: impl Fn(Allowed) -> IdSet<I>,
) -> Result<IdSet<I>, String> {
    let expected = format!("expected {what} such as 0-3,8, all, or !0: all but 0");
    let chosen: Chosen<I> = text.trim().parse().map_err(|error| format!("{error}; {expected}"))?;
    let found = match chosen {
        Chosen::These(set) => set,
        chosen => chosen.select_from(&of(allowed_now().map_err(|error| error.to_string())?)),
    };
    match found.is_empty() {
        true => Err(format!("`{text}` selects none: {expected}")),
        false => Ok(found),
    }
}

/// Reads a single size in bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    match sizes(text)?[..] {
        [size] => Ok(size),
        _ => Err(format!("`{text}` is a list: expected one size, such as 256M")),
    }
}

/// Reads `read`, `write`, `write-nt`, `copy`, `copy-nt` or `triad`.
pub(crate) fn kernel(text: &str) -> Result<StreamKernel, String> {
    let found = StreamKernel::ALL.into_iter().find(|kernel| kernel.name() == text);
    found.ok_or_else(|| {
        let names = StreamKernel::ALL.map(StreamKernel::name).join(", ");
        format!("`{text}` is not a kernel: expected {names}")
    })
}

/// Reads `1%` or `0.01`, as a ratio above 0 and below 1.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let ratio = number.trim().parse::<f64>().map(|number| number / scale);
    ratio.ok().filter(|ratio| *ratio > 0.0 && *ratio < 1.0).ok_or_else(|| {
        format!(
            "`{text}` is not a precision: expected a percentage such as 1% or a ratio such as 0.01"
        )
    })
}

/// Reads `500ms`, `30s`, `5m` or `1h`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => 0.0,
    };
    let seconds = number.parse::<f64>().map(|number| number * scale);
    let positive = seconds.ok().filter(|seconds| *seconds > 0.0);
    positive.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| {
        format!("`{text}` is not a time: expected a number with ms, s, m or h, such as 30s")
    })
}

/// Returns a parser of a choice between values, each with its name and its help.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    choices: impl IntoIterator<Item = (T, &'static str, &'static str)>,
) -> impl TypedValueParser<Value = T> {
    let choices: Vec<_> = choices.into_iter().collect();
    let values = choices.iter().map(|(_, name, help)| PossibleValue::new(*name).help(*help));
    let values: Vec<PossibleValue> = values.collect();
    PossibleValuesParser::new(values).try_map(move |text| {
        choices.iter().find(|(_, name, _)| *name == text).map(|(value, ..)| *value).ok_or(text)
    })
}

/// Returns the formats of figures, with names and contents.
pub(crate) fn formats_of_figures() -> impl Iterator<Item = (Format, &'static str, &'static str)> {
    Format::ALL.into_iter().filter(|(format, ..)| !matches!(format.source(), Source::Program))
}

/// Reads the name of a format of figures.
pub(crate) fn format() -> impl TypedValueParser<Value = Format> {
    one_of(formats_of_figures())
}

/// Reads the name of a format of figures, or of a program's memory.
pub(crate) fn format_of_memory() -> impl TypedValueParser<Value = Format> {
    one_of(Format::ALL)
}

/// Reads `lower` or `higher`.
pub(crate) fn direction() -> impl TypedValueParser<Value = Direction> {
    use Direction::{HigherIsBetter, LowerIsBetter};
    one_of([
        (LowerIsBetter, LowerIsBetter.name(), "Times, latencies"),
        (HigherIsBetter, HigherIsBetter.name(), "Rates, bandwidths"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_numbers_are_megabytes_by_powers_of_two_as_in_seed_1() {
        assert_eq!(sizes("1-8"), Ok(vec![1 << 20, 2 << 20, 4 << 20, 8 << 20]));
        let mixed = vec![16 << 10, 32 << 10, 64 << 10, 2 << 30];
        assert_eq!(sizes("16K-64K,2048"), Ok(mixed));
    }

    #[test]
    fn nonsense_is_quoted_with_the_expected_form() {
        for text in ["", "M", "12X", "1.7G", "0", "64B", "1000B", "1G-", "2G-1G"] {
            let error = sizes(text).expect_err(text);
            assert!(error.contains("expected"), "{text}: {error}");
        }
    }

    #[test]
    fn cpus_of_ranks_keep_their_order() {
        let cpus = |text| cpu_list(text).map(|list| list.iter().map(|cpu| cpu.0).collect());
        assert_eq!(cpus("0,8,1,9"), Ok(vec![0, 8, 1, 9]));
        assert_eq!(cpus("4-6,0"), Ok(vec![4, 5, 6, 0]));
        assert!(cpus("0,,1").is_err() && cpus("x").is_err());
        let twice = cpus("0-2,1").unwrap_err();
        assert!(twice.contains("`0-2,1`: cpu 1 twice, expected"), "{twice}");
    }

    #[test]
    fn lists_of_this_machine_are_those_of_numactl() {
        let allowed = allowed_now().expect("an affinity");
        assert_eq!(host_cpus("all"), Ok(allowed.cpus.clone()));
        let first = allowed.cpus.first().expect("a cpu");
        let others = host_cpus(&format!("!{first}"));
        let expected = allowed.cpus.difference(&CpuSet::from_iter([first]));
        match expected.is_empty() {
            true => assert!(others.expect_err("none").contains("selects none")),
            false => assert_eq!(others, Ok(expected.clone())),
        }
        assert_eq!(host_nodes("7,3-4").map(|set| set.to_string()), Ok("3,4,7".to_owned()));
        assert_eq!(cpu_list("all").map(|list| list.len()), Ok(allowed.cpus.len()));
        for text in ["", "x", "!", "3-"] {
            let error = host_nodes(text).expect_err(text);
            assert!(error.contains("expected nodes such as"), "{text}: {error}");
        }
    }

    #[test]
    fn one_size_is_not_a_list() {
        assert_eq!(size("256M"), Ok(256 << 20));
        assert!(size("1-4").expect_err("a list").contains("`1-4`"));
    }

    #[test]
    fn times_and_percentages_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert!(duration("soon").is_err() && duration("0s").is_err());
        assert_eq!(percent("1%"), Ok(0.01));
        assert_eq!(percent("0.02"), Ok(0.02));
        assert!(percent("0").is_err() && percent("150%").is_err());
    }
}
