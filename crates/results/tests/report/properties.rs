//! Any run can be rendered: extreme values, hostile names, and cells that do not fit together.

use numalab_page::{Format, Style};
use numalab_record::*;
use numalab_results::compare::{NamedRun, Tolerance, compare};
use numalab_results::run::*;
use numalab_results::*;
use numalab_topology::{CpuId, Machine, NodeId};
use proptest::prelude::*;

use crate::runs;

/// Generates names that would act as markup, escapes, formulas or tables if not escaped.
fn name() -> impl Strategy<Value = String> {
    let evil = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "a|b`c`*d*",
        "=cmd()",
        "\u{1b}[31mred\nline\r",
        "",
        "名前 with spaces and a very very very very very very very very long tail indeed",
    ];
    prop_oneof![proptest::sample::select(evil.to_vec()).prop_map(str::to_owned), "\\PC{0,30}",]
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.5..300.0_f64,
        1 => proptest::sample::select(vec![
            0.0, -0.0, -1.0, 1e-300, 1e300, f64::MAX, f64::MIN, f64::MIN_POSITIVE,
            f64::INFINITY, f64::NEG_INFINITY,
        ]),
    ]
}

fn worker() -> impl Strategy<Value = WorkerPlan> {
    (0..20_u32, 0..9_u32).prop_map(|(cpu, node)| WorkerPlan { cpu: CpuId(cpu), node: NodeId(node) })
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), (12..31_u32).prop_map(|octave| 1 << octave)]
}

fn pattern() -> impl Strategy<Value = AccessPattern> {
    prop_oneof![
        Just(AccessPattern::Random),
        Just(AccessPattern::PageLocal),
        any::<u64>().prop_map(AccessPattern::Stride),
        Just(AccessPattern::Sequential),
    ]
}

fn pages() -> impl Strategy<Value = Pages> {
    let all = vec![Pages::BASE_4K, Pages::Transparent, Pages::HUGE_2M, Pages::HUGE_1G];
    proptest::sample::select(all)
}

fn experiment() -> impl Strategy<Value = Experiment> {
    let workers = || proptest::collection::vec(worker(), 0..4);
    let latency = (worker(), size(), pattern(), pages(), any::<bool>()).prop_map(
        |(worker, size_bytes, pattern, pages, serial)| {
            let team = if serial { Team::Serial } else { Team::Concurrent };
            Experiment::Latency(LatencyCell { worker, size_bytes, pattern, pages, team })
        },
    );
    let kernel = || proptest::sample::select(StreamKernel::ALL.to_vec());
    let bandwidth = (workers(), kernel(), pattern(), size(), pages(), name()).prop_map(
        |(workers, kernel, pattern, size_bytes, pages, isa)| {
            Experiment::Bandwidth(BandwidthCell {
                workers,
                kernel,
                pattern,
                size_bytes,
                pages,
                isa: IsaName(isa),
            })
        },
    );
    let delay = proptest::option::of(any::<u32>());
    let loaded = (worker(), workers(), kernel(), delay, pages()).prop_map(
        |(chaser, load, kernel, delay, pages)| {
            Experiment::Loaded(LoadedCell {
                chaser,
                load,
                kernel,
                delay,
                size_bytes: 1 << 28,
                pages,
            })
        },
    );
    let c2c = (worker(), worker()).prop_map(|(from, to)| {
        Experiment::C2c(C2cCell { from: from.cpu, to: to.cpu, home: to.node })
    });
    let core = worker().prop_map(|worker| Experiment::Core(CoreCell { cpu: worker.cpu }));
    prop_oneof![4 => latency, 2 => bandwidth, 2 => loaded, 1 => c2c, 1 => core]
}

prop_compose! {
    fn cell()(
        id in name(),
        experiment in experiment(),
        values in proptest::collection::vec((value(), any::<bool>()), 0..30),
        metrics in proptest::collection::vec(proptest::sample::select(Metric::ALL.to_vec()), 0..3),
        ended in prop_oneof![
            4 => Just(Some(Outcome::Precise)),
            1 => Just(Some(Outcome::BudgetSpent)),
            1 => name().prop_map(|reason| Some(Outcome::Failed { reason })),
            1 => Just(None),
        ],
    ) -> CellResult {
        let id = CellId(id);
        let sample = |metric, (index, (value, quiet)): (u32, &(f64, bool))| Sample {
            cell: id.clone(),
            metric,
            index,
            value: *value,
            start_ns: u64::from(index),
            duration_ns: 1,
            work: 1,
            disturbed: (!quiet).then(|| "<b>steal</b>".to_owned()),
        };
        let samples = metrics
            .iter()
            .flat_map(|&metric| (0..).zip(&values).map(move |window| (metric, window)))
            .map(|(metric, window)| sample(metric, window))
            .collect();
        CellResult {
            cell: Cell { id: id.clone(), experiment },
            ended,
            placements: Vec::new(),
            samples,
        }
    }
}

