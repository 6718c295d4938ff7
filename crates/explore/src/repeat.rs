//! Looks that are repeated without a view on the terminal.

use std::time::{Duration, Instant};

use numalab_host::Interrupt;

/// Passes a look to `show` every `interval`, until a signal arrives or `show` returns false; returns
/// false if `look` returned `None`, because its subject has disappeared.
///
/// # Errors
/// Those of `look` and `show`.
pub fn each<L, E>(
    interval: Duration,
    interrupt: &Interrupt,
    look: &mut dyn FnMut() -> Result<Option<L>, E>,
    mut show: impl FnMut(L) -> Result<bool, E>,
) -> Result<bool, E> {
    while !interrupt.requested() {
        let Some(seen) = look()? else { return Ok(false) };
        if !show(seen)? {
            break;
        }
        interrupt.wait(interval);
    }
    Ok(true)
}

/// Looks again every `interval` for a time, and returns the last look, or the first for which
/// `is_met` returns false; `None` if `look` returned it, because its subject has disappeared. A signal
/// ends the time early.
///
/// # Errors
/// Those of `look`.
pub fn while_met<L, E>(
    mut last: L,
    (interval, time): (Duration, Duration),
    interrupt: &Interrupt,
    look: &mut dyn FnMut() -> Result<Option<L>, E>,
    is_met: impl Fn(&L) -> bool,
) -> Result<Option<L>, E> {
    let until = Instant::now() + time;
    while is_met(&last) && !interrupt.requested() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        interrupt.wait(interval.min(left));
        match look()? {
            Some(seen) => last = seen,
            None => return Ok(None),
        }
    }
    Ok(Some(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(3600);

    /// Returns looks at 1, 2 and so on up to a last number.
    fn looks(last: u32) -> impl FnMut() -> Result<Option<u32>, String> {
        let mut numbers = 1..=last;
        move || Ok(numbers.next())
    }

    #[test]
    fn lines_end_when_the_reader_the_subject_or_the_user_does() {
        let interrupt = Interrupt::never();
        let mut seen = Vec::new();
        let mut show = |number| {
            seen.push(number);
            Ok(number < 3)
        };
        assert_eq!(each(SHORT, &interrupt, &mut looks(9), &mut show), Ok(true));
        assert_eq!(each(SHORT, &interrupt, &mut looks(2), &mut show), Ok(false));
        interrupt.request();
        assert_eq!(each(SHORT, &interrupt, &mut looks(9), &mut show), Ok(true));
        assert_eq!(seen, [1, 2, 3, 1, 2]);
    }

    #[test]
    fn the_first_look_that_is_not_as_expected_or_else_the_last_is_returned() {
        let interrupt = Interrupt::never();
        let to = |last, time, met: fn(&u32) -> bool| {
            while_met(0, (SHORT, time), &interrupt, &mut looks(last), met)
        };
        assert_eq!(to(9, LONG, |number| *number < 4), Ok(Some(4)));
        assert_eq!(to(9, LONG, |_| false), Ok(Some(0)), "it does not look again");
        assert_eq!(to(2, LONG, |_| true), Ok(None));
        assert_eq!(to(9, Duration::ZERO, |_| true), Ok(Some(0)));
        interrupt.request();
        assert_eq!(to(9, LONG, |number| *number < 4), Ok(Some(0)));
    }
}
