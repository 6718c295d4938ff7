//! Costs as typed by users: `100`, `hmat`, `flat:90`; `10G`, `10G,5G`; `32K,1M@4,16M/16`.

use super::{BandwidthModel, CacheLevel, CacheScope, LatencyModel, Stage};
use crate::size::{format_bytes, parse_bytes};

const LINE_BYTES: u32 = 64;
const MOST_LEVELS: u8 = 4;
/// Ways of the first, the second, and any further cache, if they are not given.
const USUAL_WAYS: [u32; 3] = [8, 8, 16];
/// The longest latency of an access, in ns.
const MOST_NS: f64 = 1e9;

/// The error for a string that does not describe costs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: expected {expected}")]
pub struct CostTextError {
    text: String,
    expected: &'static str,
}

/// Parses the source of latencies: the nanoseconds of local memory (`100`), by which the distances
/// are scaled; `hmat`; or `flat:90`.
///
/// # Errors
/// [`CostTextError`], quoting the text.
pub fn parse_latency(text: &str) -> Result<LatencyModel, CostTextError> {
    let expected = "nanoseconds of local memory such as 100, hmat, or flat:100";
    let wrong = || CostTextError { text: text.to_owned(), expected };
    let nanoseconds = |number| nanoseconds(number, 1.0).ok_or_else(wrong);
    match text.split_once(':') {
        None if text == "hmat" => Ok(LatencyModel::Firmware),
        None => Ok(LatencyModel::Distance { local_ns: nanoseconds(text)? }),
        Some(("flat", ns)) => Ok(LatencyModel::Flat { ns: nanoseconds(ns)? }),
        Some(_) => Err(wrong()),
    }
}

/// Returns the text that [`parse_latency`] parses to this value.
pub fn format_latency(latency: &LatencyModel) -> String {
    match latency {
        LatencyModel::Distance { local_ns } => local_ns.to_string(),
        LatencyModel::Firmware => "hmat".to_owned(),
        LatencyModel::Flat { ns } => format!("flat:{ns}"),
    }
}

/// Returns the text that [`parse_bandwidth`] parses to this value; `None` for memory without
/// limits.
pub fn format_bandwidth(bandwidth: &BandwidthModel) -> Option<String> {
    let item = |mb_s: &u64| if *mb_s == 0 { "0".to_owned() } else { format!("{mb_s}M") };
    let row = |row: &Vec<u64>| row.iter().map(item).collect::<Vec<_>>().join(",");
    match bandwidth {
        BandwidthModel::Unlimited => None,
        BandwidthModel::Nodes(nodes) => Some(row(nodes)),
        BandwidthModel::Links(rows) => Some(rows.iter().map(row).collect::<Vec<_>>().join(";")),
        BandwidthModel::Firmware => Some("hmat".to_owned()),
    }
}

/// Returns the text that [`parse_caches`] parses to these caches.
pub fn format_caches(caches: &[CacheLevel]) -> String {
    let item =
        |of: &CacheLevel| format!("{}/{}@{}", format_bytes(of.size_bytes), of.ways, of.latency_ns);
    match caches {
        [] => "none".to_owned(),
        caches => caches.iter().map(item).collect::<Vec<_>>().join(","),
    }
}

/// Returns the text that [`parse_stages`] parses to these stages.
pub fn format_stages(stages: &[Stage]) -> String {
    let name = |stage: &Stage| Stage::ALL.iter().find(|(_, of)| of == stage).map(|(name, _)| *name);
    match stages {
        [] => "none".to_owned(),
        _ => stages.iter().filter_map(name).collect::<Vec<_>>().join(","),
    }
}

/// Parses `85.5` or `85.5ns`, from `least` to a second.
fn nanoseconds(number: &str, least: f64) -> Option<f64> {
    let ns: f64 = number.strip_suffix("ns").unwrap_or(number).trim().parse().ok()?;
    (least..=MOST_NS).contains(&ns).then_some(ns)
}

