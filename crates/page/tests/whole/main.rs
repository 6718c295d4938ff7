//! Pages of every kind of content, and every format of them, compared with what they were.

mod any;
mod charts;
mod memory;
mod numbers;
mod parts;
mod private;
mod rows;
mod shown;