prop_compose! {
    fn document()(
        cells in proptest::collection::vec(cell(), 0..25),
        facts in proptest::collection::btree_map(name(), name(), 0..4),
        host in name(),
        label in proptest::option::of(name()),
        nodes in 0..6_u32,
        times in any::<(u64, u64)>(),
        precision in value(),
    ) -> Document {
        let machine = if nodes == 0 {
            Machine::default()
        } else {
            runs::machine(nodes, 3, |from, to| if from == to { 10 } else { 20 })
        };
        let mut document = runs::Builder::new(machine).document;
        let run = &mut document.run;
        run.environment.facts.extend(facts.into_iter().map(|(name, text)| (name, text.into())));
        run.environment.facts.insert("hostname".into(), host.clone().into());
        run.name = host;
        run.label = label;
        run.started_unix_ms = times.0;
        run.budget_ns = times.1;
        run.precision = precision;
        document.cells = cells;
        document
    }
}

/// Returns the first tag of a page that is not one of ours.
fn foreign_tag(page: &str) -> Option<&str> {
    let known = [
        "!DOCTYPE",
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "main",
        "footer",
        "section",
        "nav",
        "figure",
        "figcaption",
        "div",
        "span",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "p",
        "h1",
        "h2",
        "ol",
        "li",
        "b",
        "a",
        "dl",
        "dt",
        "dd",
        "i",
        "details",
        "summary",
        "svg",
        "desc",
        "line",
        "path",
        "text",
        "circle",
        "rect",
        "script",
    ];
    page.split('<').skip(1).find(|tag| {
        let tag = tag.strip_prefix('/').unwrap_or(tag);
        let end = tag.find([' ', '>']).unwrap_or(tag.len());
        !known.contains(&&tag[..end])
    })
}

/// Returns the text between style and script.
fn body_of(page: &str) -> &str {
    let body = page.split_once("</style>").map_or("", |(_, body)| body);
    body.split_once("<script>").map_or("", |(body, _)| body)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_run_renders_with_every_name_escaped(document in document()) {
        let summary = Summary::of(&document);
        let page = summary.page().html();
        let body = body_of(&page);
        prop_assert_eq!(foreign_tag(body), None);
        prop_assert!(!body.contains("onerror=alert(1)>"));
        prop_assert!(!body.contains("NaN") && !body.contains("inf\""), "a number got lost");
        prop_assert_eq!(page.matches("<script").count(), 1);
        let markdown = summary.page().markdown();
        prop_assert!(!markdown.contains("<script"));
        prop_assert!(!markdown.contains(char::from(27)));
        let text = summary.page().terminal(Style::Plain);
        let controls = |c: char| c.is_control() && c != '\n';
        prop_assert!(!text.contains(controls));
        prop_assert!(text.lines().all(|line| line.chars().count() <= 80), "{}", text);
        prop_assert!(summary.json().is_ok());
        let lines = summary.exported(Format::Csv).unwrap().matches('\n').count();
        prop_assert!(lines > document.cells.len());
        let _ = latency_table(&document);
    }

    #[test]
    fn any_run_is_not_worse_than_itself(document in document()) {
        let runs = [NamedRun { name: "one".to_owned(), document: document.clone() }];
        let comparison = compare(&runs, &runs, &Tolerance::default());
        prop_assert!(!comparison.any_worse());
        let page = comparison.document().page().html();
        prop_assert_eq!(foreign_tag(body_of(&page)), None);
        let text = comparison.document().page().terminal(Style::Plain);
        prop_assert!(text.lines().all(|line| line.chars().count() <= 80), "{}", text);
        prop_assert!(!comparison.document().page().markdown().contains("<script"));
        prop_assert!(comparison.document().json().is_ok());
    }
}
