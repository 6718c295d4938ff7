//! Pages with every kind of content, in every format, compared with earlier output.

mod any;
mod charts;
mod memory;
mod numbers;
mod parts;
mod private;
mod rows;
mod shown;
