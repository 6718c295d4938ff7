//! Intervals, effects, tests and verdicts for measurements.
