//! A prefetcher: lines of sequential streams are requested before they are missed. As Intel
//! describes the L2's prefetcher ("Intel 64 and IA-32 Architectures Optimization Reference Manual",
//! "Data Prefetch to the L2 Cache and Last Level Cache"): misses to consecutive lines, up or down,
//! form a stream, and up to a fixed number of its lines is fetched ahead of the misses. On some
//! cores the prefetcher looks no further ahead than the stream is long, and only a few lines past
//! the end of a page, or none (measured on a Zen 3 and a Zen 4, as `strides`). A Zen 4's crosses
//! pages in streams of more than two pages: after 160, 192, 224 and 256 lines it was 40, 64, 96 and
//! 128 ahead. Only lines that are used in the end are fetched. A line counts as requested at the
//! miss this number of lines before it, when the prefetcher would have reached it.

use alloc::vec;
use alloc::vec::Vec;

/// Number of streams that are tracked at a time.
const STREAMS: usize = 32;
/// Number of misses to consecutive lines that make a stream.
const TRAINED: u64 = 3;
/// Lines of a page: 4 KiB.
const PAGE_LINES: u64 = 64;

/// A sequence of misses to consecutive lines.
#[derive(Clone, Debug)]
struct Stream {
    last: u64,
    /// Increment of line numbers: 1 or -1, and 0 after the first.
    step: i64,
    /// Number of lines in the sequence.
    length: u64,
    /// Times of the last misses, by index in the sequence modulo their number.
    missed_ps: Vec<u64>,
    /// Number of the last miss that continued the stream.
    used: u64,
}

/// The distances of a prefetcher that looks no further ahead than a stream is long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Number of lines that the prefetcher looks past the end of a page.
    pub past_page: u64,
    /// Present if long streams are followed across pages: the number of lines by which it then
    /// looks less far ahead than the stream is long.
    pub long: Option<u64>,
}

/// The streams of a core's prefetcher.
#[derive(Clone, Debug)]
pub struct Streams {
    streams: Vec<Stream>,
    /// Number of misses so far.
    misses: u64,
    lines: usize,
    /// Present if the prefetcher looks no further ahead than a stream is long.
    reach: Option<Reach>,
}

impl Streams {
    /// Creates a prefetcher that fetches up to `lines` ahead; if its reach is given, no more than a
    /// stream is long.
    pub fn new(lines: u32, reach: Option<Reach>) -> Self {
        Self { streams: Vec::new(), misses: 0, lines: lines.max(1) as usize, reach }
    }

    /// Returns the time at which the page of a line that is used at `now_ps` was reached.
    pub fn reached_ps(&self, line: u64, now_ps: u64) -> u64 {
        let stream = self.streams.iter().find(|stream| stream.goes_on(line));
        let asked_ps = stream.filter(|_| self.reach.is_some()).map(|of| {
            let step = line.wrapping_sub(of.last).cast_signed();
            of.asked_ps((line, step), now_ps, self.reach)
        });
        asked_ps.unwrap_or(now_ps)
    }

    /// Returns the time at which a line that is missed at `now_ps` was requested; `now_ps` if it
    /// was not.
    pub fn asked_ps(&mut self, line: u64, now_ps: u64) -> u64 {
        self.misses += 1;
        let reach = self.reach;
        match self.streams.iter_mut().find(|stream| stream.goes_on(line)) {
            Some(stream) => {
                stream.used = self.misses;
                stream.add(line, now_ps, reach)
            }
            None => {
                self.begin(line, now_ps);
                now_ps
            }
        }
    }

    /// Begins a stream, in place of the one that was continued least recently.
    fn begin(&mut self, line: u64, now_ps: u64) {
        let used = self.misses;
        if self.streams.len() < STREAMS {
            let missed_ps = vec![now_ps; self.lines];
            let (step, length) = (0, 1);
            self.streams.push(Stream { last: line, step, length, missed_ps, used });
            return;
        }
        let Some(stream) = self.streams.iter_mut().min_by_key(|stream| stream.used) else { return };
        (stream.last, stream.step, stream.length, stream.used) = (line, 0, 1, used);
        stream.missed_ps[0] = now_ps;
    }
}

impl Stream {
    /// Returns true if a line is the next one of the stream.
    #[inline]
    fn goes_on(&self, line: u64) -> bool {
        let step = line.wrapping_sub(self.last).cast_signed();
        if self.step == 0 { step.unsigned_abs() == 1 } else { step == self.step }
    }

    /// Adds the next miss; returns the time at which its line was requested.
    fn add(&mut self, line: u64, now_ps: u64, reach: Option<Reach>) -> u64 {
        let step = line.wrapping_sub(self.last).cast_signed();
        let asked_ps = self.asked_ps((line, step), now_ps, reach);
        let place = self.place(self.length);
        self.missed_ps[place] = now_ps;
        (self.last, self.step) = (line, step);
        self.length += 1;
        asked_ps
    }

