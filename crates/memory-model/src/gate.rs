//! Decides whether accesses count now, and for which phase.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use serde::Serialize;

use crate::arguments::Start;
use crate::marker::Marker;

/// The effect of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Counting begins.
    Opened,
    /// Counting ends.
    Closed,
    /// Another phase begins.
    Phase,
    /// The depth changes, or nothing.
    None,
}

/// Numbers of markers seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Begin markers.
    pub begins: u64,
    /// End markers that match a begin marker.
    pub ends: u64,
    /// End markers without a begin marker.
    pub stray_ends: u64,
    /// Phase markers.
    pub phases: u64,
    /// Publish markers.
    pub publishes: u64,
    /// Report markers.
    pub reports: u64,
}

/// The state that markers change.
#[derive(Debug)]
pub struct Gate {
    depth: AtomicU32,
    phase: AtomicUsize,
    /// In the order of [`Tally`]'s fields.
    seen: [AtomicU64; 6],
}

impl Gate {
    /// Creates a gate that is open or closed at the start.
    pub fn new(start: Start) -> Self {
        let depth = AtomicU32::new(u32::from(start == Start::On));
        Self { depth, phase: AtomicUsize::new(0), seen: Default::default() }
    }

    /// Returns true if accesses count.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.depth.load(Relaxed) > 0
    }

    /// Returns true if accesses count now or did before.
    pub fn was_open(&self) -> bool {
        self.is_open() || self.seen[0].load(Relaxed) > 0 || self.seen[1].load(Relaxed) > 0
    }

    /// Returns the current phase.
    #[inline]
    pub fn phase(&self) -> usize {
        self.phase.load(Relaxed)
    }

    /// Applies a marker; a phase's name must already be replaced by its number.
    pub fn mark(&self, marker: Marker) -> Change {
        let (seen, change) = match marker {
            Marker::NamedPhase | Marker::Letter(_) | Marker::HostPages(_) => return Change::None,
            Marker::Begin => {
                let was = self.depth.fetch_add(1, Relaxed);
                (0, if was == 0 { Change::Opened } else { Change::None })
            }
            Marker::End => self.end(),
            Marker::Phase(phase) => {
                self.phase.store(usize::from(phase), Relaxed);
                (3, Change::Phase)
            }
            Marker::Publish => (4, Change::None),
            Marker::Report => (5, Change::None),
        };
        self.seen[seen].fetch_add(1, Relaxed);
        change
    }

    /// Returns the numbers of markers so far.
    pub fn tally(&self) -> Tally {
        let [begins, ends, stray_ends, phases, publishes, reports] =
            [0, 1, 2, 3, 4, 5].map(|at: usize| self.seen[at].load(Relaxed));
        Tally { begins, ends, stray_ends, phases, publishes, reports }
    }

    fn end(&self) -> (usize, Change) {
        let less = |depth: u32| depth.checked_sub(1);
        match self.depth.fetch_update(Relaxed, Relaxed, less) {
            Ok(1) => (1, Change::Closed),
            Ok(_) => (1, Change::None),
            Err(_) => (2, Change::None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_outermost_markers_open_and_close() {
        let gate = Gate::new(Start::Marker);
        assert!(!gate.is_open());
        assert_eq!(gate.mark(Marker::End), Change::None);
        assert!(!gate.was_open());
        assert_eq!(gate.mark(Marker::Begin), Change::Opened);
        assert_eq!(gate.mark(Marker::Begin), Change::None);
        assert_eq!(gate.mark(Marker::Phase(7)), Change::Phase);
        assert_eq!(gate.mark(Marker::End), Change::None);
        assert!(gate.is_open());
        assert_eq!(gate.mark(Marker::End), Change::Closed);
        assert!(!gate.is_open() && gate.was_open());
        assert_eq!(gate.phase(), 7);
        let tally = gate.tally();
        assert_eq!((tally.begins, tally.ends, tally.stray_ends, tally.phases), (2, 2, 1, 1));
    }

    #[test]
    fn a_machine_that_starts_open_is_closed_by_one_end() {
        let gate = Gate::new(Start::On);
        assert!(gate.is_open());
        assert_eq!(gate.mark(Marker::End), Change::Closed);
        assert!(gate.was_open());
    }
}
