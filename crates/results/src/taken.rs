//! A result with its origin, for results that do not record it themselves.

use numalab_page::rows::Rows;
use numalab_page::{Format, Page, Private};
use numalab_record::shell::command_line;
use numalab_record::{Civil, Taken};

use crate::report::Report;

/// Minimum length of an argument to hide, in characters.
const LEAST_LETTERS: usize = 4;

/// A result and its origin.
pub struct TakenReport<'a> {
    pub taken: &'a Taken,
    pub report: &'a dyn Report,
}

impl Report for TakenReport<'_> {
    /// Returns the page with its origin after the statements about its data.
    fn page(&self) -> Page {
        let mut page = self.report.page();
        let origin = origin(self.taken);
        page.meta = match page.meta.as_str() {
            "" => origin,
            meta => format!("{meta} · {origin}"),
        };
        page.private.extend(private(self.taken));
        page
    }

    /// Returns the document with its origin as `taken`, after its schema.
    fn json(&self) -> serde_json::Result<String> {
        let json = self.report.json()?;
        let taken = serde_json::to_string_pretty(self.taken)?.replace('\n', "\n  ");
        Ok(match json.split_once(",\n") {
            Some((schema, rest)) => format!("{schema},\n  \"taken\": {taken},\n{rest}"),
            None => json,
        })
    }

    fn rows(&self) -> Option<Rows> {
        self.report.rows()
    }

    fn exported(&self, format: Format) -> Option<String> {
        self.report.exported(format)
    }
}

/// Describes an origin: `numalab emulate --emulate 2 -- ./solver · 2026-11-21 02:43 UTC · numalab 0.2.0
/// on n07`.
fn origin(taken: &Taken) -> String {
    let mut command = taken.command.clone();
    if let Some(program) = command.first_mut() {
        *program = program.rsplit('/').next().unwrap_or_default().to_owned();
    }
    format!(
        "{} · {} · numalab {} on {}",
        command_line(&command),
        Civil::of(taken.unix_ms).minute(),
        taken.version,
        taken.hostname
    )
}

/// Returns strings to hide from shared pages: the machine's name, and the arguments of a program.
fn private(taken: &Taken) -> Vec<Private> {
    let arguments = taken.command.iter().skip_while(|word| *word != "--").skip(2);
    let arguments = arguments.filter(|word| word.chars().count() >= LEAST_LETTERS);
    let arguments = arguments.map(|word| Private { what: "argument", text: word.clone() });
    let host = Private { what: "hostname", text: taken.hostname.clone() };
    std::iter::once(host).chain(arguments).collect()
}

#[cfg(test)]
mod tests {
    use numalab_page::Style;
    use numalab_record::system::KnobList;

    use super::*;

    fn taken() -> Taken {
        let words = "/usr/bin/numalab emulate --emulate 2 -- ./solver secret-input";
        Taken {
            version: "0.2.0".to_owned(),
            command: words.split(' ').map(str::to_owned).collect(),
            unix_ms: 1_795_228_980_000,
            hostname: "annas-laptop".to_owned(),
        }
    }

    #[test]
    fn a_page_says_which_command_took_it_when_and_where() {
        let report = TakenReport { taken: &taken(), report: &KnobList { knobs: Vec::new() } };
        let text = report.page().terminal(Style::Plain);
        let words: Vec<&str> = text.split_whitespace().collect();
        let expected = "numalab emulate --emulate 2 -- ./solver secret-input · 2026-11-21 02:43 UTC · \
                        numalab 0.2.0 on annas-laptop";
        assert!(words.join(" ").contains(expected), "{text}");
    }

    #[test]
    fn a_shared_page_hides_the_machine_and_the_arguments() {
        let report = TakenReport { taken: &taken(), report: &KnobList { knobs: Vec::new() } };
        let page = report.page().redacted().markdown();
        assert!(!page.contains("annas-laptop") && !page.contains("secret-input"), "{page}");
        assert!(page.contains("--emulate 2"), "{page}");
    }

    #[test]
    fn a_document_keeps_its_origin_and_its_report_has_it_again() {
        let of = taken();
        let json = TakenReport { taken: &of, report: &KnobList { knobs: Vec::new() } }.json();
        let json = json.expect("JSON");
        let read: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(read["taken"], serde_json::to_value(&of).expect("JSON"));
        let shown = crate::with_report("a", &json, |report| report.json().expect("JSON"));
        assert_eq!(shown.expect("a document"), json);
    }
}
