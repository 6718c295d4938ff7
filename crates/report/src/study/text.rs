//! A study for the terminal, and as Markdown.

use numalab_record::shell::command_line;

use super::StudyPage;
use super::words::{self, Tone};
use super::{method, placeholder, tables};
use crate::markdown;
use crate::number::utc;
use crate::table::Table;
use crate::terminal::Style;
use crate::terminal::layout::{hanging, table, wrap};
use numalab_analysis::study::EffectKind;

impl StudyPage<'_> {
    /// The study as text of at most 80 columns: the answers, and what they rest on.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let run = &self.document.run;
        let mut out = format!("{}\n", style.heading(&wrap(&run.question, 0)));
        for notice in self.notices() {
            out.push_str(&format!("{}\n", style.warning(&wrap(notice, 0))));
        }
        for sentence in words::conclusions(self) {
            let title = match sentence.tone {
                Tone::Good => style.good(&sentence.title),
                Tone::Bad => style.bad(&sentence.title),
                Tone::Settled | Tone::Open => style.heading(&sentence.title),
            };
            out.push_str(&format!("\n{title}\n{}\n", hanging("", &sentence.text, 2)));
        }
        let answered = self.answers().next().map(|(_, effect)| effect.kind);
        let further = [EffectKind::Interaction, EffectKind::Trend];
        let further = further.into_iter().filter(|kind| Some(*kind) != answered);
        let effects = self.answers().chain(further.flat_map(|kind| self.effects(kind)));
        for part in tables::short(effects) {
            let caption = style.faint(&wrap(&part.caption, 0));
            out.push_str(&format!("\n{caption}\n{}", table(&part, style)));
        }
        for sentence in self.grounds() {
            out.push_str(&format!("\n{}\n", wrap(&sentence, 0)));
        }
        out
    }

    /// The study as Markdown: a platform table, a table for each benchmark with verdicts in
    /// colour and words, and what they rest on.
    #[must_use]
    pub fn markdown(&self) -> String {
        let run = &self.document.run;
        let escape = markdown::escape;
        let mut out = format!("# {}\n\n", escape(&run.question));
        for sentence in words::conclusions(self) {
            out.push_str(&format!(
                "- **{}:** {}\n",
                escape(&sentence.title),
                escape(&sentence.text)
            ));
        }
        for notice in self.notices() {
            out.push_str(&format!("\n> {}\n", escape(notice)));
        }
        if let Some(note) = &run.note {
            out.push_str(&format!("\n{}\n", markdown::lines(note.trim())));
        }
        out.push_str("\n# Platform\n");
        out.push_str(&markdown::table(&tables::platform(self)));
        out.push_str("\n# Test results\n");
        for (index, workload) in run.workloads.iter().enumerate() {
            let command = markdown::code(&command_line(&workload.command));
            out.push_str(&format!("\n**{}**: {command}\n", escape(&workload.name)));
            for sentence in placeholder::sentences(run, workload) {
                out.push_str(&format!("\n{}\n", escape(&sentence)));
            }
            for subject in self.subjects.iter().filter(|subject| subject.workload == index) {
                out.push_str(&markdown::table(&tables::treatments(
                    self,
                    subject,
                    tables::coloured,
                )));
            }
            if let Some(counters) = tables::counters(self, index) {
                out.push_str(&markdown::table(&counters));
            }
        }
        out.push_str("\n# What the verdicts rest on\n");
        for sentence in self.grounds() {
            out.push_str(&format!("\n{}\n", escape(&sentence)));
        }
        for part in self.full_tables() {
            out.push_str(&markdown::table(&part));
        }
        for sentence in method::sentences(self) {
            out.push_str(&format!("\n{}\n", escape(&sentence)));
        }
        out
    }

    /// What the answers rest on, in sentences.
    pub(super) fn grounds(&self) -> Vec<String> {
        let run = &self.document.run;
        let mut sentences: Vec<String> = words::progress_sentence(self).into_iter().collect();
        sentences.extend(words::aa_sentence(self));
        sentences.push(words::disturbance_sentence(self));
        sentences.push(format!(
            "Begun {}, seed {}, plan {}, numalab {}.",
            utc(run.started_unix_ms),
            run.seed,
            run.plan,
            run.version
        ));
        sentences
    }

    /// Every table but those of single metrics.
    pub(super) fn full_tables(&self) -> Vec<Table> {
        let effects = EffectKind::ALL.map(|kind| tables::effects(self, kind));
        let rest = [
            tables::aa(self),
            tables::disturbed(self),
            tables::evidence(self),
            tables::environment(self),
        ];
        effects.into_iter().chain(rest).filter(|table| !table.rows.is_empty()).collect()
    }
}
