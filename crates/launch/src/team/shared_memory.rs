//! The transport among the ranks of one host: shared memory.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use numalab_host::{SharedWords, remove_abandoned};

use super::TeamError;

/// Words of the header, which [`SLOT`] words for each rank follow.
const HEAD: usize = 8;
const ARRIVED: usize = 0;
const GENERATION: usize = 1;
const GAVE_UP: usize = 2;
const ATTACHED: usize = 3;
const DONE: usize = 4;
/// Words per rank: process, its start time, its number, remaining bytes, and the message.
const SLOT: usize = 2048;
const PROCESS: usize = 0;
const BORN: usize = 1;
const NUMBER: usize = 2;
const LEFT: usize = 3;
const MESSAGE: usize = 4;
const MESSAGE_BYTES: usize = (SLOT - MESSAGE) * 8;
/// Interval at which a waiting rank checks that the others are alive.
const LOOK: Duration = Duration::from_millis(100);

/// The shared memory of a host, and this rank's place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedMemoryEndpoint {
    pub path: PathBuf,
    pub local_rank: usize,
    pub local_size: usize,
}

/// Removes files of this user's earlier starts that were killed before all ranks had joined. Names
/// of starts differ only after the last `-`.
fn remove_abandoned_starts(path: &Path) {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let (Some(directory), Some((prefix, _))) = (path.parent(), name.rsplit_once('-')) {
        remove_abandoned(directory, &format!("{prefix}-"));
    }
}

#[derive(Debug)]
pub(super) struct SharedMemoryTransport {
    words: SharedWords,
    local_rank: usize,
    local_size: usize,
    ranks: Vec<usize>,
    finish_lines: u64,
}

impl SharedMemoryTransport {
    /// Attaches to the memory and waits until all ranks have; then removes its file.
    pub fn attach(
        place: &SharedMemoryEndpoint,
        rank: usize,
        limit: Duration,
    ) -> Result<Self, TeamError> {
        let &SharedMemoryEndpoint { ref path, local_rank, local_size } = place;
        if local_rank == 0 {
            remove_abandoned_starts(path);
        }
        let words = SharedWords::open(path, HEAD + local_size * SLOT).map_err(|error| {
            TeamError::Place { place: path.display().to_string(), reason: error.to_string() }
        })?;
        let mut shared_memory =
            Self { words, local_rank, local_size, ranks: Vec::new(), finish_lines: 0 };
        let own = std::process::id();
        let slot = shared_memory.slot(local_rank);
        slot[BORN].store(birth_of(own).unwrap_or(0), Ordering::Relaxed);
        slot[NUMBER].store(rank as u64, Ordering::Relaxed);
        slot[PROCESS].store(u64::from(own), Ordering::Release);
        shared_memory.head(ATTACHED).fetch_add(1, Ordering::AcqRel);
        let came = shared_memory.wait_for_all(rank, path, limit);
        if came.is_err() || shared_memory.is_first() {
            // A later start must not find the remains of this one.
            let _ = std::fs::remove_file(path);
        }
        came?;
        shared_memory.ranks = (0..local_size)
            .map(|index| shared_memory.slot(index)[NUMBER].load(Ordering::Relaxed))
            .map(|number| usize::try_from(number).unwrap_or(usize::MAX))
            .collect();
        Ok(shared_memory)
    }

