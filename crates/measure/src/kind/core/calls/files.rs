//! Calls that move data: to and from files in memory, and through pipes.

use std::fs::File;
use std::hint::black_box;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use numalab_membench::Clock;
use numalab_record::Metric;

use super::{CALLS, each_ns};
use crate::error::MeasureError;

/// Bytes of a large piece, a usual size in programs and that of a pipe, and pieces in a window.
const LARGE_BYTES: usize = 64 << 10;
const LARGE: u32 = 8;
const PAGE_BYTES: usize = 4 << 10;
const SMALL: u32 = 16;
const PAGES: f64 = (LARGE_BYTES / PAGE_BYTES) as f64;
const OPENS: u32 = 20;

/// Files and a pipe, and the memory of reads and writes.
pub(super) struct Files {
    /// This program's file; `None` if it is shorter than the reads of a window.
    file: Option<File>,
    path: Option<PathBuf>,
    /// A file to write to; `None` where there is no place for one.
    written: Option<File>,
    pipe: Option<(PipeReader, PipeWriter)>,
    buffer: Vec<u8>,
}

impl Files {
    /// Opens the files, and reads one, so that it is in the page cache.
    pub fn new() -> Self {
        let file = File::open("/proc/self/exe").ok();
        let path = std::env::current_exe().ok();
        let (written, pipe) = (tempfile::tempfile().ok(), pipe().ok());
        let mut files = Self { file, path, written, pipe, buffer: vec![1; LARGE_BYTES] };
        if !files.reads() {
            files.file = None;
        }
        files
    }

    /// Times each kind of call, given the time of one that does nothing.
    pub fn take(
        &mut self,
        clock: &Clock,
        call_ns: f64,
    ) -> Result<Vec<(Metric, f64)>, MeasureError> {
        let mut values = Vec::new();
        if let Some(path) = &self.path {
            let opens_ns = each_ns(clock, OPENS, || _ = black_box(File::open(path)))?;
            // Each file is closed again, by another call.
            values.push((Metric::FileOpen, (opens_ns - call_ns).max(1.0)));
        }
        let mut page_ns = 0.0;
        if let Some(file) = &self.file {
            let mut byte = [0];
            let read_ns = each_ns(clock, CALLS, || _ = black_box(file.read_at(&mut byte, 0)))?;
            // Once before, so that the caches have it.
            self.reads();
            let all_ns = each_ns(clock, 1, || _ = self.reads())?;
            // A time is more than nothing, however long the calls took just before.
            page_ns = ((all_ns / f64::from(LARGE) - read_ns) / PAGES).max(1.0);
            values.extend([(Metric::Read, read_ns), (Metric::FileRead, page_ns)]);
        }
        values.extend(self.writes(clock)?);
        values.extend(self.pipes(clock, call_ns + page_ns)?);
        Ok(values)
    }

    /// Reads the beginning of the file; returns whether it is long enough.
    fn reads(&mut self) -> bool {
        let Some(file) = &self.file else { return false };
        let mut offsets = (0..u64::from(LARGE)).map(|piece| piece * LARGE_BYTES as u64);
        offsets.all(|at| file.read_exact_at(&mut self.buffer, at).is_ok())
    }

    /// Times writes to the same places of a file, and to new ones, in small pieces and in large ones.
    fn writes(&self, clock: &Clock) -> Result<Vec<(Metric, f64)>, MeasureError> {
        let Some(file) = &self.written else { return Ok(Vec::new()) };
        let mut failed = false;
        let mut growth_ns = [0.0; 2];
        for (ns, (bytes, pieces)) in
            growth_ns.iter_mut().zip([(PAGE_BYTES, SMALL), (LARGE_BYTES, LARGE)])
        {
            failed |= file.set_len(0).is_err();
            let mut each = || {
                let mut at = 0;
                each_ns(clock, pieces, || {
                    failed |= file.write_all_at(&self.buffer[..bytes], at).is_err();
                    at += bytes as u64;
                })
            };
            let new_ns = each()?;
            *ns = new_ns - each()?;
        }
        let write_ns =
            each_ns(clock, CALLS, || failed |= file.write_at(&self.buffer[..1], 0).is_err())?;
        if failed {
            return Ok(Vec::new());
        }
        let page_ns = ((growth_ns[1] - growth_ns[0]) / (PAGES - 1.0)).max(1.0);
        Ok(vec![
            (Metric::Write, write_ns),
            (Metric::FileGrowth, (growth_ns[0] - page_ns).max(1.0)),
            (Metric::FilePage, page_ns),
        ])
    }

    /// Times a pipe that is filled and emptied, of which the first page takes `first_ns` with the call.
    fn pipes(
        &mut self,
        clock: &Clock,
        first_ns: f64,
    ) -> Result<Option<(Metric, f64)>, MeasureError> {
        let Some((reader, writer)) = &mut self.pipe else { return Ok(None) };
        let mut failed = false;
        let both_ns = each_ns(clock, LARGE, || {
            // One write fills it, unless this user has too many pipes.
            let filled = writer.write(&self.buffer).unwrap_or(0);
            failed |= filled < LARGE_BYTES || reader.read_exact(&mut self.buffer).is_err();
        })?;
        let page_ns = (both_ns / 2.0 - first_ns) / (PAGES - 1.0);
        Ok((!failed).then_some((Metric::PipePage, page_ns.max(1.0))))
    }
}
