//! Outliers of a fleet: claims, settings, kinds, and hosts without a test.

use numalab_results::Report;
use numalab_results::fleet::page::FleetReport;
use numalab_results::fleet::{
    Analysis, Claim, DetectionPoint, Different, Differing, Family, Halves, Scope, SettingEffect,
    Unfinished, Untested,
};

use crate::whole;

fn claim(host: &str, scope: Scope, change_percent: f64, seen_again: Option<bool>) -> Claim {
    Claim {
        host: host.to_owned(),
        scope,
        family: Family::Bandwidth,
        score: 9.25,
        p: 1e-12,
        q: 3.2e-4,
        change_percent,
        figures: 4,
        peers: 60,
        seen_again,
    }
}

fn different(host: &str, name: &str, value: &str) -> Different {
    Different {
        host: host.to_owned(),
        name: name.to_owned(),
        value: value.to_owned(),
        usual: "usual".to_owned(),
        hosts: 2,
    }
}

fn untested(host: &str, alike: usize, differing: &[(&str, &str, &str)]) -> Untested {
    let fact = |&(name, value, usual): &(&str, &str, &str)| Differing {
        name: name.to_owned(),
        value: value.to_owned(),
        usual: usual.to_owned(),
    };
    let differing = differing.iter().map(fact).collect();
    Untested { host: host.to_owned(), alike, needed: 10, differing }
}

fn report(analysis: Analysis) -> FleetReport {
    FleetReport { name: "rack 7".to_owned(), analysis }
}

fn fleet() -> Analysis {
    let halves = Halves {
        family: Family::MemoryLatency,
        worse: ["n01", "n02"].map(str::to_owned).to_vec(),
        better: 38,
        change_percent: 12.5,
        setting: Some(("memory_speed".to_owned(), "2666".to_owned(), "3200".to_owned())),
    };
    let effect = SettingEffect {
        name: "governor".to_owned(),
        value: "powersave".to_owned(),
        usual: "performance".to_owned(),
        hosts: 6,
        family: Family::Core,
        change_percent: -8.0,
        q: 2e-11,
    };
    let point = |shift, units, figures| DetectionPoint { shift, units, figures };
    Analysis {
        hosts: 43,
        tests: 688,
        false_discovery_rate: 0.05,
        farthest: vec![],
        claims: vec![
            claim("n07", Scope::MemoryNode(1), -25.0, Some(true)),
            claim("n08", Scope::Host, 31.0, Some(false)),
            claim("n09", Scope::Figure("read/cpu0".to_owned()), -4.5, None),
        ],
        different: vec![
            different("n07", "thp_enabled", "never"),
            different("n08", "bios", "1.2"),
            different("n09", "thp_enabled", "never"),
        ],
        effects: vec![effect],
        halves: vec![halves],
        untested: vec![
            untested("n41", 1, &[("cpu_model", "B", "A"), ("topology.nodes", "8", "4")]),
            untested("n42", 2, &[("cpu_model", "C", "A")]),
            untested("n43", 9, &[]),
        ],
        unfinished: vec![Unfinished { host: "n05".to_owned(), planned: 40, ended: 12 }],
        detection: vec![point(3.0, Some(0.125), Some(0.02)), point(4.0, Some(1.0), None)],
    }
}

#[test]
fn a_fleet_with_everything_in_it_is_as_it_was_in_every_format() {
    whole::compare("fleet", &report(fleet()));
}

#[test]
fn a_fleet_without_outliers_is_as_it_was_in_every_format() {
    let analysis =
        Analysis { hosts: 12, tests: 96, false_discovery_rate: 0.01, ..Analysis::default() };
    whole::compare("fleet-calm", &report(analysis));
}

/// Returns the first sentence about a fleet with these claims.
fn outliers(claims: Vec<Claim>) -> String {
    report(Analysis { hosts: 40, claims, ..Analysis::default() }).page().lead[0].sentence.clone()
}

#[test]
fn changes_without_a_confirming_run_are_to_be_measured_again() {
    let of = |host: &str, seen| claim(host, Scope::Host, -25.0, seen);
    let farthest = "the farthest is a (host): bandwidth 25.0 % lower than its peers'";
    let all = outliers(vec![of("a", Some(true)), of("b", Some(true))]);
    assert_eq!(all, format!("2 of 40 hosts differ from their peers; {farthest}."));
    let none = outliers(vec![of("a", None), of("b", Some(false))]);
    let expected = format!(
        "2 of 40 hosts differ from their peers; {farthest}; not confirmed by a second run: measure again."
    );
    assert_eq!(none, expected);
    let some = outliers(vec![of("a", Some(true)), of("b", None), of("c", None)]);
    assert!(some.ends_with("; 2 of them not confirmed by a second run: measure again."), "{some}");
}

