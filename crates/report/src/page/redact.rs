//! A page that may be sent to anybody.

use sha2::{Digest, Sha256};

use super::Page;

/// Facts that name a host or a person, or say how a machine is set up beyond what figures need.
const PRIVATE: [&str; 3] = ["command", "hostname", "kernel_command_line"];
/// Where the directories of users lie.
const HOMES: [&str; 2] = ["/home/", "/root"];
/// Letters of a hash: two pages of different hosts are told apart.
const SHORT: usize = 8;

impl Page {
    /// The same without the host's name, command lines and users' directories. A hash stands for
    /// each fact that is left out, and a note says which those are.
    #[must_use]
    pub fn redacted(mut self) -> Self {
        for text in std::iter::once(&mut self.meta).chain(self.note.as_mut()) {
            *text = without_homes(text);
        }
        self.lead.iter_mut().for_each(|lead| lead.sentence = without_homes(&lead.sentence));
        for part in &mut self.parts {
            let mut left_out = Vec::new();
            let rows = part.panels.iter_mut().flat_map(|panel| &mut panel.table.rows);
            for row in rows {
                match &mut row[..] {
                    [name, value] if PRIVATE.contains(&name.as_str()) => {
                        *value = format!("left out, hash {}", hash(value));
                        left_out.push(name.clone());
                    }
                    row => row.iter_mut().for_each(|cell| *cell = without_homes(cell)),
                }
            }
            part.notes.iter_mut().for_each(|note| *note = without_homes(note));
            if !left_out.is_empty() {
                let names = left_out.join(", ");
                let note = format!("Left out here: {names} (`--redact no` shows them).");
                part.notes.push(note);
            }
        }
        self
    }
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()[..SHORT].to_owned()
}

/// `/home/anna/runs` is `~/runs`, as `/root/runs` is.
fn without_homes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((at, home)) =
        HOMES.iter().filter_map(|home| Some((rest.find(home)?, *home))).min()
    {
        let after = &rest[at + home.len()..];
        let user = if home.ends_with('/') {
            after.find(|c: char| !(c.is_alphanumeric() || "-_.".contains(c))).unwrap_or(after.len())
        } else {
            0
        };
        let ends = after[user..].chars().next().is_none_or(|c| !c.is_alphanumeric());
        out.push_str(&rest[..at]);
        out.push_str(if ends { "~" } else { home });
        rest = &after[user..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use crate::page::{Panel, Part};
    use crate::table::Table;

    use super::*;

    fn page(host: &str) -> Page {
        let rows = [["hostname", host], ["kernel", "6.1"], ["command", "numalab -o /home/a/r"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let table = Table::new("facts").words("fact").words("value").rows(rows);
        let part = Part::of("Environment", vec![Panel::table(table)]).unwrap();
        let notes = vec!["kept in /home/anna-b/runs and /root/x, not in /rooted".to_owned()];
        Page { parts: vec![part.noted(notes)], ..Page::default() }
    }

    #[test]
    fn private_facts_are_hashes_that_tell_two_hosts_apart_and_are_listed() {
        let [one, other] = ["anna-pc", "bob-pc"].map(|host| page(host).redacted().markdown());
        assert!(!one.contains("anna") && one.contains("6.1") && !one.contains("numalab -o"));
        assert!(one.contains("Left out here: hostname, command"), "{one}");
        assert_ne!(one, other);
    }

    #[test]
    fn directories_of_users_lose_their_names() {
        let text = page("h").redacted().markdown();
        assert!(text.contains("kept in \\~/runs and \\~/x, not in /rooted"), "{text}");
    }
}
