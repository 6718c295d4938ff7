//! Pages of studies listed, shown and planned.

use numalab_page::number::{count, seconds_words, size, trimmed};
use numalab_page::rows::Rows;
use numalab_page::{Lead, Mood, Page, Panel, Part, Style, Table};
use numalab_record::shell::command_line;
use numalab_record::study::{
    Arm, Decision, Decisions, ListedStudy, PlannedLevel, PlannedStudy, PlannedWorkload, ShownStudy,
    StudyList, StudyTime, Visit,
};

use super::page::notice_words;
use crate::document::document_of;
use crate::report::Report;

/// Maximum number of blocks listed with their order.
const SHOWN_BLOCKS: usize = 4;

impl Report for PlannedStudy {
    fn page(&self) -> Page {
        let listed = |title: &str, lines: Vec<String>| Part {
            title: title.to_owned(),
            listing: Some(lines.join("\n")),
            ..Part::default()
        };
        let treatments = self.treatments.iter().enumerate();
        let treatments = treatments.map(|(at, name)| format!("  {}  {name}", letter(at)));
        let note = self.note.as_ref().map(|note| Part {
            title: "Note".to_owned(),
            notes: note.trim().lines().map(str::to_owned).collect(),
            ..Part::default()
        });
        let parts = [
            listed("Treatments, the baseline first", treatments.collect()),
            listed("Levels", self.levels.iter().map(level).collect()),
            listed("Workloads", self.workloads.iter().flat_map(workload).collect()),
            listed(&format!("Order, seed {}", self.seed), order(self)),
            listed("Detectable changes", decided(&self.decisions)),
        ]
        .into_iter()
        .filter(|part| part.listing.as_ref().is_some_and(|lines| !lines.is_empty()));
        Page {
            brand: format!("numalab study run {} --dry-run", self.name),
            title: self.question.clone(),
            meta: format!("On: {}", self.backend),
            lead: lead(self),
            parts: note.into_iter().chain(parts).collect(),
            ..Page::default()
        }
    }

    document_of!(StudyPlan);
}

impl Report for StudyList {
    fn page(&self) -> Page {
        let rows = self.studies.iter().map(|study| {
            vec![study.name.clone(), format!("{} ({})", study.question, time_cell(study))]
        });
        let table = Table::new("each with its blocks and time").words("study").words("question");
        let part = Part::of("Studies", vec![Panel::table(table.rows(rows))]);
        Page {
            brand: "numalab study list".to_owned(),
            title: "The bundled studies".to_owned(),
            parts: part.into_iter().collect(),
            ..Page::default()
        }
    }

    document_of!(StudyList);

    fn rows(&self) -> Option<Rows> {
        let row = |study: &ListedStudy| {
            let ListedStudy { name, question, blocks, time } = study.clone();
            vec![name, question, blocks.to_string(), time_words(&time)]
        };
        let rows = Rows::new("study").labels(["study"]).texts(["question", "blocks", "time"]);
        Some(rows.rows(self.studies.iter().map(row)))
    }
}

/// Describes size and duration: `21 blocks, about 32 s`.
fn time_cell(study: &ListedStudy) -> String {
    format!("{}, {}", count(study.blocks, "block"), time_words(&study.time))
}

impl Report for ShownStudy {
    fn page(&self) -> Page {
        let title = "The study, with all defaults".to_owned();
        let toml = Part { title, listing: Some(self.toml.clone()), ..Part::default() };
        Page {
            brand: format!("numalab study show {}", self.line.name),
            title: self.line.question.clone(),
            meta: time_cell(&self.line),
            parts: vec![toml],
            ..Page::default()
        }
    }

    document_of!(StudyDefinition);

    /// Returns the TOML alone, ready to edit and run.
    fn terminal(&self, _: Style) -> String {
        format!("# {}\n{}", time_cell(&self.line), self.toml)
    }
}

/// Describes the size of the study, and obstacles to it.
fn lead(plan: &PlannedStudy) -> Vec<Lead> {
    let blocks = count(plan.blocks.len(), "block");
    let samples = format!("{} samples in {blocks}, {}", plan.samples, time_words(&plan.time));
    let mut lead = vec![Lead::new("Plan", samples, Mood::Plain)];
    if plan.taken > 0 {
        let taken = format!("{} samples have been taken already", plan.taken);
        lead.push(Lead::new("Begun", taken, Mood::Plain));
    }
    let mut say = |name: &str, sentence: String| lead.push(Lead::new(name, sentence, Mood::Odd));
    if let Some(fewest) = plan.fewest_blocks {
        let with_added = plan.fewest_with_added.unwrap_or(fewest);
        say("Blocks", too_few_blocks([fewest, with_added]));
    }
    if let Some(reason) = &plan.cannot_run {
        say("It cannot be run now", reason.clone());
    }
    plan.notices.iter().for_each(|notice| say("Before it starts", notice_words(notice)));
    if !plan.downloads.is_empty() {
        let downloads = plan.downloads.join(", ");
        let what = format!("{downloads}; versions and sizes are not known until fetched");
        say("To be downloaded first", what);
    }
    if plan.memory_bytes > 0 {
        let memory = size(plan.memory_bytes);
        lead.push(Lead::new("Memory for guests", memory, Mood::Plain));
    }
    lead
}

