#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod address;
pub mod arguments;
pub mod bandwidth;
pub mod cache;
mod channels;
pub mod cost;
pub mod counters;
pub mod curve;
mod elsewhere;
pub mod engine;
pub mod gate;
mod leaving;
pub mod load;
pub mod machine;
pub mod marker;
mod nested;
pub mod others;
pub mod outcome;
pub mod owners;
mod page_tables;
mod paths;
pub mod phase_names;
pub mod pipeline;
mod predictor;
pub mod probe;
mod recent_pages;
mod regrouped;
mod sample;
mod seats;
mod short;
mod sleep;
pub mod space;
pub mod stretches;
mod tlb;
mod translations;
mod turn;
mod vcpu;
