//! Pages of knobs, probes and ACPI tables.

use numalab_page::number::{count, figure, size};
use numalab_page::rows::{Field, Rows};
use numalab_page::{Lead, Mood, Page, Panel, Part, Style, Table};
use numalab_record::NoEffect;
use numalab_record::system::{
    AcpiShown, AcpiTable, BalancingProbed, BundledMachine, KnobList, KnobNow, KnobState,
    MachineList, ProbedPlace,
};

use super::topology::odd;
use crate::document::document_of;
use crate::report::Report;

impl Report for KnobList {
    fn page(&self) -> Page {
        let part = |title: &str, why: &str, acts: bool| {
            let knobs = self.knobs.iter().filter(|knob| knob.acts == acts);
            Part::of(title, vec![Panel::table(knob_table(why, knobs))])
        };
        let parts =
            [part("Can act here", "description", true), part("Cannot act here", "because", false)];
        Page {
            brand: "numalab knobs".to_owned(),
            title: "Kernel settings that affect memory".to_owned(),
            parts: parts.into_iter().flatten().collect(),
            whole: true,
            ..Page::default()
        }
    }

    document_of!(Knobs);

    fn rows(&self) -> Option<Rows> {
        let row = |knob: &KnobNow| {
            vec![
                knob.name.clone(),
                knob_value(knob.state, knob.value.as_deref()).to_owned(),
                knob.acts.to_string(),
                knob.why_not.as_ref().map(no_effect).unwrap_or_default(),
                knob.summary.clone(),
                knob.files.join(" "),
            ]
        };
        let columns = ["value", "acts", "why_not", "summary", "files"];
        Some(Rows::new("knob").labels(["knob"]).texts(columns).rows(self.knobs.iter().map(row)))
    }
}

impl Report for MachineList {
    fn page(&self) -> Page {
        let row = |machine: &BundledMachine| vec![machine.name.clone(), machine.title.clone()];
        let table = Table::new("for --topology and --emulate-like").words("name").words("machine");
        let table = table.rows(self.machines.iter().map(row));
        Page {
            brand: "numalab machine list".to_owned(),
            title: "The bundled machine files".to_owned(),
            parts: Part::of("Machines", vec![Panel::table(table)]).into_iter().collect(),
            whole: true,
            ..Page::default()
        }
    }

    document_of!(MachineList);

    fn terminal(&self, _: Style) -> String {
        let width = self.machines.iter().map(|machine| machine.name.len()).max().unwrap_or(0);
        let line =
            |BundledMachine { name, title }: &BundledMachine| format!("{name:width$}  {title}\n");
        self.machines.iter().map(line).collect()
    }

    fn rows(&self) -> Option<Rows> {
        let row = |machine: &BundledMachine| vec![machine.name.clone(), machine.title.clone()];
        let rows = Rows::new("machine file").labels(["name"]).texts(["title"]);
        Some(rows.rows(self.machines.iter().map(row)))
    }
}

fn knob_table<'a>(why: &str, knobs: impl Iterator<Item = &'a KnobNow>) -> Table {
    let row = |knob: &KnobNow| {
        let value = knob_value(knob.state, knob.value.as_deref()).to_owned();
        let why = knob.why_not.as_ref().map_or_else(|| knob.summary.clone(), no_effect);
        vec![knob.name.clone(), value, why]
    };
    Table::new("name, value now").words("knob").words("value").words(why).rows(knobs.map(row))
}

/// Returns the reason why a knob cannot have an effect.
pub fn no_effect(why: &NoEffect) -> String {
    let text = match why {
        NoEffect::NothingToSet => "this machine has none",
        NoEffect::NotInKernel => "this kernel does not have it",
        NoEffect::WriteOnly => "it is write-only, so it could not be restored",
        NoEffect::ReadOnly => "it is read-only",
        NoEffect::OneNode => "memory is on one node",
        NoEffect::OneTier => "all memory is in one tier",
        NoEffect::NoSwap => "there is no swap, so reclaim has no choice",
        NoEffect::NoSiblings => "this machine has no SMT siblings",
        NoEffect::TiersUnreported => "this kernel does not report which memory is in a slow tier",
        NoEffect::Denied(text) | NoEffect::Sentence(text) => text,
        NoEffect::Fixed(value) => return format!("the kernel reports {value}"),
        NoEffect::DamonInUse(found) => return format!("DAMON is in use, with {found}"),
        NoEffect::DamonTooOld(release) => {
            return format!("DAMON of Linux {release} cannot migrate pages: 6.11 and later can");
        }
    };
    text.to_owned()
}