/// Longest upper bound in seconds that is worth printing; a looser one says nothing about the
/// duration.
const USEFUL_MOST_S: f64 = 900.0;

/// Returns a study's duration: `about 12 min`.
pub fn time_words(time: &StudyTime) -> String {
    match time {
        StudyTime::About { seconds } => format!("about {}", seconds_words(*seconds)),
        StudyTime::Budget { seconds } => format!("{}, its budget", seconds_words(*seconds)),
        StudyTime::AtMost { seconds } if *seconds <= USEFUL_MOST_S => {
            format!("at most {} by the time limits of its workloads", seconds_words(*seconds))
        }
        StudyTime::AtMost { .. } => "the first block shows how long it takes".to_owned(),
    }
}

/// Returns the least detectable change by number of blocks, as a table in text.
fn decided(of: &Decisions) -> Vec<String> {
    let what = of.primary.as_ref().map_or("any metric", String::as_str);
    let cells = |texts: Vec<String>| -> String {
        texts.into_iter().map(|text| format!("{text:>10}")).collect()
    };
    let spreads = of.spreads_percent.iter().map(|spread| format!("{} %", trimmed(*spread)));
    let row = |row: &Decision| {
        let least = row.least_percent.iter().map(|least| match least {
            Some(percent) => format!("{percent:.1} %"),
            None => "nothing".to_owned(),
        });
        let mark = if row.is_planned { "  as planned" } else { "" };
        format!("{:>8}{}{mark}", row.blocks, cells(least.collect()))
    };
    let head = [
        format!("The smallest change in {what} that four of five studies detect,"),
        "where the changes of single blocks have a standard deviation of".to_owned(),
        format!("{:>8}{}", "blocks", cells(spreads.collect())),
    ];
    head.into_iter().chain(of.rows.iter().map(row)).collect()
}

/// Returns a warning that the blocks are too few to show any difference, with the minimum number
/// from the start, and the minimum in all if some are added later.
pub fn too_few_blocks([fewest, with_added]: [usize; 2]) -> String {
    format!(
        "too few blocks to show a difference unless values do not vary: this study's metrics and \
         changes need at least {fewest}, or {with_added} in all if some of them are added later"
    )
}

fn level(of: &PlannedLevel) -> String {
    let set: Vec<String> = of.set.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    format!("  {}={}: {}", of.factor, of.level, set.join(", "))
}

fn workload(of: &PlannedWorkload) -> Vec<String> {
    let command = format!("  {}: {}", of.name, command_line(&of.command));
    let service = of.service.as_ref();
    let service = service.map(|command| format!("    service: {}", command_line(command)));
    core::iter::once(command).chain(service).collect()
}

fn order(plan: &PlannedStudy) -> Vec<String> {
    let of_block = |(block, visits): (usize, &Vec<Visit>)| {
        let name = match block.checked_sub(plan.warm_ups) {
            None => format!("warm-up {}", block + 1),
            Some(block) => format!("block {}", block + 1),
        };
        let visits: Vec<String> = visits.iter().map(visited).collect();
        format!("  {name}: {}", visits.join(", "))
    };
    let hidden = plan.blocks.len().saturating_sub(SHOWN_BLOCKS);
    let more = (hidden > 0).then(|| format!("  ... and {}", count(hidden, "more block")));
    plan.blocks.iter().enumerate().take(SHOWN_BLOCKS).map(of_block).chain(more).collect()
}

fn visited(visit: &Visit) -> String {
    match visit.arm {
        Arm::Main => letter(visit.treatment),
        Arm::Again => format!("{} again", letter(visit.treatment)),
    }
}

/// Returns a treatment's letter: A, B, ..., Z, T27, T28.
fn letter(index: usize) -> String {
    match u8::try_from(index).ok().filter(|index| *index < 26) {
        Some(index) => char::from(b'A' + index).to_string(),
        None => format!("T{}", index + 1),
    }
}
