//! Contradictions between figures of a probe of memory tiers.

use numalab_record::tiering::TieringProbed;

/// Maximum ratio of an access's time to its counted cost, which leaves room for the loop around it.
const MOST_RATIO: f64 = 1.2;
/// Largest difference in points between the shares of pages and of accesses, because not all
/// accesses go to hot pages.
const MOST_POINTS: f64 = 40.0;

/// Two figures, at least one of which must be wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contradiction {
    /// Accesses took longer, or less time, than the counted memory accesses cost.
    NotOfMemory {
        /// The mean time of an access, in ns.
        latency_ns: f64,
        /// The cost of the counted accesses, in ns.
        predicted_ns: f64,
    },
    /// The hot pages are not where the accesses went.
    PagesElsewhere {
        /// The share of the hot pages on the fast tier, in percent.
        hot_fast_percent: f64,
        /// The share of the last accesses that the fast tier served, in percent.
        fast_accesses_percent: f64,
    },
}

impl Contradiction {
    /// Returns all contradictions of a probe.
    pub fn all(probed: &TieringProbed) -> Vec<Self> {
        let both = |one, other| probed.value(one).zip(probed.value(other));
        let time = both("latency", "predicted").filter(|(latency_ns, predicted_ns)| {
            let ratio = latency_ns / predicted_ns;
            !(1.0 / MOST_RATIO..=MOST_RATIO).contains(&ratio)
        });
        let pages = both("hot-fast", "fast-accesses")
            .filter(|(hot_fast, fast)| (hot_fast - fast).abs() > MOST_POINTS);
        let time =
            time.map(|(latency_ns, predicted_ns)| Self::NotOfMemory { latency_ns, predicted_ns });
        let pages = pages.map(|(hot_fast_percent, fast_accesses_percent)| Self::PagesElsewhere {
            hot_fast_percent,
            fast_accesses_percent,
        });
        time.into_iter().chain(pages).collect()
    }
}

#[cfg(test)]
mod tests {
    use numalab_record::study::Quantity;

    use super::*;

    fn probed(figures: &[(&str, f64)]) -> TieringProbed {
        let reading = |&(name, value): &(&str, f64)| Quantity::lower(name, "").at(value);
        TieringProbed {
            fast: "0".parse().unwrap(),
            slow: "1".parse().unwrap(),
            tiers: Vec::new(),
            size_bytes: 8 << 20,
            heat: String::new(),
            placed: String::new(),
            readings: figures.iter().map(reading).collect(),
            looks: Vec::new(),
        }
    }

    #[test]
    fn times_and_places_that_deny_each_other_are_contradictions() {
        let figures =
            [("latency", 7033.0), ("predicted", 140.0), ("hot-fast", 0.0), ("fast-accesses", 78.7)];
        let expected = [
            Contradiction::NotOfMemory { latency_ns: 7033.0, predicted_ns: 140.0 },
            Contradiction::PagesElsewhere { hot_fast_percent: 0.0, fast_accesses_percent: 78.7 },
        ];
        assert_eq!(Contradiction::all(&probed(&figures)), expected);
    }

    #[test]
    fn consistent_and_missing_figures_are_not_findings() {
        let agree = [
            ("latency", 121.0),
            ("predicted", 118.0),
            ("hot-fast", 100.0),
            ("fast-accesses", 97.0),
        ];
        assert_eq!(Contradiction::all(&probed(&agree)), []);
        assert_eq!(Contradiction::all(&probed(&[("latency", 7033.0)])), []);
    }
}
