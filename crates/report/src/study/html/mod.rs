//! A study as one self-contained page.

mod forest;
mod order;
mod pairs;

use numalab_record::shell::command_line;

use numalab_analysis::study::Subject;

use super::StudyPage;
use super::words::{self, Tone};
use super::{method, placeholder, tables};
use crate::html::markup::{escape, table};
use crate::html::page::page;
use crate::number::{count, utc};
use crate::table::Table;

/// Metrics of which run order and pairs are drawn; the tables have all of them.
const DRAWN_SUBJECTS: usize = 24;

impl StudyPage<'_> {
    /// The study as one HTML file. The first screen has the answer; below are the
    /// intervals, every metric with run order and paired differences, the A/A arm, and the
    /// environment.
    #[must_use]
    pub fn html(&self) -> String {
        let run = &self.document.run;
        let body = format!(
            "<header>\n<p class=\"brand\">numalab study {}</p>\n<h1>{}</h1>\n<p class=\"meta\">{}\
             </p>\n</header>\n<main>\n{}{}{}{}{}</main>\n<footer>Made by numalab {}. Hover, touch \
             or step through a chart with the arrow keys for values.</footer>\n",
            escape(&run.name),
            escape(&run.question),
            escape(&self.meta()),
            self.lead(),
            self.intervals(),
            self.metrics(),
            self.grounds_section(),
            self.details(),
            escape(&run.version)
        );
        page(&run.question, &body)
    }

    fn meta(&self) -> String {
        let run = &self.document.run;
        let blocks = self.subjects.iter().map(Subject::blocks).min().unwrap_or(0);
        [
            run.world.clone(),
            count(run.treatments.len(), "treatment"),
            count(blocks, "block"),
            utc(run.started_unix_ms),
        ]
        .join(" · ")
    }

    /// The first screen: answers, then what the reader must know to believe them.
    fn lead(&self) -> String {
        let item = |class: &str, title: &str, text: &str| {
            format!("<li class=\"{class}\"><b>{}</b>{}</li>\n", escape(title), escape(text))
        };
        let mut items = String::new();
        for notice in self.notices() {
            items.push_str(&item("odd", "Before it started", notice));
        }
        for sentence in words::conclusions(self) {
            let class = match sentence.tone {
                Tone::Good => "good",
                Tone::Bad => "bad",
                Tone::Settled => "fine",
                Tone::Open => "odd",
            };
            items.push_str(&item(class, &sentence.title, &sentence.text));
        }
        if let Some(progress) = words::progress_sentence(self) {
            items.push_str(&item("odd", "Not complete", &progress));
        }
        if self.answers().any(|(_, effect)| effect.verdicts_differ()) {
            let sentence = words::disturbance_sentence(self);
            items.push_str(&item("odd", "Depends on which samples count", &sentence));
        }
        if let Some(aa) = words::aa_sentence(self) {
            items.push_str(&item("", "What this machine finds where nothing differs", &aa));
        }
        let note = self.document.run.note.as_ref();
        let note = note.map_or_else(String::new, |note| {
            format!("<p class=\"meta lines\">{}</p>\n", escape(note.trim()))
        });
        format!("<ol class=\"lead\">\n{items}</ol>\n{note}")
    }

    fn intervals(&self) -> String {
        let answers: Vec<_> = self.answers().collect();
        if answers.is_empty() {
            return String::new();
        }
        let drawn = figure(
            "drawn",
            &format!(
                "Change with its {} interval; shaded: the margin within \
                 which a change counts as none",
                words::level(self)
            ),
            &forest::chart(&answers),
        );
        let numbers = figure("small", "", &table(&tables::answers(self)));
        section("answers", "Answers", &(drawn + &numbers))
    }

    fn metrics(&self) -> String {
        let mut out = String::new();
        for (index, workload) in self.document.run.workloads.iter().enumerate() {
            let command = command_line(&workload.command);
            let mut content = format!("<pre>$ {}</pre>\n", escape(&command));
            for sentence in placeholder::sentences(&self.document.run, workload) {
                content.push_str(&format!("<p>{}</p>\n", escape(&sentence)));
            }
            let subjects: Vec<&Subject> =
                self.subjects.iter().filter(|subject| subject.workload == index).collect();
            for subject in &subjects {
                content.push_str(&self.subject(subject));
            }
            if let Some(counters) = tables::counters(self, index) {
                content.push_str(&captioned(&counters));
            }
            if !subjects.is_empty() {
                out.push_str(&section(&format!("w{index}"), &workload.name, &content));
            }
        }
        out
    }

    fn subject(&self, subject: &Subject) -> String {
        let mut content = captioned(&tables::treatments(self, subject, tables::plain));
        if self.subjects.len() <= DRAWN_SUBJECTS {
            for effect in subject
                .effects
                .iter()
                .filter(|effect| self.answers().any(|(_, answer)| std::ptr::eq(answer, *effect)))
            {
                let caption = format!(
                    "{}: the change in each block, {}",
                    subject.quantity.metric, effect.label
                );
                content.push_str(&figure("drawn", &caption, &pairs::chart(subject, effect)));
            }
            let caption = format!(
                "{} in the order of the run: drift shows here; hollow: disturbed, taken again",
                subject.quantity.metric
            );
            content.push_str(&figure("drawn", &caption, &order::chart(self, subject)));
        }
        content
    }

    fn grounds_section(&self) -> String {
        let sentences = self.grounds().into_iter().chain(method::sentences(self));
        let content: String = sentences.map(|sentence| text(&sentence)).collect();
        section("method", "What the verdicts rest on", &content)
    }

    fn details(&self) -> String {
        let folded = |part: &Table| {
            format!(
                "<details><summary>{}</summary>\n{}</details>\n",
                escape(&part.caption),
                table(part)
            )
        };
        let platform = captioned(&tables::platform(self));
        let rest: String = self.full_tables().iter().map(folded).collect();
        section("details", "Platform and every table", &(platform + &rest))
    }
}

fn section(id: &str, title: &str, content: &str) -> String {
    format!(
        "<section id=\"{id}\">\n<h2>{}</h2>\n<div class=\"panels\">\n{content}</div></section>\n",
        escape(title)
    )
}

/// A paragraph of a line of its own.
fn text(sentence: &str) -> String {
    format!("<p class=\"text\">{}</p>\n", escape(sentence))
}

fn captioned(part: &Table) -> String {
    figure("small", &part.caption, &table(part))
}

fn figure(class: &str, caption: &str, content: &str) -> String {
    let caption = if caption.is_empty() {
        String::new()
    } else {
        format!("<figcaption>{}</figcaption>\n", escape(caption))
    };
    format!("<figure class=\"{class}\">\n{caption}{content}</figure>\n")
}
