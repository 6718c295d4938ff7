//! Advice for a program: predicted, tried, undecided, and every option in words.

use numalab_page::Style;
use numalab_record::study::Quantity;
use numalab_results::Report;
use numalab_results::VerdictWord;
use numalab_results::advice::page::what;
use numalab_results::advice::{
    Advice, AdvisedOption, Candidate, CostsKnown, CpuPlace, CrowdedSegment, MachineCosts, Measured,
    Prediction, Profile, RaceEnd, Spread, ToolCommand, TrialPlace, Trials, TrialsEnd, Untried,
};

use crate::whole;

fn machine() -> MachineCosts {
    let place = |cpu: u32| CpuPlace { cpu, node: cpu / 2, core: cpu, group: cpu / 2 };
    MachineCosts {
        known: CostsKnown::Typical,
        nodes: vec![0, 1],
        cpus: vec![2, 2],
        has_memory: vec![true, true],
        places: (0..4).map(place).collect(),
        latency_ns: vec![vec![100.0, 180.0], vec![180.0, 100.0]],
        ..MachineCosts::default()
    }
}

fn option(candidate: Candidate, predicted: Option<(f64, f64, f64)>) -> AdvisedOption {
    let predicted = predicted.map(|(change_percent, low, high)| Prediction {
        change_percent,
        interval_percent: (low, high),
    });
    AdvisedOption { candidate, predicted, measured: None, untried: None, commands: Vec::new() }
}

fn measured(change_percent: f64, ends: Option<(f64, f64)>, verdict: VerdictWord) -> Measured {
    Measured { change_percent, interval_percent: ends, verdict, out: None }
}

fn line(tool: &str, command: &str) -> ToolCommand {
    ToolCommand { tool: tool.to_owned(), command: command.to_owned() }
}

fn advice(place: TrialPlace, options: Vec<AdvisedOption>) -> Advice {
    let profile = Profile { elapsed_ns: 1_234_000_000, memory_share: 0.375, threads: 4 };
    Advice {
        crowded: None,
        command: ["./solver", "-n", "two words"].map(str::to_owned).to_vec(),
        machine: machine(),
        place,
        profile: Some(profile),
        metric: None,
        trials: None,
        options,
    }
}

fn trials(end: TrialsEnd) -> Option<Trials> {
    let again_percent = Some((-0.4, 0.6));
    Some(Trials {
        blocks: 12,
        repeats: false,
        again_percent,
        end,
        directory: Some("results/trials".to_owned()),
    })
}

#[test]
fn advice_by_predictions_alone_is_as_it_was_in_every_format() {
    let bind = AdvisedOption {
        commands: vec![
            line("numalab", "numalab bind --numa=1 -- ./solver"),
            line("numactl", "numactl -N1 ./solver"),
        ],
        ..option(Candidate::Bind { node: 1 }, Some((-25.5, -32.0, -18.0)))
    };
    let touch = Candidate::FirstTouch {
        line: Some("/home/a/solver.c:7".to_owned()),
        region: "[heap]".to_owned(),
    };
    let touch = AdvisedOption {
        untried: Some(Untried::ProgramMustChange),
        ..option(touch, Some((-12.0, -16.0, -8.0)))
    };
    let cpus = Candidate::Cpus { spread: Spread::Groups, cpus: vec![0, 2] };
    whole::compare(
        "advice-predicted",
        &advice(TrialPlace::Emulation, vec![bind, touch, option(cpus, None)]),
    );
}

/// The instruction of an option without a gain stood below the tables, without its name.
#[test]
fn instructions_are_named_and_those_of_gains_other_than_the_best() {
    let change = |line: &str, percent: f64| {
        let (line, region) = (Some(line.to_owned()), "[heap]".to_owned());
        let touch = Candidate::FirstTouch { line, region };
        option(touch, Some((percent, percent - 2.0, percent + 2.0)))
    };
    let options = vec![change("a.c:1", -12.0), change("b.c:2", -8.0), change("c.c:3", 0.2)];
    let page = advice(TrialPlace::Emulation, options).page();
    let notes = page.parts.iter().flat_map(|part| &part.notes);
    let said: Vec<&String> = notes.filter(|note| note.contains("touch it first")).collect();
    let expected = "First touch by users (b.c:2): Let the threads that use this memory touch it first, \
                    instead of b.c:2.";
    assert_eq!(said, [expected]);
}