    fn wait_for_all(&self, rank: usize, path: &Path, limit: Duration) -> Result<(), TeamError> {
        let expected = self.local_size;
        let deadline = Instant::now() + limit;
        loop {
            let present = usize::try_from(self.head(ATTACHED).load(Ordering::Acquire)).unwrap_or(0);
            if present == expected {
                return Ok(());
            }
            if Instant::now() > deadline || present > expected {
                let place = path.display().to_string();
                return Err(TeamError::NotAllCame {
                    rank,
                    present,
                    expected,
                    what: "ranks",
                    place,
                });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns true if this is the host's first rank.
    pub fn is_first(&self) -> bool {
        self.local_rank == 0
    }

    /// Returns the number of ranks on this host.
    pub fn size(&self) -> usize {
        self.local_size
    }

    /// Returns their numbers among all ranks.
    pub fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// Makes the other ranks stop waiting.
    pub fn give_up(&self) {
        self.head(GAVE_UP).store(1, Ordering::Release);
    }

    /// Waits until all ranks of this host have called it.
    pub fn barrier(&self) -> Result<(), TeamError> {
        let generation = self.head(GENERATION).load(Ordering::Acquire);
        let arrived = self.head(ARRIVED).fetch_add(1, Ordering::AcqRel) + 1;
        if arrived == self.local_size as u64 {
            self.head(ARRIVED).store(0, Ordering::Relaxed);
            // Pairs with the loads of waiting ranks, which then see all earlier writes.
            self.head(GENERATION).store(generation + 1, Ordering::Release);
            return Ok(());
        }
        self.wait_while(|| self.head(GENERATION).load(Ordering::Acquire) == generation, || {})
    }

    /// Waits while the condition holds, calling `work` between checks.
    fn wait_while(
        &self,
        goes_on: impl Fn() -> bool,
        mut work: impl FnMut(),
    ) -> Result<(), TeamError> {
        let (mut turns, mut looked) = (0_u32, Instant::now());
        while goes_on() {
            work();
            turns = turns.saturating_add(1);
            match turns {
                ..2_000 => std::hint::spin_loop(),
                2_000..4_000 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(50)),
            }
            if turns.is_multiple_of(64) && looked.elapsed() > LOOK {
                match self.look_round() {
                    // A rank that has passed this point may have ended since.
                    Err(error) if goes_on() => return Err(error),
                    _ => looked = Instant::now(),
                }
            }
        }
        Ok(())
    }

    /// Fails if a rank gave up or has ended.
    fn look_round(&self) -> Result<(), TeamError> {
        if self.head(GAVE_UP).load(Ordering::Acquire) != 0 {
            return Err(TeamError::GaveUp);
        }
        for index in 0..self.local_size {
            let slot = self.slot(index);
            let process = slot[PROCESS].load(Ordering::Acquire);
            let process = u32::try_from(process).unwrap_or(0);
            if birth_of(process) != Some(slot[BORN].load(Ordering::Relaxed)) {
                let rank = self.ranks.get(index).copied().unwrap_or(index);
                // It may have given up before it ended, which is the more specific reason.
                if self.head(GAVE_UP).load(Ordering::Acquire) != 0 {
                    return Err(TeamError::GaveUp);
                }
                return Err(TeamError::Gone { rank, process });
            }
        }
        Ok(())
    }

    /// Gathers the bytes of every rank of this host, by local rank, in pieces that fit a slot; each
    /// piece takes two barriers.
    pub fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TeamError> {
        let mut all: Vec<Vec<u8>> = vec![Vec::new(); self.local_size];
        let mut rest = bytes;
        loop {
            let (piece, after) = rest.split_at(rest.len().min(MESSAGE_BYTES));
            let slot = self.slot(self.local_rank);
            slot[LEFT].store(rest.len() as u64, Ordering::Relaxed);
            store(&slot[MESSAGE..], piece);
            self.barrier()?;
            let mut most = 0;
            for (index, message) in all.iter_mut().enumerate() {
                let slot = self.slot(index);
                let left = slot[LEFT].load(Ordering::Relaxed);
                let left = usize::try_from(left).unwrap_or(0);
                load(&slot[MESSAGE..], left.min(MESSAGE_BYTES), message);
                most = most.max(left);
            }
            self.barrier()?;
            if most <= MESSAGE_BYTES {
                return Ok(all);
            }
            rest = after;
        }
    }

    /// Calls `work` until all ranks of this host have called this function.
    pub fn work_until_all_are_done(&mut self, work: impl FnMut()) -> Result<(), TeamError> {
        self.finish_lines += 1;
        let all = self.finish_lines * self.local_size as u64;
        self.head(DONE).fetch_add(1, Ordering::AcqRel);
        self.wait_while(|| self.head(DONE).load(Ordering::Acquire) < all, work)
    }

    fn head(&self, index: usize) -> &AtomicU64 {
        &self.words.words()[index]
    }

    fn slot(&self, index: usize) -> &[AtomicU64] {
        &self.words.words()[HEAD + index * SLOT..][..SLOT]
    }
}

impl Drop for SharedMemoryTransport {
    fn drop(&mut self) {
        // A rank that unwinds or returns early; a rank that left in order is not waited for.
        self.give_up();
    }
}

/// Stores bytes in words. Relaxed is sufficient: the barrier that follows orders the stores.
fn store(words: &[AtomicU64], bytes: &[u8]) {
    for (word, chunk) in words.iter().zip(bytes.chunks(8)) {
        let mut whole = [0; 8];
        whole[..chunk.len()].copy_from_slice(chunk);
        word.store(u64::from_le_bytes(whole), Ordering::Relaxed);
    }
}

fn load(words: &[AtomicU64], length: usize, into: &mut Vec<u8>) {
    let end = into.len() + length;
    for word in &words[..length.div_ceil(8)] {
        into.extend(word.load(Ordering::Relaxed).to_le_bytes());
    }
    into.truncate(end);
}

/// Returns a process's start time in clock ticks since boot (`proc_pid_stat(5)`); `None` if it does
/// not exist or is a zombie.
pub(super) fn birth_of(process: u32) -> Option<u64> {
    let stat = numalab_host::proc::Stat::of(process)?;
    (!stat.has_ended()).then_some(stat.started_ticks)
}
