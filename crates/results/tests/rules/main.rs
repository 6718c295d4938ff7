//! Rules at their limits: values that are just reported, and values that just are not.

mod captured;
mod captured_core;
mod compared;
mod explore_guests;
mod explore_heap;
mod explore_nodes;
mod explore_process;
mod fleet;
mod health_borders;
#[path = "../measured/mod.rs"]
mod measured;
mod run_figures;
mod run_lab;
mod run_loaded;
mod run_oddities;
mod samples;
mod scaling_figures;
mod scaling_lab;
mod scaling_rules;
mod study;
mod study_lab;
