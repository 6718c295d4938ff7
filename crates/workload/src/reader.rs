//! Conversion of a workload's output to readings.

use numalab_record::study::{Quantity, Reading};

use serde::{Deserialize, Serialize};

use crate::catalogue::ToolReader;
use crate::error::OutputError;
use crate::expression::Expression;
use crate::finished::Finished;
use crate::json;
use crate::own::{OwnMetric, Source};
use crate::pattern::Pattern;

/// The reader of a workload's output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reader {
    Tool(ToolReader),
    Own(Vec<OwnMetric>),
}

impl Reader {
    /// Returns all readings in the output of a successful command.
    ///
    /// # Errors
    /// The problem with the output.
    pub fn read(&self, finished: &Finished<'_>) -> Result<Vec<Reading>, OutputError> {
        match self {
            Self::Tool(tool) => tool.read(finished),
            Self::Own(metrics) => metrics.iter().map(|own| read_own(own, finished)).collect(),
        }
    }

    /// Returns the metric with this name, if the output can have it.
    pub fn metric(&self, name: &str) -> Option<Quantity> {
        match self {
            Self::Tool(tool) => tool.metric(name),
            Self::Own(metrics) => {
                let own = metrics.iter().find(|own| own.quantity.metric == name);
                own.map(|own| own.quantity.clone())
            }
        }
    }
}

fn read_own(own: &OwnMetric, finished: &Finished<'_>) -> Result<Reading, OutputError> {
    let text = own.stream.text(finished);
    let name = &own.quantity.metric;
    let unreadable =
        |text: &String| OutputError::missing(name, "what the definition was checked for", text);
    let value = match &own.source {
        Source::ExitTime => finished.elapsed_s,
        Source::Json(pointer) => json::value(text, pointer)?,
        Source::Pattern(pattern) => {
            Pattern::parse(pattern).map_err(|_| unreadable(pattern))?.last(name, text)?
        }
        Source::Regex(regex) => {
            Expression::parse(regex).map_err(|_| unreadable(regex))?.last(name, text)?
        }
    };
    Ok(own.quantity.clone().at(value))
}