#[test]
fn advice_by_trials_is_as_it_was_in_every_format() {
    let bind = AdvisedOption {
        commands: vec![line("numalab", "numalab bind --numa=1 -- ./solver")],
        measured: Some(measured(-21.0, Some((-24.0, -18.5)), VerdictWord::Better)),
        ..option(Candidate::Bind { node: 1 }, Some((-25.5, -32.0, -18.0)))
    };
    let out = RaceEnd { blocks: 3, behind: Some(0) };
    let turns = AdvisedOption {
        measured: Some(Measured {
            out: Some(out),
            ..measured(-4.0, None, VerdictWord::Inconclusive)
        }),
        ..option(Candidate::Interleave { nodes: vec![0, 1] }, Some((-6.0, -11.0, 1.0)))
    };
    let huge = AdvisedOption {
        untried: Some(Untried::Failed("exit status 139".to_owned())),
        ..option(Candidate::HugePages, None)
    };
    let balancing = AdvisedOption {
        untried: Some(Untried::NeedsRoot("numa_balancing".to_owned())),
        ..option(Candidate::Balancing { mode: 1 }, None)
    };
    let mut of = advice(TrialPlace::Host, vec![bind, turns, huge, balancing]);
    of.trials = trials(TrialsEnd::BudgetSpent);
    whole::compare("advice-tried", &of);
}

/// The answer to false sharing, which separate lines would end, was a placement that gained 4 %.
#[test]
fn a_change_of_the_program_that_is_sure_to_gain_more_than_what_was_tried_comes_first() {
    let with = |high: f64| {
        let mut of = tried(-3.8, (-3.8, -3.8), VerdictWord::Better);
        let lines = Candidate::SeparateLines { lines: vec!["a.c:3".to_owned()] };
        of.options.push(option(lines, Some((-62.4, -88.1, high))));
        of
    };
    let expected = "Separate cache lines (a.c:3) is predicted to change the time by -62.4 % (-88.1 to \
                    -47.9), more than anything tried. Give each thread a separate cache line (64 bytes) \
                    for the data stored at a.c:3.";
    let lead = with(-47.9).page().lead.swap_remove(0);
    assert_eq!((lead.name.as_str(), lead.sentence.as_str()), ("Change the program", expected));
    assert_eq!(said(&with(-3.0), "Change the program"), [""; 0], "it may gain less");
    let rate = Advice { metric: Some(Quantity::lower("t", "ms")), ..with(-47.9) };
    assert_eq!(said(&rate, "Change the program"), [""; 0], "the prediction is of another figure");
}

fn title(of: &Advice) -> String {
    of.page().title
}

fn tried(change: f64, ends: (f64, f64), verdict: VerdictWord) -> Advice {
    let bind = AdvisedOption {
        measured: Some(measured(change, Some(ends), verdict)),
        ..option(Candidate::Bind { node: 0 }, Some((-25.5, -32.0, -18.0)))
    };
    Advice { trials: trials(TrialsEnd::Done), ..advice(TrialPlace::Host, vec![bind]) }
}

#[test]
fn the_answer_names_the_best_placement_its_gain_and_the_evidence() {
    let bound = option(Candidate::Bind { node: 1 }, Some((-25.5, -32.0, -18.0)));
    let predicted = advice(TrialPlace::Guest, vec![bound]);
    assert_eq!(title(&predicted), "Bind to node 1: -25.5 % of the time, predicted");
    let found = tried(-21.0, (-24.0, -18.0), VerdictWord::Better);
    assert_eq!(title(&found), "Bind to node 0: -21.0 % of the time, measured on this machine");
    for (place, here) in
        [(TrialPlace::Guest, " in a guest"), (TrialPlace::Emulation, " under emulation")]
    {
        let found = Advice { place, ..found.clone() };
        assert!(title(&found).ends_with(&format!("measured{here}")), "{}", title(&found));
    }
    let rate = Advice {
        metric: Some(Quantity::higher("rate", "ops/s")),
        ..tried(21.0, (18.0, 24.0), VerdictWord::Better)
    };
    assert_eq!(
        title(&rate),
        "Bind to node 0: +21.0 % of the metric (ops/s), measured on this machine"
    );
}

