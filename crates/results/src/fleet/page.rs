//! Page, JSON and rows of a fleet's outliers.

mod lead;

use std::collections::BTreeMap;

use numalab_page::rows::{Field, Rows};
use numalab_page::text::{Table, count, figure};
use numalab_page::{Chart, Curves, Page, Panel, Part, Series};
use numalab_record::Kind;

use crate::document::document;
use crate::fleet::{Analysis, Claim, Unfinished, Untested};
use crate::report::Report;

/// Percentage of hosts named wrongly below which smaller shares look the same to a reader.
const LEAST_CHANCE_PERCENT: f64 = 0.0001;

/// Maximum number of hosts named in one row of a list.
const MOST_NAMES: usize = 4;

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
            farthest(analysis),
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
            lead: lead::lead(analysis),
            parts: parts.into_iter().flatten().collect(),
            ..Page::default()
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        document(Kind::Fleet, &self.analysis)
    }

    fn rows(&self) -> Option<Rows> {
        let row = |claim: &Claim| {
            vec![
                Field::from(claim.host.as_str()),
                claim.scope.to_string().into(),
                claim.family.name().into(),
                Field::rounded(claim.change_percent, 3),
                Field::rounded(claim.score, 3),
                claim.p.into(),
                claim.q.into(),
                claim.figures.into(),
                claim.peers.into(),
                claim.seen_again.map(|again| again.to_string()).into(),
            ]
        };
        Some(columns().rows(self.analysis.claims.iter().map(row)))
    }
}

pub(crate) fn columns() -> Rows {
    let change = "the median change of the outlier's figures against its peers";
    let q = "the expected share of false positives among this host and all with a higher score";
    Rows::new("fleet outlier")
        .labels(["host", "scope", "family"])
        .values("%", [("change_percent", change)])
        .values(
            "deviations",
            [("score", "the outlier's change in robust standard deviations; above 0 is worse")],
        )
        .values(
            "x",
            [("p", "the probability of such a score if the host were like its peers"), ("q", q)],
        )
        .values("figures", [("figures", "the number of figures combined")])
        .values("hosts", [("peers", "the number of hosts that it was compared with")])
        .texts(["seen_again"])
}

/// Describes a change: `18 % lower`.
fn change(percent: f64) -> String {
    format!("{} % {}", figure(percent.abs()), if percent < 0.0 { "lower" } else { "higher" })
}

fn claims(analysis: &Analysis) -> Option<Part> {
    let rows = analysis.claims.iter().map(|claim| {
        let mut row = deviation(claim);
        row.extend([
            chance(claim.q),
            match claim.seen_again {
                Some(true) => "yes".to_owned(),
                Some(false) => "no".to_owned(),
                None => "one run".to_owned(),
            },
            claim.figures.to_string(),
        ]);
        row
    });
    let table = deviations(
        "farthest first; score: standard deviations from the peers, above 0 is \
         worse; q: expected share of hosts named wrongly up to this row",
    )
    .figures("q")
    .words("confirmed")
    .figures("figures")
    .rows(rows);
    part("Outliers", table)
}

fn farthest(analysis: &Analysis) -> Option<Part> {
    let table =
        deviations("farthest first; score: standard deviations from the peers, above 0 is worse")
            .rows(analysis.farthest.iter().map(deviation));
    part("Farthest hosts, not judged", table)
}

fn deviations(caption: &str) -> Table {
    let table = Table::new(caption).words("host").words("where").words("what");
    table.words("change").figures("score")
}

fn deviation(claim: &Claim) -> Vec<String> {
    vec![
        claim.host.clone(),
        claim.scope.to_string(),
        claim.family.name().to_owned(),
        change(claim.change_percent),
        format!("{:+.1}", claim.score),
    ]
}

fn part(title: &str, table: Table) -> Option<Part> {
    Part::of(title, vec![Panel::table(table)])
}

/// Formats a share of hosts named wrongly with one significant digit: `0.5 %`.
fn chance(q: f64) -> String {
    let percent = q * 100.0;
    if percent < LEAST_CHANCE_PERCENT {
        return format!("<{LEAST_CHANCE_PERCENT} %");
    }
    let (mut decimals, mut least) = (0, 1.0);
    while percent < least {
        (decimals, least) = (decimals + 1, least / 10.0);
    }
    format!("{percent:.decimals$} %")
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

/// Groups hosts by reason: a whole fleet often shares one.
fn listed<'a>(title: &str, hosts: impl Iterator<Item = (&'a str, String)>) -> Option<Part> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (host, why) in hosts {
        match groups.iter_mut().find(|group| group.0 == why) {
            Some((_, names)) => names.push(host),
            None => groups.push((why, vec![host])),
        }
    }
    let rows = groups.into_iter().map(|(why, names)| {
        let shown = names[..names.len().min(MOST_NAMES)].join(", ");
        let more = names.len().saturating_sub(MOST_NAMES);
        vec![if more == 0 { shown } else { format!("{shown} and {more} more") }, why]
    });
    part(title, Table::new("by reason").words("hosts").words("why").rows(rows))
}

fn not_tested(host: &Untested) -> (&str, String) {
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
    (host.host.as_str(), why)
}

fn not_ended(host: &Unfinished) -> (&str, String) {
    (host.host.as_str(), format!("{} of {} cells", host.ended, host.planned))
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
        .figures("all figures of a package or memory node")
        .figures("a single figure")
        .rows(rows);
    let series = |name: &str, of: &dyn Fn(usize) -> Option<f64>| Series {
        name: name.to_owned(),
        points: (0..analysis.detection.len())
            .filter_map(|at| Some((analysis.detection[at].shift, percent(of(at))?)))
            .collect(),
    };
    let series: Vec<Series> = vec![
        series("a package or memory node", &|at| analysis.detection[at].units),
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
