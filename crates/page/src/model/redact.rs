//! Redaction of pages before they are shared.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::{Chart, Page, Panel, Part, Private, Terminal};

/// Facts that identify a host or a person, or describe the machine's setup beyond what the figures
/// require.
const PRIVATE: [&str; 3] = ["command", "hostname", "kernel_command_line"];
/// Directories whose paths are the same on every machine.
const SYSTEM: [&str; 9] = ["bin", "boot", "dev", "etc", "lib", "proc", "sbin", "sys", "usr"];
/// The shortest text that is replaced, in characters; shorter ones occur among other words.
const LEAST_LETTERS: usize = 3;
/// The kinds of private texts that may be one letter shorter, such as the host `vm`.
const NAMES: [&str; 2] = ["hostname", "user"];
/// The kinds of private texts that may be any word.
const ANY_WORD: [&str; 2] = ["user", "argument"];
/// The number of characters of a hash: enough to distinguish the pages of two hosts.
const SHORT: usize = 8;

impl Page {
    /// Removes its `private` strings, the host's name, command lines and paths. Each is replaced by
    /// a hash, and a note lists their kinds.
    pub fn redacted(mut self) -> Self {
        let mut redaction = Redaction::of(&self);
        let texts = [&mut self.title, &mut self.meta];
        texts.into_iter().chain(self.note.as_mut()).for_each(|text| redaction.clean(text));
        for lead in &mut self.lead {
            redaction.clean(&mut lead.sentence);
            lead.command.iter_mut().for_each(|command| redaction.clean(command));
        }
        let tiles = self.tiles.iter_mut().flat_map(|tile| [&mut tile.value, &mut tile.detail]);
        tiles.for_each(|text| redaction.clean(text));
        self.picture.iter_mut().for_each(|panel| redaction.panel(panel));
        self.parts.iter_mut().for_each(|part| redaction.part(part));
        if let Some(note) = redaction.note() {
            match self.parts.last_mut() {
                Some(part) => part.notes.push(note),
                None => self.note = Some(note),
            }
        }
        self
    }
}

/// The strings to remove from one page.
struct Redaction {
    /// Longest first, since one may be part of another.
    private: Vec<Private>,
    left_out: BTreeSet<String>,
}

impl Redaction {
    fn of(page: &Page) -> Self {
        let mut private = page.private.clone();
        for row in
            page.parts.iter().flat_map(|part| &part.panels).flat_map(|panel| &panel.table.rows)
        {
            if let [name, value] = &row[..] {
                let what = PRIVATE.into_iter().find(|what| what == name);
                private.extend(what.map(|what| Private { what, text: value.clone() }));
            }
        }
        private.retain(|Private { what, text }| {
            text.chars().count() + usize::from(NAMES.contains(what)) >= LEAST_LETTERS
        });
        private
            .retain(|private| !ANY_WORD.contains(&private.what) || !is_term(&private.text, page));
        private.sort_by_key(|private| std::cmp::Reverse(private.text.len()));
        Self { private, left_out: BTreeSet::new() }
    }

    fn part(&mut self, part: &mut Part) {
        let texts = part.notes.iter_mut().chain(&mut part.command).chain(&mut part.listing);
        texts.for_each(|text| self.clean(text));
        self.clean(&mut part.title);
        part.panels.iter_mut().for_each(|panel| self.panel(panel));
    }

    fn panel(&mut self, Panel { chart, table, terminal, .. }: &mut Panel) {
        let drawn = chart.iter_mut().flat_map(Chart::texts_mut);
        drawn.for_each(|text| self.clean(text));
        let narrow = match terminal {
            Terminal::Instead(tables) => &mut tables[..],
            _ => &mut [],
        };
        for table in narrow.iter_mut().chain([table]) {
            self.clean(&mut table.caption);
            table.columns.iter_mut().for_each(|column| self.clean(&mut column.name));
            table.rows.iter_mut().flatten().for_each(|cell| self.clean(cell));
        }
    }

