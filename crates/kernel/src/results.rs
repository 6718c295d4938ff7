//! The other side: what the kernel says, read, and turned into records.

mod document;
mod event;
mod text;

pub use document::Context;
pub use event::{Boot, Event, Fill, Guest, Heap, Refill, Run, Storm, Stream, Window};

use std::boxed::Box;
use std::string::{String, ToString};
use std::vec::Vec;

use numalab_topology::{Finding, Machine};

use crate::wire::{Decoder, Line, WireError, unhex};

/// Everything that a kernel has said.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// How it came up; `None` if it did not.
    pub boot: Option<Boot>,
    /// The machine as it saw it, with the memory that was free.
    pub machine: Machine,
    /// The order in which nodes stand in for each node, by position.
    pub orders: Vec<Vec<u32>>,
    /// What was odd or wrong.
    pub findings: Vec<Finding>,
    /// Cpus that did not start.
    pub dead_cpus: Vec<u32>,
    /// Windows of chases.
    pub windows: Vec<Window>,
    /// Runs of `test_numa`.
    pub runs: Vec<Run>,
    /// Storms.
    pub storms: Vec<Storm>,
    /// Streams.
    pub streams: Vec<Stream>,
    /// Guests.
    pub guests: Vec<Guest>,
    /// Stretches of the exhaustion.
    pub fills: Vec<Fill>,
    /// How the exhaustion ended.
    pub refill: Option<Refill>,
    /// The heap's dump, if it was asked for.
    pub heap: Vec<u8>,
    /// The workload that failed, and why.
    pub failure: Option<(String, String)>,
}

/// Why a kernel's lines are no results.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A line is damaged or missing.
    #[error(transparent)]
    Frame(#[from] WireError),
    /// A sound line holds something unknown.
    #[error("result `{json}`: {source}")]
    Content {
        /// The result.
        json: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A piece of the heap dump is missing.
    #[error("the heap dump goes on at byte {found}, expected byte {expected}")]
    Heap {
        /// Where the piece begins.
        found: u64,
        /// Where the one before it ended.
        expected: u64,
    },
}

/// Reads a kernel's lines as they come.
#[derive(Debug, Default)]
pub struct Reader {
    decoder: Decoder,
    results: Results,
}

/// What a line turned out to be.
#[derive(Debug)]
pub enum Said {
    /// A result, which was taken in.
    Result(Box<Event>),
    /// Text for people.
    Text(String),
    /// The last line.
    End,
}

impl Reader {
    /// Takes the next line in.
    ///
    /// # Errors
    /// [`ResultsError`].
    pub fn line(&mut self, line: &str) -> Result<Said, ResultsError> {
        let json = match self.decoder.line(line)? {
            Line::Text(text) => return Ok(Said::Text(text.to_string())),
            Line::End => return Ok(Said::End),
            Line::Result(json) => json,
        };
        let content = |source| ResultsError::Content { json: json.to_string(), source };
        let event: Event = serde_json::from_str(json).map_err(content)?;
        self.results.take(event.clone())?;
        Ok(Said::Result(Box::new(event)))
    }

    /// What was said so far.
    #[must_use]
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Everything; `None` unless the last line has come.
    #[must_use]
    pub fn finish(self) -> Option<Results> {
        self.decoder.has_ended().then_some(self.results)
    }
}

impl Results {
    fn take(&mut self, event: Event) -> Result<(), ResultsError> {
        match event {
            Event::Boot(boot) => self.boot = Some(boot),
            Event::Node(node) => {
                self.orders.push(node.order.clone());
                node.join(&mut self.machine);
            }
            Event::Cpu(cpu) => {
                if !cpu.started {
                    self.dead_cpus.push(cpu.cpu);
                }
                cpu.join(&mut self.machine);
            }
            Event::Range(range) => range.join(&mut self.machine),
            Event::Finding(finding) => self.findings.push(finding.into()),
            Event::Window(window) => self.windows.push(window),
            Event::Run(run) => self.runs.push(run),
            Event::Storm(storm) => self.storms.push(storm),
            Event::Stream(stream) => self.streams.push(stream),
            Event::Guest(guest) => self.guests.push(guest),
            Event::Fill(fill) => self.fills.push(fill),
            Event::Refill(refill) => self.refill = Some(refill),
            Event::Failure { work, message } => self.failure = Some((work, message)),
            Event::Heap(heap) => self.take_heap(&heap)?,
        }
        Ok(())
    }

    fn take_heap(&mut self, heap: &Heap) -> Result<(), ResultsError> {
        let expected = self.heap.len() as u64;
        let piece = unhex(&heap.hex).filter(|_| heap.offset == expected);
        let piece = piece.ok_or(ResultsError::Heap { found: heap.offset, expected })?;
        self.heap.extend(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    use proptest::prelude::*;

    use super::*;
    use crate::wire::Encoder;

    const SAID: [&str; 4] = [
        r#"{"t":"node","node":0,"memory_bytes":4096,"cpus":[0],"distances":[10],"order":[0]}"#,
        r#"{"t":"cpu","cpu":0,"apic":0,"node":0,"started":false}"#,
        r#"{"t":"heap","offset":0,"hex":"0aff"}"#,
        r#"{"t":"refill","work":"exhaust","before":3,"refused_at":0,"after":3}"#,
    ];

    fn sent(results: &[&str]) -> String {
        let (mut encoder, mut text) = (Encoder::default(), String::new());
        for json in results {
            encoder.result(json, &mut text).unwrap();
        }
        encoder.end(&mut text).unwrap();
        text
    }

    fn read(text: &str) -> Result<Option<Results>, ResultsError> {
        let mut reader = Reader::default();
        text.lines().try_for_each(|line| reader.line(line).map(drop))?;
        Ok(reader.finish())
    }

    #[test]
    fn what_was_said_is_taken_in() {
        let results = read(&sent(&SAID)).unwrap().unwrap();
        assert_eq!((results.machine.nodes.len(), results.dead_cpus.len()), (1, 1));
        assert_eq!((results.heap.as_slice(), results.refill.unwrap().before), (&[10, 255][..], 3));
    }

    #[test]
    fn a_sound_line_with_something_unknown_in_it_is_quoted() {
        for json in [r#"{"t":"weather"}"#, r#"{"t":"cpu","cpu":-1}"#, "[]", ""] {
            let error = read(&sent(&[json])).unwrap_err().to_string();
            assert!(error.starts_with(&format!("result `{json}`: ")), "{error}");
        }
    }

    #[test]
    fn a_dump_with_a_piece_missing_is_refused() {
        let gap = r#"{"t":"heap","offset":3,"hex":"00"}"#;
        let error = read(&sent(&[SAID[2], gap])).unwrap_err().to_string();
        assert_eq!(error, "the heap dump goes on at byte 3, expected byte 2");
    }

    proptest! {
        #[test]
        fn what_is_cut_or_changed_is_never_a_whole_result(
            cut in 0_usize..1000, place in 0_usize..1000, byte in b' '..b'~',
        ) {
            let whole = sent(&SAID);
            let cut = cut % (whole.len() - 1);
            prop_assert!(!matches!(read(&whole[..cut]), Ok(Some(_))));
            let mut changed = whole.clone().into_bytes();
            let place = place % changed.len();
            let is_same = changed[place] == byte;
            changed[place] = byte;
            let changed = String::from_utf8(changed).unwrap();
            prop_assert!(is_same || !matches!(read(&changed), Ok(Some(_))));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "(@numalab(-end)? [0-9a-f \\n{}\":]{0,40}|.{0,40})") {
            let _ = read(&text);
        }
    }
}
