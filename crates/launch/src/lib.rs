#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod bind;
pub mod identity;