#[test]
fn only_tested_hosts_are_reported_not_to_differ() {
    let said = |hosts: usize, alike: &[usize]| {
        let name = |at: usize| format!("n{at}");
        let untested =
            alike.iter().enumerate().map(|(at, alike)| untested(&name(at), *alike, &[])).collect();
        report(Analysis { hosts, untested, ..Analysis::default() }).page().lead[0].sentence.clone()
    };
    assert_eq!(said(40, &[]), "None of the 40 tested hosts differs from its peers.");
    assert_eq!(said(35, &[5; 5]), "None of the 30 tested hosts differs from its peers.");
    assert_eq!(said(9, &[9; 9]), "No host was tested: 9 hosts, 10 alike are needed.");
    let mixed = said(12, &[8, 8, 8, 8, 8, 8, 8, 8, 4, 4, 4, 4]);
    assert_eq!(mixed, "No host was tested: 12 hosts, at most 8 alike; 10 alike are needed.");
}

#[test]
fn unfinished_runs_that_were_tested_are_not_left_out_and_share_a_row() {
    let unfinished = |hosts: usize| {
        let one = |at: usize| Unfinished { host: format!("n{at}"), planned: 47, ended: 45 };
        (0..hosts).map(one).collect()
    };
    let page = |unfinished: Vec<Unfinished>, untested: Vec<Untested>| {
        report(Analysis { hosts: 40, unfinished, untested, ..Analysis::default() }).page()
    };
    let many = page(unfinished(40), Vec::new());
    let last = many.lead.last().expect("a lead");
    assert_eq!(
        (last.name.as_str(), last.sentence.as_str()),
        ("Unfinished", "40 hosts did not finish their runs (tested on the figures they have).")
    );
    let rows = &many.parts[0].panels[0].table.rows;
    assert_eq!(rows[..], [["n0, n1, n2, n3 and 36 more", "45 of 47 cells"].map(str::to_owned)]);
    let one = page(unfinished(1), Vec::new());
    let expected = "1 host did not finish its run (tested on the figures it has).";
    assert_eq!(one.lead.last().expect("a lead").sentence, expected);
    let untested = page(unfinished(1), vec![untested("n0", 9, &[])]);
    let expected = "1 host did not finish its run.";
    assert_eq!(untested.lead.last().expect("a lead").sentence, expected);
}

#[test]
fn a_host_with_two_claims_is_one_host() {
    let two = outliers(vec![
        claim("a", Scope::MemoryNode(0), -25.0, Some(true)),
        claim("a", Scope::MemoryNode(1), -20.0, Some(true)),
    ]);
    assert!(two.starts_with("1 of 40 hosts differ"), "{two}");
}

#[test]
fn settings_that_several_outliers_share_come_first() {
    let page = report(fleet()).page();
    let part = page.parts.iter().find(|part| part.title == "How the outliers differ");
    let rows = &part.expect("they differ").panels[0].table.rows;
    let order: Vec<(&str, &str)> =
        rows.iter().map(|row| (row[0].as_str(), row[1].as_str())).collect();
    assert_eq!(order, [("n07", "thp_enabled"), ("n09", "thp_enabled"), ("n08", "bios")]);
}

#[test]
fn chances_are_shares_in_percent_with_one_digit() {
    let page = report(fleet()).page();
    let part = page.parts.iter().find(|part| part.title.starts_with("Settings")).unwrap();
    assert_eq!(part.panels[0].table.rows[0].last().unwrap(), "<0.0001 %");
    let claims = page.parts.iter().find(|part| part.title == "Outliers").unwrap();
    assert_eq!(claims.panels[0].table.rows[0][5], "0.03 %");
}

/// One better host made the tails so heavy that no fault was found, and the page said "none
/// differs".
#[test]
fn a_fleet_in_which_no_fault_would_be_found_is_not_called_healthy() {
    let point = |units| DetectionPoint { shift: 8.0, units: Some(units), figures: Some(0.0) };
    let sentence = |units| {
        let detection = vec![point(units)];
        let analysis = Analysis { hosts: 60, detection, ..Analysis::default() };
        report(analysis).page().lead[0].sentence.clone()
    };
    assert_eq!(sentence(0.9), "None of the 60 tested hosts differs from its peers.");
    assert!(
        sentence(0.1)
            .contains("of hosts 8 standard deviations from their peers, 10 % would be found")
    );
}