#[test]
fn a_gain_that_is_likely_but_not_certain_is_not_called_none() {
    let turns = |low| {
        let turns = Candidate::Interleave { nodes: vec![0, 1] };
        title(&advice(TrialPlace::Emulation, vec![option(turns, Some((-0.5, low, 5.6)))]))
    };
    assert_eq!(
        turns(-20.0),
        "No certain gain: 37.5 % of the time is spent waiting for memory; a trial would decide \
         Interleave over nodes 0,1, predicted to change the time by -0.5 % (-20.0 to +5.6)"
    );
    assert!(turns(-1.0).starts_with("No gain from placement:"), "too small to be worthwhile");
}

#[test]
fn a_change_that_rounds_to_none_has_no_sign_and_one_node_is_not_several() {
    let region = Candidate::BindRegion {
        region: "table".to_owned(),
        address: 0,
        line: "/src/table.c:10".to_owned(),
        nodes: vec![1],
    };
    let options = [-0.04, 0.04].map(|change| option(region.clone(), Some((change, -1.0, 1.0))));
    let text = advice(TrialPlace::Emulation, options.to_vec()).page().terminal(Style::Plain);
    assert!(text.contains("One region on node 1 (table.c:10)"), "{text}");
    assert!(!text.contains("+0.0") && !text.contains("-0.0"), "{text}");
}

#[test]
fn the_answer_without_a_gain_says_why() {
    let waits = "37.5 % of the time is spent waiting for memory";
    assert_eq!(
        title(&advice(TrialPlace::Host, Vec::new())),
        format!("No gain from placement: {waits}")
    );
    let open = tried(-3.0, (-9.0, 4.0), VerdictWord::Inconclusive);
    assert_eq!(title(&open), format!("Undecided: {waits}; more blocks (--blocks) would settle it"));
    let none = tried(4.0, (1.0, 9.0), VerdictWord::Worse);
    assert_eq!(title(&none), format!("No gain was found: {waits}; nothing tried was faster"));
    let closed = tried(4.0, (1.0, 9.0), VerdictWord::Inconclusive);
    assert!(title(&closed).starts_with("No gain was found"), "no end of it is a gain");
    let mut hardly = advice(TrialPlace::Host, Vec::new());
    hardly.profile.as_mut().unwrap().memory_share = 0.0123;
    assert_eq!(title(&hardly), "No gain possible: 1.23 % of the time is spent waiting for memory");
    let unknown = Advice { profile: None, ..advice(TrialPlace::Host, Vec::new()) };
    assert_eq!(title(&unknown), "Nothing was tried or predicted");
    let undecided = Advice { profile: None, ..open };
    assert_eq!(title(&undecided), "Undecided; more blocks (--blocks) would settle it");
}

/// Returns the sentences under this name.
fn said(of: &Advice, name: &str) -> Vec<String> {
    let leads = of.page().lead;
    leads.into_iter().filter(|lead| lead.name == name).map(|lead| lead.sentence).collect()
}

#[test]
fn shared_memory_that_fills_its_nodes_is_named_with_the_call_that_spreads_it_alone() {
    let segment = |name: &str, nodes: &[u32]| {
        let (name, nodes) = (name.to_owned(), nodes.to_vec());
        let crowded = CrowdedSegment { name, bytes: 192 << 30, nodes, over: vec![0, 1, 2, 3] };
        let advice = Advice { crowded: Some(crowded), ..advice(TrialPlace::Host, Vec::new()) };
        advice.page().lead.into_iter().find(|lead| lead.name == "Shared memory").unwrap()
    };
    let lead = segment("[anonymous]", &[0, 1]);
    assert!(lead.sentence.starts_with("[anonymous] of 192 GiB is placed by its first touch"));
    assert!(lead.sentence.contains("and fills nodes 0,1,"), "{}", lead.sentence);
    let command = lead.command.unwrap();
    assert!(command.contains("numa_interleave_memory(p, bytes, numa_parse_nodestring(\"0-3\"))"));
    let lead = segment("/dev/shm/pool", &[0]);
    assert!(lead.sentence.contains("and fills node 0,"), "{}", lead.sentence);
    let command = lead.command.unwrap();
    assert!(command.contains("--file=/dev/shm/pool --interleave=0-3"), "{command}");
}

