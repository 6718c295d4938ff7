//! Lines and translations that are requested before an instruction needs them.

use super::Pipeline;
use super::flow::Accessor;

/// Lines of a page of 4 KiB.
pub(super) const LINES_OF_PAGE: u64 = 64;

impl Pipeline {
    /// Returns the remaining time of a miss that begins at `now_ps` and takes `takes_ps` in total,
    /// by this instruction: the line may have been prefetched. The result is at
    /// least the time of a hit in the nearest cache. Only lines in a row are requested by a cache behind the
    /// nearest one, and so without its fill buffers.
    #[inline]
    pub fn left_ps(
        &mut self,
        (by, line): (Option<&'static Accessor>, u64),
        now_ps: u64,
        (takes_ps, nearest_ps, is_far): (u64, u64, bool),
    ) -> u64 {
        let streamed_ps = self.streams.as_mut().map_or(now_ps, |of| of.asked_ps(line, now_ps));
        let mut foreseen_ps = self.foreseen_ps(by, line, now_ps);
        if is_far && streamed_ps >= now_ps {
            self.fills.far_without_stream();
        }
        if let Some(strides) = &mut self.strides
            && foreseen_ps < streamed_ps
        {
            let each_ps = takes_ps / u64::from(self.core.misses);
            foreseen_ps = strides.gets_buffer_ps(foreseen_ps, each_ps).min(now_ps);
        }
        if let (Some(by), Some(strides)) = (number(by), &mut self.strides) {
            strides.add(by, line, now_ps);
        }
        let near_ps = match (number(by), &mut self.neighbours) {
            (Some(by), Some(neighbours)) => neighbours.asked_ps(by, line, now_ps),
            _ => now_ps,
        };
        let strayed_ps = self.strayed_ps(by, now_ps);
        let asked_ps = streamed_ps.min(foreseen_ps).min(near_ps).min(strayed_ps);
        takes_ps.saturating_sub(now_ps.saturating_sub(asked_ps)).max(nearest_ps)
    }

    /// Returns the time at which prefetchers, from the distances between its accesses, requested a
    /// line that this instruction misses at `now_ps`; `now_ps` if they did not.
    fn foreseen_ps(&self, by: Option<&'static Accessor>, line: u64, now_ps: u64) -> u64 {
        let known = number(by).zip(self.strides.as_ref());
        known.map_or(now_ps, |(by, strides)| strides.asked_ps(by, line, now_ps))
    }

    /// Returns the time at which a line that this instruction misses at `now_ps` was requested on the
    /// wrong path of a branch; `now_ps` if it was not.
    fn strayed_ps(&mut self, by: Option<&Accessor>, now_ps: u64) -> u64 {
        let (Some(astray), Some(accessor)) = (&mut self.astray, by) else { return now_ps };
        let asked_ps = astray.asked_ps(&accessor.address, now_ps);
        astray.misses(accessor.load);
        asked_ps
    }

    /// Returns the time at which the address of an access is translated, if translation could begin
    /// at `issue_ps` and takes this long: a prefetcher may have begun it earlier.
    #[inline]
    pub fn translated_ps(
        &mut self,
        (by, line): (Option<&'static Accessor>, u64),
        issue_ps: u64,
        takes_ps: u64,
    ) -> u64 {
        if takes_ps == 0 {
            return issue_ps;
        }
        let page = line / LINES_OF_PAGE;
        if self.walkers.is_hit(takes_ps) {
            self.walkers.knows(page, issue_ps + takes_ps);
            return issue_ps + takes_ps;
        }
        let mut asked_ps = self.foreseen_ps(by, line, issue_ps);
        if let Some(streams) = &self.streams {
            asked_ps = asked_ps.min(streams.reached_ps(line, issue_ps));
        }
        if let (Some(astray), Some(accessor)) = (&self.astray, by) {
            asked_ps = asked_ps.min(astray.translates_ps(&accessor.address, issue_ps));
        }
        let done_ps = self.walkers.translated_ps(asked_ps, takes_ps);
        if let Some(astray) = &mut self.astray {
            astray.translated(done_ps);
        }
        self.walkers.knows(page, done_ps);
        done_ps.max(issue_ps)
    }
}

/// Identifies an instruction.
fn number(by: Option<&'static Accessor>) -> Option<usize> {
    by.map(|by| core::ptr::from_ref(by).addr())
}
