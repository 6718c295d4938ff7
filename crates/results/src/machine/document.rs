//! The JSON document of a machine file compared with a run.

use serde::{Deserialize, Serialize};

use super::MachineComparison;
use super::words::words;

/// A machine file compared with a run, figure by figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ComparedMachine {
    /// The machine file, and the run or the other machine file.
    #[serde(default = "unnamed")]
    pub names: [String; 2],
    /// The margin in percent: smaller differences count as none.
    pub margin_percent: f64,
    /// All figures that either side has.
    pub pairs: Vec<FigurePair>,
}

/// Returns the names for documents that have none.
fn unnamed() -> [String; 2] {
    ["machine file", "run"].map(str::to_owned)
}

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FigurePair {
    /// The figure in words: `latency from node 0 to node 1`.
    pub what: String,
    /// The unit of both values.
    pub unit: String,
    /// The machine file's value; `None` if it has none.
    pub file: Option<f64>,
    /// The run's value; `None` if it has none.
    pub result: Option<f64>,
    /// The excess of the run over the file, in percent.
    pub percent: Option<f64>,
}

impl MachineComparison {
    /// Returns the document, which has each figure in words.
    pub fn document(&self, names: [String; 2]) -> ComparedMachine {
        let pair = |pair: &super::FigurePair| FigurePair {
            what: words(&pair.what),
            unit: pair.what.unit().to_owned(),
            file: pair.file,
            result: pair.result,
            percent: pair.percent,
        };
        let pairs = self.pairs.iter().map(pair).collect();
        ComparedMachine { names, margin_percent: self.margin_percent, pairs }
    }
}