    /// Replaces every private text and every path by a hash.
    fn clean(&mut self, text: &mut String) {
        for private in &self.private {
            let wanted = whole_words(text, &private.text);
            if !wanted.is_empty() {
                self.left_out.insert(private.what.to_owned());
                let stands = format!("left out, hash {}", hash(&private.text));
                for at in wanted.into_iter().rev() {
                    text.replace_range(at..at + private.text.len(), &stands);
                }
            }
        }
        while let Some(path) = private_path(text) {
            self.left_out.insert("paths".to_owned());
            let stands = format!("[path {}]", hash(&text[path.clone()]));
            text.replace_range(path, &stands);
        }
    }

    fn note(&self) -> Option<String> {
        let names: Vec<&str> = self.left_out.iter().map(String::as_str).collect();
        let names = names.join(", ");
        (!names.is_empty()).then(|| {
            format!(
                "Left out of this page: {names}; each is replaced by a hash (`--redact no` shows \
                 them)."
            )
        })
    }
}

/// Returns true for a number, and for a word in the headings of a page: a user called `node` or an
/// argument `read` identifies no one, and the page would be unreadable without the word.
fn is_term(text: &str, page: &Page) -> bool {
    let panels = page.parts.iter().flat_map(|part| &part.panels).chain(&page.picture);
    let of_panel = |panel: &'_ Panel| {
        let columns = panel.table.columns.iter().map(|column| column.name.clone());
        columns.chain([panel.table.caption.clone()]).collect::<Vec<String>>()
    };
    let is_word = || text.chars().all(char::is_alphabetic);
    let heads = |heading: &String| !whole_words(heading, text).is_empty();
    text.parse::<f64>().is_ok()
        || is_word() && panels.flat_map(of_panel).any(|heading| heads(&heading))
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()[..SHORT].to_owned()
}

/// Finds a string where it is not part of a longer word. A short one is not part of a name such as
/// `vm.swappiness` either.
fn whole_words(text: &str, wanted: &str) -> Vec<usize> {
    let is_short = wanted.chars().count() < LEAST_LETTERS;
    let is_apart = |beyond: &mut dyn Iterator<Item = char>| {
        let mut letters = beyond.skip_while(|c| is_short && "._-/".contains(*c));
        letters.next().is_none_or(|c| !c.is_alphanumeric())
    };
    let is_whole = |(at, found): &(usize, &str)| {
        is_apart(&mut text[..*at].chars().rev()) && is_apart(&mut text[at + found.len()..].chars())
    };
    text.match_indices(wanted).filter(is_whole).map(|(at, _)| at).collect()
}

/// Returns true if a path may identify a person.
pub fn is_private_path(path: &str) -> bool {
    private_path(path).is_some_and(|of| of.start == 0)
}

/// Finds the first absolute path outside the system's directories, such as `/home/anna/runs` or
/// `/scratch`.
fn private_path(text: &str) -> Option<std::ops::Range<usize>> {
    let begins = |at: &usize| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|c| c.is_whitespace() || "`'\"([=:,".contains(c))
    };
    let ends = |c: char| c.is_whitespace() || "`'\")];:,|".contains(c);
    let starts = text.match_indices('/').map(|(at, _)| at).filter(begins);
    starts
        .filter_map(|at| {
            let path = text[at..].split(ends).next()?.trim_end_matches(['.', '/']);
            let first = path.split('/').nth(1)?;
            let is_private = first.starts_with(char::is_alphanumeric) && !SYSTEM.contains(&first);
            is_private.then(|| at..at + path.len())
        })
        .next()
}

#[cfg(test)]
mod tests {
    use crate::table::Table;
    use crate::{Panel, Part};

    use super::*;

