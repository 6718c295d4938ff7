#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod digest;
pub mod init;
pub mod nested_paging;
pub mod protocol;
pub mod xen;

pub use digest::sha256;
pub use protocol::{Exit, Job, Stream};
