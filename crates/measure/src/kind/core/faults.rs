//! The kernel's work, in a few windows: system calls, and page faults by first loads and stores of memory
//! that is touched only once, so that the pages which the kernel clears are not in the caches.

use std::ops::Range;

use numalab_host::{Mapping, base_pages, page_size_bytes};
use numalab_membench::{Clock, PageTimes, Stamp};
use numalab_record::{Metric, Pages};

use super::calls::Calls;
use super::processes::Processes;
use crate::error::MeasureError;

/// Pages touched in a window, windows that touch small pages, and windows that touch a huge page.
/// Together their memory exceeds the L2 of most processors, but is little in a small guest.
const PAGES: usize = 128;
const WINDOWS: usize = 12;
const HUGE_WINDOWS: usize = 3;
/// Windows after which the pages of one are freed: if freed at once, the same ones would be touched
/// next.
const LATER: usize = 6;
/// Pages that the kernel maps around a fault of a file (`fault_around_bytes`).
const AROUND: f64 = 16.0;
const HUGE_BYTES: usize = 2 << 20;

/// Memory that is touched a piece per window.
pub(super) struct Faults {
    loaded: Mapping,
    stored: Mapping,
    huge: Option<Mapping>,
    /// This program's file, twice: to load from, and to store to.
    file: Option<[Mapping; 2]>,
    calls: Calls,
    /// `None` where programs in memory cannot be made.
    processes: Option<Processes>,
    page_bytes: usize,
    window: usize,
}

impl Faults {
    /// Maps the memory; `calls` are made in the same windows. Returns `None` if base pages are large.
    pub fn new(calls: Calls) -> Result<Option<Self>, MeasureError> {
        let page_bytes = usize::try_from(page_size_bytes(base_pages())).unwrap_or(usize::MAX);
        if page_bytes > HUGE_BYTES / 2 {
            return Ok(None);
        }
        let bytes = PAGES * WINDOWS * page_bytes;
        let of_program = || Mapping::of_own_program(bytes);
        Ok(Some(Self {
            loaded: Mapping::new(bytes, base_pages())?,
            stored: Mapping::new(bytes, base_pages())?,
            huge: Mapping::new(HUGE_WINDOWS * HUGE_BYTES, Pages::Transparent).ok(),
            file: of_program().and_then(|one| Some([one, of_program()?])),
            calls,
            processes: Processes::new(),
            page_bytes,
            window: 0,
        }))
    }

    /// Touches the next piece; returns nothing after the last one.
    pub fn take(&mut self, clock: &Clock) -> Result<Vec<(Metric, f64)>, MeasureError> {
        let window = self.window;
        self.window += 1;
        if window >= WINDOWS {
            return Ok(Vec::new());
        }
        let page_bytes = self.page_bytes;
        let piece = |at: usize| at * PAGES * page_bytes..(at + 1) * PAGES * page_bytes;
        let here = piece(window);
        let ns = |touches: PageTimes| touches.ns_per_page(clock);
        let stores = |of: &mut Mapping| {
            PageTimes::of_stores(&mut of.as_bytes_mut()[here.clone()], page_bytes)
        };
        let loads = |of: &Mapping| PageTimes::of_loads(&of.as_bytes()[here.clone()], page_bytes);
        let mut values = vec![
            (Metric::FirstLoad, ns(loads(&self.loaded)?)),
            (Metric::FirstStore, ns(stores(&mut self.stored)?)),
        ];
        let long_enough = |of: &&mut [Mapping; 2]| of[0].len_bytes() >= here.end;
        if let Some([loaded, stored]) = self.file.as_mut().filter(long_enough) {
            values.push((Metric::FileLoad, AROUND * ns(loads(loaded)?)));
            values.push((Metric::PageUnmap, discard_ns(loaded, here.clone(), clock)?));
            values.push((Metric::PageCopy, ns(stores(stored)?)));
        }
        if let Some(huge) = self.huge.as_mut().filter(|_| window < HUGE_WINDOWS) {
            let bytes = &mut huge.as_bytes_mut()[window * HUGE_BYTES..][..HUGE_BYTES];
            let touches = PageTimes::of_stores(bytes, page_bytes)?;
            values.push((Metric::HugeStore, clock.ns(touches.ticks)));
        }
        values.extend(self.calls.take(clock)?);
        if let Some(processes) = &self.processes {
            values.extend(processes.take(clock)?);
        }
        if let Some(before) = window.checked_sub(LATER) {
            let free_ns = discard_ns(&mut self.stored, piece(before), clock)?;
            values.push((Metric::PageFree, free_ns));
        }
        Ok(values)
    }
}

/// Returns the time to give up a page, of those of one window.
fn discard_ns(
    memory: &mut Mapping,
    bytes: Range<usize>,
    clock: &Clock,
) -> Result<f64, MeasureError> {
    let start = Stamp::now();
    memory.discard(bytes)?;
    let ticks = Stamp::now().since(start)?;
    Ok(clock.ns(ticks) / PAGES as f64)
}
