//! The sentences at the top of a fleet's page.

use numalab_page::text::count;
use numalab_page::{Lead, Mood};

use super::change;
use crate::fleet::{Analysis, Claim, Halves, Unfinished};

/// Number of hosts above which the stated false discovery rate holds, by simulation, if hosts keep
/// their deviations from run to run.
const MANY_HOSTS: usize = 60;

pub(super) fn lead(analysis: &Analysis) -> Vec<Lead> {
    let outliers = outliers(analysis);
    let divides = analysis.halves.iter().any(|halves| halves.setting.is_some());
    let setting = match analysis.effects.first() {
        None if divides => "No other setting is associated with different figures.".to_owned(),
        None => "No setting is associated with different figures.".to_owned(),
        Some(effect) => format!(
            "{} with {} {} instead of {}: {} {}.",
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
    let untested = analysis.untested.len();
    let is_tested = untested < analysis.hosts;
    let is_odd = !is_tested || !analysis.claims.is_empty() || analysis.blind().is_some();
    let mut lead = vec![item("Outliers", outliers, is_odd)];
    lead.extend(analysis.halves.iter().map(|halves| item("Two kinds", two_kinds(halves), true)));
    if is_tested {
        lead.push(item("Settings", setting, !analysis.effects.is_empty()));
    }
    if untested > 0 {
        let sentence = format!("{} had too few peers for a test.", count(untested, "host"));
        lead.push(item("Left out", sentence, true));
    }
    if !analysis.unfinished.is_empty() {
        lead.push(item("Unfinished", unfinished(analysis), true));
    }
    lead
}

/// Describes the hosts with unfinished runs; those that were tested have some figures.
fn unfinished(analysis: &Analysis) -> String {
    let is_tested = |host: &&Unfinished| analysis.untested.iter().all(|of| of.host != host.host);
    let tested = analysis.unfinished.iter().filter(is_tested).count();
    let all = analysis.unfinished.len();
    let (their, they_have) = match all {
        1 => ("its run", "it has"),
        _ => ("their runs", "they have"),
    };
    let basis = match tested {
        0 => String::new(),
        tested if tested == all => format!(" (tested on the figures {they_have})"),
        tested => format!(" ({tested} of them tested on the figures {they_have})"),
    };
    format!("{} did not finish {their}{basis}.", count(all, "host"))
}

/// Describes the result of a fleet without claims: only tested hosts can resemble their peers.
fn no_outlier(analysis: &Analysis) -> String {
    let hosts = count(analysis.hosts, "host");
    let alike = analysis.untested.iter().map(|host| host.alike).max().unwrap_or_default();
    match (analysis.hosts - analysis.untested.len(), analysis.untested.first()) {
        (0, Some(host)) if alike == analysis.hosts => {
            format!("No host was tested: {hosts}, {} alike are needed.", host.needed)
        }
        (0, Some(host)) => format!(
            "No host was tested: {hosts}, at most {alike} alike; {} alike are needed.",
            host.needed
        ),
        (tested, _) => match analysis.blind() {
            None => format!("None of the {tested} tested hosts differs from its peers."),
            Some(point) => format!(
                "Nothing can be said of the {tested} tested hosts: of hosts {:.0} standard deviations \
                 from their peers, {:.0} % would be found (too few hosts, or several far off on both \
                 sides){}.",
                point.shift,
                100.0 * point.power(),
                analysis
                    .farthest
                    .first()
                    .map(|far| format!("; the farthest is {}", sentence(far)))
                    .unwrap_or_default()
            ),
        },
    }
}

/// Describes the hosts that deviate, and how many of them a second run confirms.
fn outliers(analysis: &Analysis) -> String {
    let hosts = |seen: Option<Option<bool>>| -> usize {
        let of =
            analysis.claims.iter().filter(|claim| seen.is_none_or(|seen| claim.seen_again == seen));
        of.map(|claim| claim.host.as_str()).collect::<std::collections::BTreeSet<_>>().len()
    };
    let Some(worst) = analysis.claims.first() else {
        return no_outlier(analysis);
    };
    let sure = hosts(Some(Some(true)));
    let doubt = match (hosts(None) - sure, sure) {
        (0, _) => String::new(),
        (_, 0) => "; not confirmed by a second run: measure again".to_owned(),
        (open, _) => format!("; {open} of them not confirmed by a second run: measure again"),
    };
    let few = match analysis.claims.iter().map(|claim| claim.peers).min() {
        Some(peers) if peers + 1 < MANY_HOSTS => {
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
        "{} of {} {differ}; the farthest is {}{doubt}{few}.",
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
        "{} have {} {} than the other {}{setting}; each kind is judged separately.",
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