#[test]
fn a_machines_limits_are_stated_for_that_machine_alone() {
    let mut small = advice(TrialPlace::Host, Vec::new());
    assert_eq!(said(&small, "Not here"), [""; 0]);
    small.machine.has_memory[1] = false;
    let one_node = "all memory is on one node, so binding, interleaving, first touch and NUMA balancing have no effect";
    assert_eq!(said(&small, "Not here"), [format!("{one_node}.")]);
    small.machine.places.iter_mut().for_each(|place| place.group = 0);
    let one_l3 =
        "all cores share one L3 and have no SMT siblings, so spreading threads has no effect";
    assert_eq!(said(&small, "Not here"), [format!("{one_node}; {one_l3}.")]);
    small.options = vec![option(Candidate::Ranks { options: Vec::new() }, None)];
    assert_eq!(said(&small, "Not here"), [format!("{one_node}.")], "ranks can be placed otherwise");
    small.place = TrialPlace::Guest;
    assert_eq!(said(&small, "Not here"), [""; 0]);
}

#[test]
fn predictions_from_foreign_figures_say_how_to_measure_this_machine() {
    let by = |known| {
        let mut of = advice(TrialPlace::Emulation, Vec::new());
        of.machine.known = known;
        let lead = of.page().lead.into_iter().find(|lead| lead.name == "Predictions");
        lead.map(|lead| (lead.sentence.split([',', ':']).next().unwrap().to_owned(), lead.command))
    };
    let capture = Some("numalab machine capture -o here.toml".to_owned());
    assert_eq!(
        by(CostsKnown::Typical),
        Some(("from typical latencies only".to_owned(), capture.clone()))
    );
    assert_eq!(
        by(CostsKnown::Firmware),
        Some(("from the firmware's latencies".to_owned(), capture))
    );
    assert_eq!(by(CostsKnown::Described), None);
    assert_eq!(by(CostsKnown::Measured("here.toml".to_owned())), None);
}

#[test]
fn the_reason_for_the_end_of_trials_is_reported_unless_all_blocks_ran() {
    let ended = |end| {
        let of = Advice { trials: trials(end), ..advice(TrialPlace::Host, Vec::new()) };
        said(&of, "Trials")
    };
    let noise = "12 blocks; compared with itself, the unchanged program differs by -0.4 to +0.6 \
        %; samples are in results/trials.";
    assert_eq!(ended(TrialsEnd::Done), [noise]);
    assert_eq!(ended(TrialsEnd::Interrupted), [noise, "interrupted."]);
    assert_eq!(ended(TrialsEnd::BudgetSpent)[1], "the budget ran out before all blocks had run.");
    assert!(ended(TrialsEnd::NoneLeft)[1].contains("no remaining candidate could win"));
}

#[test]
fn every_candidate_has_its_words() {
    let line = || Some("/src/a.c:3".to_owned());
    let region = || "[heap]".to_owned();
    let bind_region = Candidate::BindRegion {
        region: region(),
        address: 1,
        line: "/s/a.c:3".to_owned(),
        nodes: vec![0, 1],
    };
    let place_file =
        Candidate::PlaceFile { path: "/data/model.bin".to_owned(), address: 1, nodes: vec![0, 1] };
    let cpus = |spread| Candidate::Cpus { spread, cpus: vec![0, 1, 2, 8] };
    let ranks = |option: &str| Candidate::Ranks { options: vec![option.to_owned()] };
    for (candidate, words) in [
        (Candidate::Bind { node: 4 }, "Bind to node 4"),
        (Candidate::Interleave { nodes: vec![0, 1, 4] }, "Interleave over nodes 0,1,4"),
        (Candidate::WeightedInterleave { weights: vec![3, 1] }, "Interleave by bandwidth (3:1)"),
        (Candidate::FastMemory { nodes: vec![0] }, "Memory of node 0 only"),
        (Candidate::Pack, "Pack threads node by node (close)"),
        (cpus(Spread::Cores), "One thread per core (cpus 0-2,8)"),
        (cpus(Spread::Siblings), "On SMT siblings (cpus 0-2,8)"),
        (cpus(Spread::Groups), "Spread over L3 groups (cpus 0-2,8)"),
        (cpus(Spread::OneGroup), "Packed into few L3 groups (cpus 0-2,8)"),
        (Candidate::Balancing { mode: 0 }, "NUMA balancing off"),
        (Candidate::Balancing { mode: 1 }, "NUMA balancing on"),
        (Candidate::Balancing { mode: 2 }, "NUMA balancing by tier"),
        (Candidate::HugePages, "Huge pages (THP)"),
        (bind_region, "One region on nodes 0,1 (a.c:3)"),
        (place_file, "File on nodes 0,1 (model.bin)"),
        (Candidate::FirstTouch { line: line(), region: region() }, "First touch by users (a.c:3)"),
        (Candidate::FirstTouch { line: None, region: region() }, "First touch by users"),
        (
            Candidate::Replicate { line: line(), region: region() },
            "Copies of read-only data (a.c:3)",
        ),
        (
            Candidate::SeparateLines { lines: vec!["/s/a.c:3".to_owned(), "b.c:4".to_owned()] },
            "Separate cache lines (a.c:3, b.c:4)",
        ),
        (ranks("--distribution=block:block"), "Ranks in blocks"),
        (ranks("--distribution=block:cyclic"), "Ranks round-robin over sockets"),
        (ranks("--cpu-bind=ldoms"), "Ranks within NUMA domains"),
        (ranks("--hint=x"), "Ranks by --hint=x"),
    ] {
        assert_eq!(what(&candidate), words);
    }
}

