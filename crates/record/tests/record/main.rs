//! Documents: complete, damaged and from earlier versions.

mod cut;
mod emulated;
mod experiments;
mod forms;
mod kept;
mod kinds;
mod names;
mod programs;
mod ranked;
mod samples;
mod scaled;
mod settings;
mod studied;
mod views;