/// Parses bandwidths in bytes per second (`10G` is 10^10 bytes): one for every node's memory, one
/// for each (`10G,5G`), or a row for each node's cpus (`0,5G;5G,0`); 0 means no limit; or `hmat`.
///
/// # Errors
/// [`CostTextError`], quoting the item.
pub fn parse_bandwidth(text: &str) -> Result<BandwidthModel, CostTextError> {
    if text == "hmat" {
        return Ok(BandwidthModel::Firmware);
    }
    let row = |row: &str| row.split(',').map(|item| megabytes(item.trim())).collect();
    if text.contains(';') {
        return text.split(';').map(row).collect::<Result<_, _>>().map(BandwidthModel::Links);
    }
    row(text).map(BandwidthModel::Nodes)
}

fn megabytes(item: &str) -> Result<u64, CostTextError> {
    let expected =
        "bytes per second in whole millions, such as 10G or 800M, 0 for no limit, or hmat";
    let wrong = || CostTextError { text: item.to_owned(), expected };
    let (number, factor) = match item.strip_suffix(['G', 'g']) {
        Some(number) => (number, 1000),
        None => (item.strip_suffix(['M', 'm']).unwrap_or(item), 1),
    };
    let megabytes: u64 = number.parse().map_err(|_| wrong())?;
    // A number without a unit would be bytes, and no memory is limited to single bytes.
    if number == item && megabytes > 0 {
        return Err(wrong());
    }
    megabytes.checked_mul(factor).ok_or_else(wrong)
}

/// Parses the sizes of the caches, nearest first, each optionally with its ways and with the cost
/// of a hit: `32K,1M@4,16M/16@12.5`. The third and later caches are shared by an L3 group; `none`
/// means no caches.
///
/// # Errors
/// [`CostTextError`], quoting the item.
pub fn parse_caches(text: &str) -> Result<Vec<CacheLevel>, CostTextError> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let levels = 1..=MOST_LEVELS;
    if text.split(',').count() > usize::from(MOST_LEVELS) {
        return Err(CostTextError { text: text.to_owned(), expected: "at most four caches" });
    }
    levels.zip(text.split(',')).map(|(level, item)| cache(level, item.trim())).collect()
}

fn cache(level: u8, item: &str) -> Result<CacheLevel, CostTextError> {
    let expected = "sizes of caches with whole sets of 64-byte lines, optionally with /WAYS and \
                    @NS per hit, such as 32K,1M@4,16M/16@12.5";
    let wrong = || CostTextError { text: item.to_owned(), expected };
    let (place, latency_ns) = match item.split_once('@') {
        Some((place, ns)) => (place, nanoseconds(ns, 0.0).ok_or_else(wrong)?),
        None => (item, 0.0),
    };
    let (size, ways) = match place.split_once('/') {
        Some((size, ways)) => (size, ways.parse().map_err(|_| wrong())?),
        None => (place, USUAL_WAYS[usize::from(level - 1).min(2)]),
    };
    let size_bytes = parse_bytes(size).map_err(|_| wrong())?;
    let set_bytes = u64::from(ways) * u64::from(LINE_BYTES);
    if set_bytes == 0 || size_bytes == 0 || !size_bytes.is_multiple_of(set_bytes) {
        return Err(wrong());
    }
    let scope = if level < 3 { CacheScope::Cpu } else { CacheScope::Group };
    Ok(CacheLevel {
        level,
        size_bytes,
        ways,
        line_bytes: LINE_BYTES,
        scope,
        latency_ns,
        life_ns: 0.0,
    })
}

