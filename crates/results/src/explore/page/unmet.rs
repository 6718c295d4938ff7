//! Unmet expectations (`--expect`) in words.

use numalab_page::number::figure;

use crate::explore::Unmet;

/// Returns one line with the owner of the memory, its share, and the expectation.
pub fn unmet_words(found: &Unmet) -> String {
    match found {
        Unmet::Elsewhere { guest, nodes, share, least, most } => {
            let most = most
                .map(|(node, share)| format!("; most is on node {node}, {}", in_percent(share)));
            format!(
                "{}{} of its memory on node {nodes}, expected {} or more{}",
                who(guest),
                share.map_or_else(|| "nothing".to_owned(), in_percent),
                in_percent(*least),
                most.unwrap_or_default()
            )
        }
        Unmet::Remote { guest, share: Some(share), least } => format!(
            "{}{} of what it touches is local, expected {} or more",
            who(guest),
            in_percent(*share),
            in_percent(*least)
        ),
        Unmet::Remote { guest, share: None, .. } => {
            format!("{}the memory that it touches is unknown", who(guest))
        }
        Unmet::Unpinned { guest, vcpus } => {
            let vcpus: Vec<String> = vcpus.iter().map(u32::to_string).collect();
            format!("guest {guest}: vCPU {} may run on several nodes", vcpus.join(", "))
        }
        Unmet::NoGuests => "no guest runs here".to_owned(),
        Unmet::NotOfThis => "--expect: expected --pid PID, or --guests".to_owned(),
    }
}

fn who(guest: &Option<String>) -> String {
    guest.as_ref().map(|guest| format!("guest {guest}: ")).unwrap_or_default()
}

fn in_percent(share: f64) -> String {
    format!("{} %", figure(share * 100.0))
}