    /// Returns the time at which the next line, at a step from the last one, was requested, if it is
    /// missed at `now_ps`.
    fn asked_ps(&self, (line, step): (u64, i64), now_ps: u64, reach: Option<Reach>) -> u64 {
        let (lines, number) = (self.missed_ps.len() as u64, self.length);
        // The first miss that looked as far ahead as this line.
        let mut by = (TRAINED - 1).max(number.saturating_sub(lines));
        if let Some(Reach { past_page, long }) = reach {
            let upward = line % PAGE_LINES;
            let passed = if step > 0 { upward } else { PAGE_LINES - 1 - upward };
            let in_page = (number / 2).max(number.saturating_sub(passed.max(past_page)));
            let across = long.map_or(number, |long| (number + long).div_ceil(2));
            by = by.max(in_page.min(across));
        }
        // Misses before the stream was recognised requested nothing.
        let asked_ps = if by < number { self.missed_ps[self.place(by)] } else { now_ps };
        asked_ps.min(now_ps)
    }

    fn place(&self, number: u64) -> usize {
        usize::try_from(number % self.missed_ps.len() as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_lines_are_prefetched_up_to_the_limit() {
        for down in [false, true] {
            let mut streams = Streams::new(4, None);
            let line = |at: u64| if down { 1000 - at } else { 1000 + at };
            let asked: Vec<u64> =
                (0..12).map(|at| streams.asked_ps(line(at), 100 * (at + 1))).collect();
            // Three misses make the stream; then four lines are requested at once, and another one
            // with each miss.
            let expected = [100, 200, 300, 300, 300, 300, 300, 400, 500, 600, 700, 800];
            assert_eq!(asked, expected, "{down}");
        }
    }

    #[test]
    fn a_prefetcher_that_grows_looks_as_far_ahead_as_a_stream_is_long_and_stays_in_its_page() {
        for down in [false, true] {
            let mut streams = Streams::new(8, Some(Reach { past_page: 0, long: None }));
            let line = |at: u64| if down { 6399 - at } else { 6400 + at };
            let asked: Vec<u64> =
                (0..70).map(|at| streams.asked_ps(line(at), 100 * (at + 1))).collect();
            assert_eq!(asked[..8], [100, 200, 300, 300, 300, 300, 400, 400], "{down}");
            assert_eq!(asked[20..23], [1300, 1400, 1500], "{down}: eight ahead");
            assert_eq!(asked[63..67], [5600, 6500, 6500, 6500], "{down}: another page");
        }
    }

    #[test]
    fn a_prefetcher_that_looks_past_pages_has_a_few_lines_of_the_next_one() {
        let mut streams = Streams::new(8, Some(Reach { past_page: 2, long: None }));
        let mut reached = Vec::new();
        let asked: Vec<u64> = (0..70_u64)
            .map(|at| {
                let now_ps = 100 * (at + 1);
                reached.push(streams.reached_ps(6400 + at, now_ps));
                streams.asked_ps(6400 + at, now_ps)
            })
            .collect();
        assert_eq!(asked[62..69], [5500, 5600, 6300, 6400, 6500, 6500, 6500]);
        assert_eq!(reached, asked);
    }

    #[test]
    fn a_long_stream_is_asked_for_across_pages() {
        let mut streams = Streams::new(100, Some(Reach { past_page: 16, long: Some(128) }));
        let ahead: Vec<u64> = (0..400).map(|at| at - streams.asked_ps(6400 + at, at)).collect();
        // The first lines of the second to the seventh page.
        let first = [64, 128, 192, 256, 320, 384].map(|at| ahead[at]);
        assert_eq!(first, [16, 16, 32, 64, 96, 100]);
    }

    #[test]
    fn many_streams_are_distinguished_and_random_lines_are_no_stream() {
        let mut streams = Streams::new(2, None);
        for at in 0..10 {
            for stream in 0..8_u64 {
                let now_ps = 1000 * at + stream;
                let asked_ps = streams.asked_ps(stream * 10_000 + at, now_ps);
                assert_eq!(asked_ps < now_ps, at >= 3, "line {at} of {stream}");
            }
        }
        let mut word = 1_u64;
        for now_ps in 0..1000 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            assert_eq!(streams.asked_ps(word >> 20, now_ps), now_ps);
        }
    }

    #[test]
    fn a_stream_stays_among_random_misses_as_long_as_it_is_continued() {
        let mut streams = Streams::new(2, None);
        let mut word = 1_u64;
        let asked: Vec<bool> = (0..10_u64)
            .map(|at| {
                for _ in 0..STREAMS - 2 {
                    word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    streams.asked_ps(word >> 20, 1000 * at);
                }
                streams.asked_ps(at, 1000 * at + 1) <= 1000 * at
            })
            .collect();
        assert_eq!(asked, (0..10).map(|at| at >= 3).collect::<Vec<_>>());
    }

    #[test]
    fn repeated_misses_of_one_line_are_not_a_stream() {
        let mut streams = Streams::new(4, None);
        assert!((0..20).all(|now_ps| streams.asked_ps(7, now_ps) == now_ps));
    }
}
