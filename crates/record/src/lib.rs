//! The result type of numalab: measurements, their places, the proof of placement, and every raw
//! sample. It is versioned and serialised here; nothing is analysed.
//!
//! A run is stored in one directory. `run.json` holds a [`Run`], written once before the first
//! sample; `samples.csv` gets one [`Sample`] per line, and `cells.jsonl` one [`CellLine`] once a
//! cell's samples are written. Both are append-only, so that an interrupted run loses nothing that
//! was finished. [`Document`] joins the three for analysis and for JSON.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]

pub mod bisect;
mod cell;
mod cells_file;
mod civil;
mod csv;
mod document;
mod experiment;
pub mod explore;
mod fact;
mod kind;
mod launch;
mod memory_report;
mod metric;
mod no_effect;
mod pages;
mod pattern;
mod placement;
pub mod profile;
mod program;
mod ranks;
mod run;
mod sample;
pub mod scaling;
pub mod self_test;
mod shared;
pub mod shell;
pub mod study;
mod survey;
pub mod system;
mod taken;
pub mod tiering;

pub use cell::{Cell, CellId, Finished, Outcome};
pub use cells_file::{CellLine, CellsError, CompletePart, SampleLines, complete_part};
pub use civil::Civil;
pub use csv::{CSV_HEADER, CsvError, parse_samples, write_sample};
pub use document::{CellResult, Document, DocumentError};
pub use experiment::*;
pub use fact::Fact;
pub use kind::{Kind, KindError, file};
pub use launch::{Launch, RankSeat};
pub use memory_report::{
    EmulatedAccesses, EmulatedCore, EmulatedCpu, EmulatedMachine, EmulatedNode, EmulatedPhase,
    EmulatedTranslation, EmulatorCheck, EmulatorQemu, MemoryReport, MemoryReportError,
};
pub use metric::{Metric, Unit};
pub use no_effect::NoEffect;
pub use pages::{Pages, UnknownPages};
pub use pattern::{AccessPattern, PatternError};
pub use placement::{Placement, ProofMethod};
pub use program::{
    AccessWaits, AccessedAt, CodePlace, ContendedLine, Elsewhere, FirstTouches, KernelTime,
    LineUser, NodePages, NodeWaits, PagesAlike, Placed, ProgramMemory, ProgramThread, Region,
    RegionAccesses, RegionPart, Sharing, Stretch, StretchAccesses,
};
pub use ranks::{RankFigures, RankTable, mean_of};
pub use run::{Environment, Run};
pub use sample::Sample;
pub use shared::{SharedMachine, all_windows_count, counted_values, is_shared};
pub use survey::{Effort, SurveyChoice};
pub use taken::Taken;