#[test]
fn a_change_for_the_author_replaces_the_command() {
    let use_it = |candidate| {
        let of =
            advice(TrialPlace::Emulation, vec![option(candidate, Some((-25.0, -30.0, -20.0)))]);
        said(&of, "Use").pop()
    };
    let region = || "[heap]".to_owned();
    let bind = |nodes: &[u32]| Candidate::BindRegion {
        region: region(),
        address: 1,
        line: "/s/a.c:3".to_owned(),
        nodes: nodes.to_vec(),
    };
    assert_eq!(
        use_it(bind(&[1])).as_deref(),
        Some(
            "After a.c:3, before the region is used, call numa_tonode_memory(p, bytes, 1) of libnuma (numa(3)) instead of any other call that places it."
        )
    );
    let call = "numa_interleave_memory(p, bytes, numa_parse_nodestring(\"0,1\"))";
    assert_eq!(
        use_it(bind(&[0, 1])),
        Some(format!(
            "After a.c:3, before the region is used, call {call} of libnuma (numa(3)) instead of any \
             other call that places it."
        ))
    );
    let separate =
        Candidate::SeparateLines { lines: vec!["/s/a.c:3".to_owned(), "/s/b.c:4".to_owned()] };
    assert_eq!(
        use_it(separate).as_deref(),
        Some(
            "Give each thread a separate cache line (64 bytes) for the data stored at a.c:3 and b.c:4."
        )
    );
    let copy = Candidate::Replicate { line: Some("/s/a.c:3".to_owned()), region: region() };
    assert_eq!(
        use_it(copy).as_deref(),
        Some("Make a copy of the data allocated at a.c:3 on each node.")
    );
    assert_eq!(
        use_it(Candidate::FirstTouch { line: None, region: region() }),
        None,
        "nobody knows where"
    );
}

#[test]
fn a_trial_that_was_cut_short_or_never_made_has_its_word() {
    let last = |option: AdvisedOption| {
        let of =
            Advice { trials: trials(TrialsEnd::Done), ..advice(TrialPlace::Host, vec![option]) };
        let page = of.page();
        let options = page.parts.iter().find(|part| part.title == "Options").unwrap();
        options.panels[0].table.rows[0].last().unwrap().clone()
    };
    let untried = |why| AdvisedOption { untried: Some(why), ..option(Candidate::Pack, None) };
    assert_eq!(last(untried(Untried::NotEmulated)), "not emulated");
    assert_eq!(last(untried(Untried::NeedsRoot("thp".to_owned()))), "needs root");
    assert_eq!(last(untried(Untried::NotInKernel("thp".to_owned()))), "no thp here");
    assert_eq!(last(untried(Untried::NoOpenMp)), "OpenMP only");
    assert_eq!(last(untried(Untried::ProgramMustChange)), "program change");
    for (verdict, word) in [
        (VerdictWord::Better, "better"),
        (VerdictWord::Worse, "worse"),
        (VerdictWord::Equivalent, "equivalent"),
        (VerdictWord::Inconclusive, "inconclusive"),
    ] {
        let measured = Some(measured(-1.0, None, verdict));
        assert_eq!(last(AdvisedOption { measured, ..option(Candidate::Pack, None) }), word);
    }
    assert_eq!(last(option(Candidate::Pack, None)), "");
}
