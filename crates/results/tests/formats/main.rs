//! Every format of every kind of result, compared with its golden file.

mod advice;
mod checked;
mod explored;
mod fleet;
mod health;
mod kept;
mod planned;
mod process;
mod profiled;
mod sampled;
mod whole;
