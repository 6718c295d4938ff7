//! Two computations on large samples, one on each of two threads.

use std::panic::resume_unwind;
use std::thread;

/// Number of values above which a thread saves more than it costs.
const LARGE: usize = 1 << 16;

/// Computes both, one on a second thread if the number of values that they read is large.
///
/// # Panics
/// If either does.
pub fn both<A: Send, B>(
    values: usize,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B,
) -> (A, B) {
    if values < LARGE {
        return (first(), second());
    }
    thread::scope(|scope| {
        let first = scope.spawn(first);
        let second = second();
        (first.join().unwrap_or_else(|panic| resume_unwind(panic)), second)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_take_one_thread_and_many_take_two() {
        let threads = |values| both(values, || thread::current().id(), || thread::current().id());
        let (first, second) = threads(LARGE - 1);
        assert_eq!(first, second);
        let (first, second) = threads(LARGE);
        assert_ne!(first, second);
    }
}
