//! The measuring loops: cycles, pointer chases, memory streams and timers.