/// Returns a knob's value in words.
pub fn knob_value(state: KnobState, value: Option<&str>) -> &str {
    match (value, state) {
        (Some(""), _) => "(empty)",
        (Some(value), _) => value,
        (None, KnobState::WriteOnly) => "(write-only)",
        (None, KnobState::Denied) => "(denied)",
        (None, KnobState::Absent | KnobState::Value) => "-",
    }
}

impl Report for BalancingProbed {
    fn page(&self) -> Page {
        let rows = self.readings.iter().map(|reading| {
            let quantity = &reading.quantity;
            vec![quantity.metric.clone(), figure(reading.value), quantity.unit.clone()]
        });
        let table = Table::new("latency right after the move and at the end, and local pages")
            .words("figure")
            .figures("value")
            .words("unit")
            .rows(rows);
        let place = |ProbedPlace { cpu, node }: ProbedPlace| format!("node {node} (cpu {cpu})");
        Page {
            brand: "numalab study probe balancing".to_owned(),
            title: "Does memory follow its thread?".to_owned(),
            meta: format!(
                "{} on {}, the thread moved to {}",
                size(self.size_bytes),
                place(self.from),
                place(self.to)
            ),
            lead: vec![answer(self)],
            parts: Part::of("Figures", vec![Panel::table(table)]).into_iter().collect(),
            ..Page::default()
        }
    }

    document_of!(Probe);

    fn rows(&self) -> Option<Rows> {
        let row = |&(at_ns, latency_ns): &(u64, f64)| vec![Field::from(at_ns), latency_ns.into()];
        Some(probe_columns().rows(self.windows_ns.iter().map(row)))
    }
}

pub(crate) fn probe_columns() -> Rows {
    Rows::new("probe window")
        .labels(["since_move_ns"])
        .values("ns", [("latency", "the mean latency of an access in the window")])
}

/// Describes whether memory followed.
fn answer(probed: &BalancingProbed) -> Lead {
    let node = probed.to.node;
    let sentence = match probed.value("local") {
        _ if probed.from.node == node => {
            "Both cpus are on the same node: nothing can move.".to_owned()
        }
        Some(local) => format!("At the end {local:.1} % of its pages are on node {node}."),
        None => format!("The number of its pages on node {node} at the end is unknown."),
    };
    Lead::new("Answer", sentence, Mood::Plain)
}

impl Report for AcpiShown {
    fn page(&self) -> Page {
        let table = |table: &AcpiTable| Part {
            title: format!("{} of {}", table.signature, table.place),
            listing: Some(format!("{}\n{}", table.header, table.entries.join("\n"))),
            ..Part::default()
        };
        let parts = self.tables.iter().map(table);
        let odd = Part::of("Anomalies", vec![Panel::table(odd(&self.findings))]);
        Page {
            brand: "numalab machine acpi".to_owned(),
            title: count(self.tables.len(), "ACPI table"),
            lead: refusals(&self.refused),
            parts: parts.chain(odd).collect(),
            whole: true,
            ..Page::default()
        }
    }

    document_of!(Acpi);

    fn rows(&self) -> Option<Rows> {
        let rows = self.tables.iter().flat_map(|table| {
            let row = |entry: &String| {
                vec![table.place.clone(), table.signature.clone(), entry.trim().to_owned()]
            };
            table.entries.iter().map(row)
        });
        Some(Rows::new("ACPI entry").labels(["place", "table"]).texts(["entry"]).rows(rows))
    }
}

fn refusals(refused: &[String]) -> Vec<Lead> {
    refused.iter().map(|refusal| Lead::new("Unreadable", refusal.as_str(), Mood::Bad)).collect()
}

/// The findings about ACPI tables, without the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcpiChecked(pub AcpiShown);

impl Report for AcpiChecked {
    fn page(&self) -> Page {
        let AcpiShown { tables, refused, findings } = &self.0;
        let mut lead = refusals(refused);
        if lead.is_empty() && findings.is_empty() {
            lead.push(Lead::new("Check", "no anomalies", Mood::Fine));
        }
        let part = Part::of("Anomalies", vec![Panel::table(odd(findings))]);
        Page {
            brand: "numalab machine acpi check".to_owned(),
            title: format!("{} checked", count(tables.len(), "ACPI table")),
            lead,
            parts: part.into_iter().collect(),
            whole: true,
            ..Page::default()
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        self.0.json()
    }

    fn rows(&self) -> Option<Rows> {
        let rows = self.0.findings.iter().map(|finding| {
            let severity = finding.severity.to_string();
            vec![severity, finding.place.clone(), finding.code.clone(), finding.message.clone()]
        });
        let columns = ["severity", "place", "code"];
        Some(Rows::new("ACPI finding").labels(columns).texts(["message"]).rows(rows))
    }
}