/// Parses names of stages: `load,core,owners,tlb`, or `none`.
///
/// # Errors
/// [`CostTextError`], quoting the name.
pub fn parse_stages(text: &str) -> Result<Vec<Stage>, CostTextError> {
    let wrong = |name: &str| CostTextError {
        text: name.to_owned(),
        expected: "stages: load, core, owners, tlb, nested, or none",
    };
    if text == "none" {
        return Ok(Vec::new());
    }
    let stage = |name: &str| Stage::named(name.trim()).ok_or_else(|| wrong(name));
    text.split(',').map(stage).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_local_flat_or_from_the_firmware() {
        assert_eq!(parse_latency("100"), Ok(LatencyModel::Distance { local_ns: 100.0 }));
        assert_eq!(parse_latency("85.5ns"), Ok(LatencyModel::Distance { local_ns: 85.5 }));
        assert_eq!(parse_latency("flat:90"), Ok(LatencyModel::Flat { ns: 90.0 }));
        assert_eq!(parse_latency("hmat"), Ok(LatencyModel::Firmware));
        for text in ["", "0", "-5", "nan", "1e12", "slit:3", "flat:", "flat:x"] {
            let error = parse_latency(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}`: expected nanoseconds")), "{error}");
        }
    }

    #[test]
    fn bandwidths_are_for_all_nodes_for_each_node_or_for_links() {
        assert_eq!(parse_bandwidth("10G"), Ok(BandwidthModel::Nodes(vec![10_000])));
        assert_eq!(parse_bandwidth("800M, 0"), Ok(BandwidthModel::Nodes(vec![800, 0])));
        let links = BandwidthModel::Links(vec![vec![0, 5000], vec![5000, 0]]);
        assert_eq!(parse_bandwidth("0,5G;5G,0"), Ok(links));
        assert_eq!(parse_bandwidth("hmat"), Ok(BandwidthModel::Firmware));
        for text in ["", "10", "x", "1T", "1G,,2G", "99999999999999999999G"] {
            assert!(parse_bandwidth(text).is_err(), "{text}");
        }
    }

    #[test]
    fn caches_have_usual_ways_and_the_third_is_shared() {
        let caches = parse_caches("32K, 1M,12M/12").unwrap();
        let shapes: Vec<_> = caches.iter().map(|c| (c.level, c.size_bytes, c.ways)).collect();
        assert_eq!(shapes, [(1, 32 << 10, 8), (2, 1 << 20, 8), (3, 12 << 20, 12)]);
        assert_eq!(caches[2].scope, CacheScope::Group);
        assert_eq!(parse_caches("none"), Ok(Vec::new()));
        for text in ["", "32K/7", "32K/0", "32K,", "0", "4K,4K,4K,4K,4K"] {
            assert!(parse_caches(text).is_err(), "{text}");
        }
    }

    #[test]
    fn stages_are_parsed_by_name() {
        let all = Stage::ALL.map(|(name, _)| name).join(",");
        assert_eq!(parse_stages(&all), Ok(Stage::ALL.map(|(_, stage)| stage).to_vec()));
        let error = parse_stages("load,fast").unwrap_err().to_string();
        let all = all.replace(',', ", ");
        assert_eq!(error, format!("`fast`: expected stages: {all}, or none"));
        assert_eq!(parse_stages(&format_stages(&[])), Ok(Vec::new()));
    }

    #[test]
    fn hits_have_the_given_cost_and_other_texts_are_refused() {
        let caches = parse_caches("32K, 1M@4,16M/16@12.5ns,64M@0").unwrap();
        let costs: Vec<f64> = caches.iter().map(|cache| cache.latency_ns).collect();
        assert_eq!(costs, [0.0, 4.0, 12.5, 0.0]);
        assert_eq!((caches[2].size_bytes, caches[2].ways), (16 << 20, 16));
        for text in ["32K@", "32K@-1", "32K@x", "32K@nan", "32K@2e9", "32K@4/8", "@4"] {
            let error = parse_caches(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}`: expected sizes of caches")), "{error}");
        }
    }

    #[test]
    fn costs_that_were_parsed_are_written_in_a_form_that_parses_the_same() {
        for text in ["100", "85.5", "flat:90", "hmat"] {
            let latency = parse_latency(text).unwrap();
            assert_eq!(parse_latency(&format_latency(&latency)), Ok(latency));
        }
        for text in ["10G", "800M,0", "0,5G;5G,0", "hmat"] {
            let bandwidth = parse_bandwidth(text).unwrap();
            assert_eq!(parse_bandwidth(&format_bandwidth(&bandwidth).unwrap()), Ok(bandwidth));
        }
        for text in ["none", "32K", "32K,1M@4,12M/12@12.5"] {
            let caches = parse_caches(text).unwrap();
            assert_eq!(parse_caches(&format_caches(&caches)), Ok(caches));
        }
        let stages = parse_stages("core,owners,tlb,load").unwrap();
        assert_eq!(parse_stages(&format_stages(&stages)), Ok(stages));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "[0-9a-zGKM:;,/@. ]{0,24}") {
            let _ = (parse_latency(&text), parse_bandwidth(&text), parse_caches(&text));
        }
    }
}
