//! The host's side: reads the kernel's output, and converts it to records.

mod document;
mod text;

pub use document::Context;

use std::boxed::Box;
use std::string::{String, ToString};
use std::vec::Vec;

use numalab_topology::{Distances, Finding, Machine};

use crate::event::{Boot, Event, Fill, Guest, Heap, NodeRow, Refill, Run, Storm, Stream, Window};
use crate::wire::{Decoder, WireError, WireLine, unhex};

#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The state after booting; `None` if it did not boot.
    pub boot: Option<Boot>,
    /// The machine as the kernel saw it, with its free memory.
    pub machine: Machine,
    /// The fallback order of each node, by index.
    pub orders: Vec<Vec<u32>>,
    /// Odd or wrong facts.
    pub findings: Vec<Finding>,
    pub windows: Vec<Window>,
    /// Runs of `test_numa`.
    pub runs: Vec<Run>,
    pub storms: Vec<Storm>,
    pub streams: Vec<Stream>,
    pub guests: Vec<Guest>,
    /// Stretches of the exhaustion.
    pub fills: Vec<Fill>,
    /// The free frames when memory was exhausted, and after all were freed.
    pub refill: Option<Refill>,
    /// The heap's dump, if it was requested.
    pub heap: Vec<u8>,
    /// The workload that failed, with the reason.
    pub failure: Option<(String, String)>,
}

/// Reasons why a kernel's lines are not valid results.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A line is damaged or missing.
    #[error(transparent)]
    Frame(#[from] WireError),
    /// An undamaged line has unknown content.
    #[error("result `{json}`: {source}")]
    Content { json: String, source: serde_json::Error },
    #[error("the heap dump continues at byte {found}, expected byte {expected}")]
    Heap {
        /// Start of the piece.
        found: u64,
        /// End of the piece before it.
        expected: u64,
    },
}

/// Reads a kernel's lines as they arrive.
#[derive(Debug, Default)]
pub struct Reader {
    decoder: Decoder,
    results: Results,
}

#[derive(Debug)]
pub enum KernelMessage {
    Result(Box<Event>),
    Text(String),
    /// The last line.
    End,
}

impl Reader {
    pub fn line(&mut self, line: &str) -> Result<KernelMessage, ResultsError> {
        let json = match self.decoder.line(line)? {
            WireLine::Text(text) => return Ok(KernelMessage::Text(text.to_string())),
            WireLine::End => return Ok(KernelMessage::End),
            WireLine::Result(json) => json,
        };
        let content = |source| ResultsError::Content { json: json.to_string(), source };
        let event: Event = serde_json::from_str(json).map_err(content)?;
        self.results.take(event.clone())?;
        Ok(KernelMessage::Result(Box::new(event)))
    }

    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Returns all results; `None` unless the last line has arrived.
    pub fn finish(self) -> Option<Results> {
        self.decoder.has_ended().then_some(self.results)
    }
}

impl Results {
    fn take(&mut self, event: Event) -> Result<(), ResultsError> {
        match event {
            Event::Boot(boot) => self.boot = Some(boot),
            Event::Node(row) => self.take_node(row),
            Event::Cpu(cpu) => self.machine.cpus.push(cpu),
            Event::Range(range) => self.machine.ranges.push(range),
            Event::Finding(finding) => self.findings.push(finding),
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

    fn take_node(&mut self, row: NodeRow) {
        let from = self.machine.nodes.len();
        if self.machine.distances.is_empty() {
            self.machine.distances = Distances::unknown(row.distances.len());
        }
        for (to, distance) in row.distances.iter().enumerate() {
            self.machine.distances.set(from, to, *distance);
        }
        self.machine.nodes.push(row.node);
        self.orders.push(row.order);
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

    use numalab_topology::{Cpu, CpuId, Node};
    use proptest::prelude::*;

    use super::*;
    use crate::wire::Encoder;

    /// Returns some lines in the form that a kernel prints.
    fn sample_lines() -> Vec<String> {
        let node = Node { cpus: [CpuId(0)].into_iter().collect(), ..Node::default() };
        let heap = |offset, hex: &str| Event::Heap(Heap { offset, hex: hex.to_string() });
        let said = [
            Event::Node(NodeRow { node, distances: [10].into(), order: [0].into() }),
            Event::Cpu(Cpu { apic_id: Some(7), ..Cpu::default() }),
            heap(0, "0aff"),
            Event::Refill(Refill { before: 3, refused_at: 0, after: 3 }),
            heap(3, "00"),
        ];
        said.iter().map(|event| serde_json::to_string(event).unwrap()).collect()
    }

    fn sent(results: &[String]) -> String {
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
    fn printed_results_are_read() {
        let results = read(&sent(&sample_lines()[..4])).unwrap().unwrap();
        assert_eq!((results.machine.nodes.len(), results.machine.cpus[0].apic_id), (1, Some(7)));
        assert_eq!(
            (results.machine.distances.get(0, 0), &results.orders[0][..]),
            (Some(10), &[0][..])
        );
        assert_eq!((results.heap.as_slice(), results.refill.unwrap().before), (&[10, 255][..], 3));
    }

    #[test]
    fn an_undamaged_line_with_unknown_content_is_quoted() {
        for json in [r#"{"weather":{}}"#, r#"{"cpu":{"id":-1}}"#, "[]", ""] {
            let error = read(&sent(&[json.to_string()])).unwrap_err().to_string();
            assert!(error.starts_with(&format!("result `{json}`: ")), "{error}");
        }
    }

    #[test]
    fn a_dump_with_a_piece_missing_is_refused() {
        let [_, _, first, _, gap] = sample_lines().try_into().unwrap();
        let error = read(&sent(&[first, gap])).unwrap_err().to_string();
        assert_eq!(error, "the heap dump continues at byte 3, expected byte 2");
    }

    proptest! {
        #[test]
        fn truncated_or_changed_output_is_never_a_complete_result(
            cut in 0_usize..2000, place in 0_usize..2000, byte in b' '..b'~',
        ) {
            let whole = sent(&sample_lines()[..4]);
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
