//! Page, rows and report mail of a bisection.

use numalab_page::number::figure;
use numalab_page::rows::{Field, Holds, Rows};
use numalab_page::{Lead, Mood, Page, Panel, Part, Table};
use numalab_record::bisect::{BisectAnswer, BisectDocument, Commit, CommitSide, JudgedCommit};
use numalab_record::shell::command_line;
use numalab_record::study::Quantity;
use numalab_stats::median;

use crate::report::Report;

/// The condition of the error rate.
const BUILDS_ALIKE: &str = "The chance of naming a wrong commit assumes that all builds of a \
                            commit perform alike. Code at other addresses can change figures by 1 \
                            %: build the good commit twice, and use a margin above the difference.";

impl Report for BisectDocument {
    fn page(&self) -> Page {
        let unit = &self.quantity.unit;
        let all = [&self.good, &self.bad].into_iter().chain(&self.judged);
        let table = Table::new(format!("commits in build order; {unit}"))
            .words(["commit", "subject"])
            .figures(["samples", "median", "change", "build"])
            .words("verdict")
            .rows(all.map(row));
        let parts = [
            Part::of("Commits", vec![Panel::table(table)])
                .map(|part| part.noted(vec![BUILDS_ALIKE.to_owned()])),
            mail(self).map(|text| Part {
                title: "Mail".to_owned(),
                listing: Some(text),
                ..Part::default()
            }),
        ];
        Page {
            brand: "numalab study bisect".to_owned(),
            title: format!(
                "Which commit made {} of {} worse?",
                self.quantity.metric, self.workload
            ),
            meta: format!(
                "study {}, {}, in {}; {} commits; chance of naming a wrong one at most {} %",
                self.study,
                self.treatment,
                self.backend,
                self.candidates,
                figure(self.error_percent)
            ),
            lead: vec![answer(self)],
            parts: parts.into_iter().flatten().collect(),
            ..Page::default()
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    fn rows(&self) -> Option<Rows> {
        let all = [&self.good, &self.bad].into_iter().chain(&self.judged);
        let rows = all.flat_map(|judged| {
            let row = |(number, value): (usize, &f64)| {
                let Quantity { metric, unit, .. } = &self.quantity;
                let labels = [&judged.commit.hash, &number.to_string(), metric, unit];
                let labels = labels.map(|label| Field::from(label.as_str()));
                labels.into_iter().chain([Field::Number(*value)]).collect()
            };
            judged.samples.iter().enumerate().map(row).collect::<Vec<_>>()
        });
        Some(columns().rows(rows))
    }
}

pub(crate) fn columns() -> Rows {
    Rows::new("bisect sample")
        .labels(["commit", "sample"])
        .with(Holds::Metric, ["metric"])
        .with(Holds::Unit, ["unit"])
        .values("", [("value", "a sample of the commit")])
}

fn row(judged: &JudgedCommit) -> Vec<String> {
    vec![
        judged.commit.short().to_owned(),
        judged.commit.subject.clone(),
        judged.samples.len().to_string(),
        median(&judged.samples).map_or_else(|| "–".to_owned(), figure),
        judged.change_percent.map_or_else(|| "–".to_owned(), percent),
        format!("{} s", figure(judged.build_s)),
        side(&judged.side),
    ]
}

fn side(side: &CommitSide) -> String {
    match side {
        CommitSide::Open => "not judged".to_owned(),
        CommitSide::Good => "good".to_owned(),
        CommitSide::Bad => "bad".to_owned(),
        CommitSide::Undecided => "undecided".to_owned(),
        CommitSide::NotBuilt(reason) => format!("does not build: {reason}"),
        CommitSide::NotRun(reason) => format!("does not run: {reason}"),
    }
}

fn percent(value: f64) -> String {
    format!("{value:+.2} %")
}

fn named(commit: &Commit) -> String {
    format!("{} (\"{}\")", commit.short(), commit.subject)
}

fn answer(found: &BisectDocument) -> Lead {
    let metric = &found.quantity.metric;
    let (good, bad) = (found.good.commit.short(), found.bad.commit.short());
    let worse = found.bad.change_percent.map_or_else(String::new, |change| {
        format!("; {bad} is {} compared with {good}", percent(change))
    });
    let margin = figure(found.margin_percent);
    let (sentence, mood) = match &found.answer {
        Some(BisectAnswer::FirstBad { commit }) => {
            (format!("{metric} has been worse since {}{worse}.", named(commit)), Mood::Bad)
        }
        Some(BisectAnswer::OneOf { commits }) => {
            let names: Vec<String> = commits.iter().map(named).collect();
            (
                format!("{metric} has been worse since one of {}{worse}.", names.join(", ")),
                Mood::Odd,
            )
        }
        Some(BisectAnswer::NotWorse) => (
            format!("No commit: {metric} does not get worse by more than {margin} %{worse}."),
            Mood::Plain,
        ),
        Some(BisectAnswer::EndsUndecided) => (
            format!(
                "No commit: {} samples do not show whether {metric} is worse by more than \
                 {margin} %{worse}; take more with --samples.",
                found.most_samples
            ),
            Mood::Odd,
        ),
        Some(BisectAnswer::Interrupted) | None => {
            ("No commit: the search was interrupted.".to_owned(), Mood::Odd)
        }
    };
    Lead::new("Answer", sentence, mood)
}

/// Describes a bisection before its first build, which halves the candidates this number of times.
pub fn foreseen_words(plan: &BisectDocument, halvings: usize) -> String {
    let (good, bad) = (plan.good.commit.short(), plan.bad.commit.short());
    format!(
        "{} of {}, {}, in {}\n{} commits after {good} could be the first bad one: at most {halvings} \
         are built in addition to {good} and {bad} if all can be judged, with 3 to {} samples each \
         and one boot per sample\n",
        plan.quantity.metric,
        plan.workload,
        plan.treatment,
        plan.backend,
        plan.candidates,
        plan.most_samples,
    )
}

/// Returns the mail to the author of the first bad commit; `None` if none was found.
pub fn mail(found: &BisectDocument) -> Option<String> {
    let Some(BisectAnswer::FirstBad { commit }) = &found.answer else { return None };
    let metric = &found.quantity.metric;
    let judged = found.judged.iter().chain([&found.bad]);
    let first = judged.clone().find(|judged| judged.commit == *commit)?;
    let change = percent(first.change_percent?);
    let line = |name: &str, judged: &JudgedCommit| {
        let median = median(&judged.samples).map(figure).unwrap_or_default();
        let unit = &found.quantity.unit;
        let (short, count) = (judged.commit.short(), judged.samples.len());
        format!("  {name:<10} {short}  {median:>10} {unit}  ({count} samples)\n")
    };
    let mut text = format!(
        "To: {}\nSubject: [REGRESSION] {metric} {change} since {} (\"{}\")\n\n",
        commit.author,
        commit.short(),
        commit.subject
    );
    text += &format!(
        "Commit {}\n(\"{}\")\nmakes {metric} of {} worse, by {change}:\n\n",
        commit.hash, commit.subject, found.workload
    );
    text += &line("good", &found.good);
    text += &line("first bad", first);
    if found.bad.commit != *commit {
        text += &line("bad", &found.bad);
    }
    text += &format!(
        "\nMeasured with study {} ({}) in {}. Found by bisection of\n{} commits, of which \
         {} were built; the chance that a wrong one is named\nis at most {} %.\n\nTo reproduce:\n\n  {}\n\n#regzbot introduced: {}\n",
        found.study,
        found.treatment,
        found.backend,
        found.candidates,
        found.judged.len(),
        figure(found.error_percent),
        command_line(&found.command),
        commit.hash
    );
    Some(text)
}
