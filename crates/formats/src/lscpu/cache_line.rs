//! The lines of caches, which have only sizes and counts.
//!
//! The size is that of one instance before util-linux 2.34, and the sum of all since; the number of
//! instances follows it since 2.37.

use numalab_topology::CacheKind;

use crate::size::parse_reported;

/// The highest level of caches in any machine.
const MOST_LEVELS: u8 = 9;
/// The largest odd factor in the sizes of caches of levels 1 and 2: 3 in 48 KiB, 5 in 1.25 MiB. A
/// sum over different cores seldom has one as small.
const MOST_ODD: [u64; 2] = [3, 5];
/// Sizes in MiB of L3 caches of AMD processors with several of them. The sum of two different ones,
/// such as 16 and 8, is also the sum of two equal ones.
const AMD_L3_MIB: [u64; 10] = [2, 4, 5, 6, 8, 16, 32, 48, 96, 128];
const KIB: u64 = 1 << 10;

/// A line such as `L3 cache: 512 MiB (16 instances)`.
#[derive(Debug)]
pub(super) struct CacheLine {
    /// The name, such as `L1d` or `L2`.
    pub(super) name: String,
    pub(super) level: u8,
    pub(super) kind: CacheKind,
    bytes: u64,
    /// The largest error of a sum, which has one decimal; `None` for the size of one instance.
    sum_error: Option<u64>,
    pub(super) instances: Option<usize>,
}

impl CacheLine {
    /// Returns true for the key of a cache's line.
    pub(super) fn is_key(key: &str) -> bool {
        Self::level_of(name_of(key)).is_some()
    }

    /// Reads a line; `None` if it gives no size above 0.
    pub(super) fn read(key: &str, value: &str) -> Option<Self> {
        let name = name_of(key);
        // Some languages have a decimal comma.
        let value = &value.replace(',', ".");
        let (size, rest) = match value.split_once('(') {
            Some((size, rest)) => (size.trim(), Some(rest)),
            None => (value.as_str(), None),
        };
        let instances = rest.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        let unit = size.trim_start_matches(|c: char| c.is_ascii_digit() || ". ".contains(c));
        let is_sum = instances.is_some() || unit.ends_with("iB");
        let unit = parse_reported(&format!("1{unit}"))?;
        Some(Self {
            name: name.to_owned(),
            level: Self::level_of(name)?,
            kind: Self::kind_of(name),
            bytes: parse_reported(size).filter(|&bytes| bytes > 0)?,
            sum_error: is_sum.then_some(unit / 20 + 1),
            instances,
        })
    }

    /// Returns the level of a name such as `L1d`; `None` if the name is not a cache's.
    pub(super) fn level_of(name: &str) -> Option<u8> {
        let digits = name.strip_prefix(['L', 'l'])?.trim_end_matches(['d', 'i', 'D', 'I']);
        digits.parse().ok().filter(|level| (1..=MOST_LEVELS).contains(level))
    }

    /// Returns the kind for a name such as `L1d`.
    pub(super) fn kind_of(name: &str) -> CacheKind {
        match name.as_bytes().last() {
            Some(b'd') => CacheKind::Data,
            Some(b'i') => CacheKind::Instruction,
            _ => CacheKind::Unified,
        }
    }

    /// Returns the size of each of several equal instances: the roundest number of KiB that the
    /// sum allows. `None` if there is none, so that the instances differ.
    pub(super) fn bytes_of_each(&self, instances: usize, is_amd: bool) -> Option<u64> {
        let instances = u64::try_from(instances).unwrap_or(0);
        let Some(error) = self.sum_error else { return Some(self.bytes) };
        let all = instances.checked_mul(KIB)?;
        let (least, most) = (self.bytes.saturating_sub(error), self.bytes.checked_add(error)?);
        let (least, most) = (least.div_ceil(all).max(1), most / all);
        let rounded = |zeros: u32| most >> zeros << zeros;
        let kibibytes = (0..u64::BITS).rev().map(rounded).find(|&size| size >= least)?;
        let odd = kibibytes >> kibibytes.trailing_zeros();
        let is_usual = match self.level {
            level @ 1..=2 => odd <= MOST_ODD[usize::from(level) - 1],
            3 if is_amd && instances > 1 => {
                AMD_L3_MIB.iter().any(|mib| (least..=most).contains(&(mib * KIB)))
            }
            _ => true,
        };
        is_usual.then_some(kibibytes * KIB)
    }
}

/// Returns the name in a key: `L1d` in `L1d cache`.
fn name_of(key: &str) -> &str {
    key.strip_suffix(" cache").unwrap_or(key)
}