    fn page(host: &str) -> Page {
        let rows = [["hostname", host], ["kernel", "6.1"], ["command", "numalab -o /home/a/r"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let table = Table::new("facts").words("fact").words("value").rows(rows);
        let part = Part::of("Environment", vec![Panel::table(table)]).unwrap();
        let notes =
            vec![format!("kept in /home/anna-b/runs (and /scratch/x). GB/s of /sys/a on {host}")];
        let command = Private { what: "workload commands", text: "./solver -n 8".to_owned() };
        let part = Part { command: Some(command.text.clone()), ..part.noted(notes) };
        let title = "Is `./solver -n 8` better than `./solver -n 88`?".to_owned();
        Page { title, parts: vec![part], private: vec![command], ..Page::default() }
    }

    #[test]
    fn private_facts_are_hashes_that_distinguish_hosts_and_are_listed() {
        let [one, other] = ["anna-pc", "bob-pc"].map(|host| page(host).redacted().markdown());
        assert!(!one.contains("anna") && one.contains("6.1") && !one.contains("numalab -o"));
        let listed = "Left out of this page: command, hostname, paths, workload commands;";
        assert!(one.contains(listed), "{one}");
        assert_ne!(one, other);
    }

    #[test]
    fn private_texts_are_left_out_wherever_they_occur_and_only_as_whole_words() {
        let title = page("h-1").redacted().title;
        let expected =
            format!("Is `left out, hash {}` better than `./solver -n 88`?", hash("./solver -n 8"));
        assert_eq!(title, expected);
        let text = page("host-7").redacted().markdown();
        assert!(!text.contains("host-7") && !text.contains("`./solver -n 8`"), "{text}");
    }

    /// The pages of the user `node` of a container image had a hash in place of every node, and so had
    /// those of a program with the argument `node`.
    #[test]
    fn words_of_headings_and_numbers_stay() {
        let cleaned = |what, text: &str| {
            let table =
                Table::new("ns by cpu and node").words("facts").rows([vec!["a".to_owned()]]);
            let part = Part::of("Latency", vec![Panel::table(table)]);
            let private = vec![Private { what, text: text.to_owned() }];
            let title = format!("{text} 0 of 5000");
            let parts = part.into_iter().collect();
            Page { title, parts, private, ..Page::default() }.redacted().title
        };
        for what in ["user", "argument"] {
            assert_eq!(cleaned(what, "node"), "node 0 of 5000");
            assert_eq!(cleaned(what, "5000"), "5000 0 of 5000");
            assert!(cleaned(what, "anna").starts_with("left out"));
        }
        assert!(cleaned("hostname", "node").starts_with("left out"));
    }

    #[test]
    fn a_host_of_two_letters_is_left_out_but_not_within_the_name_of_a_setting() {
        let cleaned = |what, text: &str| {
            let private = vec![Private { what, text: "vm".to_owned() }];
            Page { title: text.to_owned(), private, ..Page::default() }.redacted().title
        };
        let stands = format!("left out, hash {}", hash("vm"));
        assert_eq!(cleaned("hostname", "on vm."), format!("on {stands}."));
        assert_eq!(cleaned("hostname", "vm: (vm)"), format!("{stands}: ({stands})"));
        for kept in ["vm.swappiness on vms", "kvm and vm_stat in /proc/vm/x"] {
            assert_eq!(cleaned("hostname", kept), kept);
        }
        assert_eq!(cleaned("argument", "on vm"), "on vm");
    }

    #[test]
    fn paths_are_left_out_except_those_of_every_system() {
        let cleaned = |text: &str| {
            let mut text = text.to_owned();
            Redaction::of(&Page::default()).clean(&mut text);
            text
        };
        let hashed = |path: &str| format!("[path {}]", hash(path));
        let anna = hashed("/home/anna-b/runs");
        assert_eq!(cleaned("in /home/anna-b/runs."), format!("in {anna}."));
        assert_eq!(
            cleaned("-o=/scratch, (/root/x)"),
            format!("-o={}, ({})", hashed("/scratch"), hashed("/root/x"))
        );
        for kept in
            ["12 GB/s", "/sys/kernel/mm", "/ 5", "and/or", "4k/thp", "results/a", "/proc/1/maps"]
        {
            assert_eq!(cleaned(kept), kept);
        }
    }

    #[test]
    fn a_page_without_anything_private_has_no_note() {
        let page = Page { title: "t".to_owned(), ..Page::default() };
        assert_eq!(page.clone().redacted(), page);
    }
}
