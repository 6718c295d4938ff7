//! Page, JSON and rows of a fleet's outliers.

use std::collections::BTreeMap;

use numalab_page::rows::{Rows, optional};
use numalab_page::text::{Table, count, figure};
use numalab_page::{Chart, Curves, Lead, Mood, Page, Panel, Part, Series};
use numalab_record::Kind;

use crate::document::document;
use crate::fleet::{Analysis, Claim, Halves, Unfinished, Untested};
use crate::report::Report;

/// Number of peers from which the stated rate of false discoveries holds, by simulation, for hosts
/// that keep their character.
const MANY_PEERS: usize = 60;

/// The outliers of a fleet, with the fleet's name.
#[derive(Clone, Debug)]
pub struct FleetReport {
    pub name: String,
    pub analysis: Analysis,
}

impl Report for FleetReport {
    fn page(&self) -> Page {
        let analysis = &self.analysis;
        let parts = [
            claims(analysis),
            different(analysis),
            effects(analysis),
            listed("Hosts that were not tested", analysis.untested.iter().map(not_tested)),
            listed("Unfinished runs", analysis.unfinished.iter().map(not_ended)),
            detection(analysis),
        ];
        Page {
            brand: "numalab fleet".to_owned(),
            title: format!("Outliers in {}", self.name),
            meta: format!(
                "{} · {} · false discoveries at most {} %",
                count(analysis.hosts, "host"),
                count(analysis.tests, "test"),
                figure(analysis.false_discovery_rate * 100.0)
            ),
            lead: lead(analysis),
            parts: parts.into_iter().flatten().collect(),
            ..Page::default()
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        document(Kind::Fleet, &self.analysis)
    }

    /// Returns one row per claim.
    fn rows(&self) -> Option<Rows> {
        let row = |claim: &Claim| {
            vec![
                claim.host.clone(),
                claim.scope.to_string(),
                claim.family.name().to_owned(),
                format!("{:.3}", claim.change_percent),
                format!("{:.3}", claim.score),
                format!("{:e}", claim.p),
                format!("{:e}", claim.q),
                claim.figures.to_string(),
                claim.peers.to_string(),
                optional(claim.seen_again),
            ]
        };
        let rows = Rows::new("fleet outlier")
            .labels(["host", "scope", "family"])
            .values("%", ["change_percent"])
            .values("deviations", ["score"])
            .values("x", ["p", "q"])
            .values("figures", ["figures"])
            .values("hosts", ["peers"])
            .texts(["seen_again"])
            .rows(self.analysis.claims.iter().map(row));
        Some(rows)
    }
}

fn lead(analysis: &Analysis) -> Vec<Lead> {
    let outliers = outliers(analysis);
    let divides = analysis.halves.iter().any(|halves| halves.setting.is_some());
    let setting = match analysis.effects.first() {
        None if divides => "no other setting is associated with different figures".to_owned(),
        None => "no setting is associated with different figures".to_owned(),
        Some(effect) => format!(
            "{} with {} {} instead of {}: {} {}",
            count(effect.hosts, "host"),
            effect.name,
            effect.value,
            effect.usual,
            effect.family.name(),
            change(effect.change_percent)
        ),
    };
    let mood = |odd: bool| if odd { Mood::Odd } else { Mood::Fine };
    let item = |name: &str, sentence: String, odd: bool| Lead::new(name, sentence, mood(odd));
    let mut lead = vec![item("Outliers", outliers, !analysis.claims.is_empty())];
    lead.extend(analysis.halves.iter().map(|halves| item("Two kinds", two_kinds(halves), true)));
    lead.push(item("Settings", setting, !analysis.effects.is_empty()));
    if !analysis.untested.is_empty() || !analysis.unfinished.is_empty() {
        let sentence = format!(
            "{} had too few peers for a test, {} did not finish its run",
            count(analysis.untested.len(), "host"),
            count(analysis.unfinished.len(), "host")
        );
        lead.push(item("Left out", sentence, true));
    }
    lead
}

/// Describes the hosts that deviate, and how many of them a second run confirms.
fn outliers(analysis: &Analysis) -> String {
    let hosts = |seen: Option<Option<bool>>| -> usize {
        let of =
            analysis.claims.iter().filter(|claim| seen.is_none_or(|seen| claim.seen_again == seen));
        of.map(|claim| claim.host.as_str()).collect::<std::collections::BTreeSet<_>>().len()
    };
    let Some(worst) = analysis.claims.first() else {
        return format!("none of {} differs from its peers", count(analysis.hosts, "host"));
    };
    let sure = hosts(Some(Some(true)));
    let doubt = match (hosts(None) - sure, sure) {
        (0, _) => String::new(),
        (_, 0) => "; not confirmed by a second run: measure again".to_owned(),
        (open, _) => format!("; {open} of them not confirmed by a second run: measure again"),
    };
    let few = match analysis.claims.iter().map(|claim| claim.peers).min() {
        Some(peers) if peers < MANY_PEERS => {
            format!(
                "; {peers} peers do not show how much healthy hosts vary, so check before you drain any"
            )
        }
        _ => String::new(),
    };
    let differ = match hosts(None) {
        1 => "differs from its peers",
        _ => "differ from their peers",
    };
    format!(
        "{} of {} {differ}; the farthest is {}{doubt}{few}",
        hosts(None),
        count(analysis.hosts, "host"),
        sentence(worst)
    )
}

fn two_kinds(halves: &Halves) -> String {
    let setting = halves.setting.as_ref().map_or_else(String::new, |(name, here, there)| {
        format!(" ({name} {here} instead of {there})")
    });
    format!(
        "{} have {} {} than the other {}{setting}; each kind is judged separately",
        count(halves.worse.len(), "host"),
        halves.family.name(),
        change(halves.change_percent),
        halves.better
    )
}

fn sentence(claim: &Claim) -> String {
    format!(
        "{} ({}): {} {} than its peers'",
        claim.host,
        claim.scope,
        claim.family.name(),
        change(claim.change_percent)
    )
}

/// Describes a change: `18 % lower`.
fn change(percent: f64) -> String {
    format!("{} % {}", figure(percent.abs()), if percent < 0.0 { "lower" } else { "higher" })
}

fn claims(analysis: &Analysis) -> Option<Part> {
    let rows = analysis.claims.iter().map(|claim| {
        vec![
            claim.host.clone(),
            claim.scope.to_string(),
            claim.family.name().to_owned(),
            change(claim.change_percent),
            format!("{:+.1}", claim.score),
            chance(claim.q),
            match claim.seen_again {
                Some(true) => "yes".to_owned(),
                Some(false) => "no".to_owned(),
                None => "one run".to_owned(),
            },
            claim.figures.to_string(),
        ]
    });
    let table = Table::new(
        "farthest first; score: standard deviations from the peers, above 0 is \
         worse; q: expected share of hosts named wrongly up to this row",
    )
    .words("host")
    .words("where")
    .words("what")
    .words("change")
    .figures("score")
    .figures("q")
    .words("confirmed")
    .figures("figures")
    .rows(rows);
    part("Outliers", table)
}

fn part(title: &str, table: Table) -> Option<Part> {
    Part::of(title, vec![Panel::table(table)])
}

fn chance(q: f64) -> String {
    if q < 1e-9 { "<1e-9".to_owned() } else { format!("{q:.0e}") }
}

/// Tabulates the settings of outliers, those that several share first.
fn different(analysis: &Analysis) -> Option<Part> {
    let mut shared: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for one in &analysis.different {
        *shared.entry((&one.name, &one.value)).or_default() += 1;
    }
    let mut order: Vec<_> = analysis.different.iter().collect();
    order.sort_by_key(|one| {
        (std::cmp::Reverse(shared[&(one.name.as_str(), one.value.as_str())]), &one.name, &one.host)
    });
    let rows = order.iter().map(|one| {
        vec![
            one.host.clone(),
            one.name.clone(),
            one.value.clone(),
            one.usual.clone(),
            one.hosts.to_string(),
        ]
    });
    let table = Table::new("unusual settings of the outliers")
        .words("host")
        .words("setting")
        .words("here")
        .words("usually")
        .figures("hosts with it")
        .rows(rows);
    part("How the outliers differ", table)
}

fn effects(analysis: &Analysis) -> Option<Part> {
    let rows = analysis.effects.iter().map(|effect| {
        vec![
            effect.name.clone(),
            effect.value.clone(),
            effect.usual.clone(),
            effect.hosts.to_string(),
            effect.family.name().to_owned(),
            change(effect.change_percent),
            chance(effect.q),
        ]
    });
    let table = Table::new(
        "hosts with an unusual value compared with those with the usual one; \
         an association, not necessarily a cause",
    )
    .words("setting")
    .words("value")
    .words("usually")
    .figures("hosts")
    .words("what")
    .words("change")
    .figures("q")
    .rows(rows);
    part("Settings associated with different figures", table)
}

fn listed(title: &str, rows: impl Iterator<Item = Vec<String>>) -> Option<Part> {
    part(title, Table::new("by host").words("host").words("why").rows(rows))
}

fn not_tested(host: &Untested) -> Vec<String> {
    let differing = host.differing.iter();
    let differing: Vec<String> = differing
        .map(|fact| format!("{} {} instead of {}", fact.name, fact.value, fact.usual))
        .collect();
    let why = match (differing.is_empty(), host.alike) {
        (true, alike) => {
            format!("{} of its kind; a test needs {}", count(alike, "host"), host.needed)
        }
        (false, 1) => format!("no peers: {}", differing.join(", ")),
        (false, alike) => {
            format!(
                "only {} of its kind; a test needs {}: {}",
                count(alike, "host"),
                host.needed,
                differing.join(", ")
            )
        }
    };
    vec![host.host.clone(), why]
}

fn not_ended(host: &Unfinished) -> Vec<String> {
    vec![host.host.clone(), format!("{} of {} cells", host.ended, host.planned)]
}

fn detection(analysis: &Analysis) -> Option<Part> {
    let percent = |share: Option<f64>| share.map(|share| share * 100.0);
    let rows = analysis.detection.iter().map(|point| {
        let shown =
            |share| percent(share).map_or_else(|| "–".to_owned(), |share| format!("{share:.1} %"));
        vec![figure(point.shift), shown(point.units), shown(point.figures)]
    });
    let table = Table::new("share of this fleet's hosts that would be found if shifted")
        .figures("shift in standard deviations")
        .figures("all figures of a socket or memory node")
        .figures("a single figure")
        .rows(rows);
    let series = |name: &str, of: &dyn Fn(usize) -> Option<f64>| Series {
        name: name.to_owned(),
        points: (0..analysis.detection.len())
            .filter_map(|at| Some((analysis.detection[at].shift, percent(of(at))?)))
            .collect(),
    };
    let series: Vec<Series> = vec![
        series("a socket or memory node", &|at| analysis.detection[at].units),
        series("a single figure", &|at| analysis.detection[at].figures),
    ];
    let series: Vec<Series> =
        series.into_iter().filter(|series| !series.points.is_empty()).collect();
    let curves = Curves {
        x_name: "shift in robust standard deviations".to_owned(),
        x_is_logarithmic: false,
        y_name: "% found".to_owned(),
        series,
    };
    let is_drawn = !curves.series.is_empty();
    let panel = Panel::drawn(Chart::Curves(curves), table);
    Part::of("Detection power", vec![panel]).filter(|_| is_drawn)
}
