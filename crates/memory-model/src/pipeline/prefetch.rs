//! Lines and translations that are requested before an instruction needs them.

use super::Pipeline;

impl Pipeline {
    /// Returns the remaining time of a miss of a line by the instruction at this position that
    /// begins at `now_ps` and takes `takes_ps` in all: the line may have been prefetched. It is
    /// never less than a hit in the nearest cache.
    #[inline]
    pub fn left_ps(
        &mut self,
        (position, line): (u32, u64),
        now_ps: u64,
        (takes_ps, nearest_ps): (u64, u64),
    ) -> u64 {
        let foreseen_ps = self.foreseen_ps(position, line, now_ps);
        if let (Some(by), Some(strides)) = (self.by(position), &mut self.strides) {
            strides.add(by, line, now_ps);
        }
        let Some(streams) = &mut self.streams else { return takes_ps };
        let asked_ps = streams.asked_ps(line, now_ps).min(foreseen_ps);
        takes_ps.saturating_sub(now_ps.saturating_sub(asked_ps)).max(nearest_ps)
    }

    /// Returns the time at which a line that the instruction at this position will miss at `now_ps`
    /// was requested by its distances: then, or before.
    fn foreseen_ps(&self, position: u32, line: u64, now_ps: u64) -> u64 {
        let known = self.by(position).zip(self.strides.as_ref());
        known.map_or(now_ps, |(by, strides)| strides.asked_ps(by, line, now_ps))
    }

    /// Identifies the instruction at this position.
    fn by(&self, position: u32) -> Option<usize> {
        Some(core::ptr::from_ref(self.accessor(position)?).addr())
    }

    /// Returns the time at which the address of an access of a line is translated, if that could
    /// begin at `issue_ps` and takes this long: a prefetcher may have begun it before.
    #[inline]
    pub fn translated_ps(
        &mut self,
        (position, line): (u32, u64),
        issue_ps: u64,
        takes_ps: u64,
    ) -> u64 {
        if self.walkers.is_hit(takes_ps) {
            return issue_ps + takes_ps;
        }
        let asked_ps = self.foreseen_ps(position, line, issue_ps);
        self.walkers.translated_ps(asked_ps, takes_ps).max(issue_ps)
    }
}
