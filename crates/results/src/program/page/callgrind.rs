//! A program's memory costs in Callgrind's format, for KCachegrind and `callgrind_annotate`:
//! <https://valgrind.org/docs/manual/cl-format.html>.
//!
//! Regions appear as functions, called where they are allocated, with the time spent waiting for
//! them. Pages are attributed to the place of their first touch, and contended lines to the places
//! that store to them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use numalab_record::{CodePlace, ProgramMemory, Region};

/// Name and description of each event column.
const EVENTS: [(&str, &str); 8] = [
    ("Wait", "ns spent waiting for memory and caches"),
    ("Remote", "ns spent waiting for memory and caches of other nodes"),
    ("Queued", "ns spent waiting because memory was busy"),
    ("Loads", "Loads"),
    ("Stores", "Stores"),
    ("Misses", "Accesses that reached memory"),
    ("Touched", "Pages touched first"),
    ("Contended", "ns spent waiting for contended cache lines"),
];
const NONE: Figures = [0; EVENTS.len()];

type Figures = [u64; EVENTS.len()];

/// A function of the program, or a region that appears as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    object: String,
    file: String,
    name: String,
}

/// A line of a function; 0 if unknown.
type CodeLine = (Function, u64);

#[derive(Debug, Default)]
struct Costs {
    own: BTreeMap<u64, Figures>,
    /// Number of calls and inclusive figures, by line of the call and callee.
    calls: BTreeMap<(u64, CodeLine), (u64, Figures)>,
}

pub(crate) fn callgrind(program: &ProgramMemory) -> String {
    let mut graph = Graph::default();
    for region in &program.regions {
        graph.add(&region.made_at, Some(of_region(region)), waits(region));
        for touches in &region.first_touches {
            let mut figures = NONE;
            figures[6] = touches.pages;
            graph.add(&touches.at, None, figures);
        }
    }
    for user in program.contended_lines.iter().flat_map(|line| &line.threads) {
        let mut figures = NONE;
        figures[7] = user.waited_ns;
        graph.add(&user.at, None, figures);
    }
    graph.text()
}

fn waits(region: &Region) -> Figures {
    let all = region.accesses.iter().map(|by| {
        let away = by.cpu_node != by.memory_node;
        let waits = by.waits();
        let remote_ns = waits.far_ns + if away { waits.memory_ns } else { 0 };
        let [loads, stores, misses] =
            [by.loads, by.stores, by.misses].map(Option::unwrap_or_default);
        [waits.waited_ns, remote_ns, waits.queue_ns, loads, stores, misses, 0, 0]
    });
    all.fold(NONE, sum)
}

fn sum(mut one: Figures, other: Figures) -> Figures {
    one.iter_mut().zip(other).for_each(|(sum, figure)| *sum += figure);
    one
}

/// Makes one function of all regions allocated at the same place.
fn of_region(region: &Region) -> CodeLine {
    let made = super::program::place(&region.made_at);
    let name = match made {
        Some(line) => format!("{} allocated at {line}", region.name),
        None => region.name.clone(),
    };
    (Function { object: "memory".to_owned(), file: "???".to_owned(), name }, 0)
}

fn of_code(place: &CodePlace) -> CodeLine {
    let named = place.line.as_deref().and_then(|line| line.rsplit_once(':'));
    let (file, line) = named.unwrap_or(("???", "0"));
    let in_object = || {
        let object = place.object.rsplit('/').next().unwrap_or_default();
        format!("{object}+{:#x}", place.offset)
    };
    let name = place.function.clone().unwrap_or_else(in_object);
    let function = Function { object: place.object.clone(), file: file.to_owned(), name };
    (function, line.parse().unwrap_or(0))
}

#[derive(Debug, Default)]
struct Graph {
    functions: BTreeMap<Function, Costs>,
    total: Figures,
}

impl Graph {
    /// Adds figures to the innermost (first) of these places, or to `called` when called from
    /// there.
    fn add(&mut self, places: &[CodePlace], called: Option<CodeLine>, figures: Figures) {
        if figures == NONE {
            return;
        }
        let inward = called.into_iter().chain(places.iter().map(of_code));
        let mut inner: Option<CodeLine> = None;
        for (function, line) in inward {
            let costs = self.functions.entry(function.clone()).or_default();
            // callgrind_annotate expects self cost on every line that calls.
            let own = costs.own.entry(line).or_insert(NONE);
            match inner {
                None => *own = sum(*own, figures),
                Some(callee) => {
                    let (times, all) = costs.calls.entry((line, callee)).or_insert((0, NONE));
                    (*times, *all) = (*times + 1, sum(*all, figures));
                }
            }
            inner = Some((function, line));
        }
        if inner.is_some() {
            self.total = sum(self.total, figures);
        }
    }

    fn text(&self) -> String {
        let names: Vec<&str> = EVENTS.iter().map(|(name, _)| *name).collect();
        let mut text = String::from("# callgrind format\nversion: 1\ncreator: numalab\n");
        text.push_str("positions: line\n");
        for (name, what) in EVENTS {
            let _ = writeln!(text, "event: {name} : {what}");
        }
        let _ = writeln!(text, "events: {}\nsummary: {}", names.join(" "), columns(&self.total));
        for (function, costs) in &self.functions {
            let Function { object, file, name } = function;
            let _ = writeln!(text, "\nob={}\nfl={}\nfn={}", one(object), one(file), one(name));
            for (line, figures) in &costs.own {
                let _ = writeln!(text, "{line} {}", columns(figures));
            }
            for ((line, (callee, at)), (times, figures)) in &costs.calls {
                let Function { object, file, name } = callee;
                let _ = writeln!(text, "cob={}\ncfi={}", one(object), one(file));
                let _ = writeln!(text, "cfn={}\ncalls={times} {at}", one(name));
                let _ = writeln!(text, "{line} {}", columns(figures));
            }
        }
        text
    }
}

fn columns(figures: &Figures) -> String {
    let figures: Vec<String> = figures.iter().map(u64::to_string).collect();
    figures.join(" ")
}

/// Replaces control characters, so that a name fits on one line.
fn one(name: &str) -> String {
    name.replace(|c: char| c.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use numalab_record::{AccessWaits, ContendedLine, FirstTouches, LineUser, RegionAccesses};

    use super::*;

    fn place(function: Option<&str>, line: Option<&str>) -> CodePlace {
        CodePlace {
            object: "/bin/solver".to_owned(),
            offset: 0x40,
            function: function.map(str::to_owned),
            line: line.map(str::to_owned),
        }
    }

    /// Returns a program in which `main` allocates a region in two calls of `table` and touches it;
    /// the heap's allocation site is unknown.
    fn program() -> ProgramMemory {
        let main = |line| place(Some("main"), Some(line));
        let region = |name: &str, made_at: Vec<CodePlace>, waited_ns| Region {
            name: name.to_owned(),
            made_at,
            accesses: vec![RegionAccesses {
                cpu_node: 1,
                waits: Some(AccessWaits {
                    waited_ns,
                    memory_ns: waited_ns - 10,
                    ..AccessWaits::default()
                }),
                loads: Some(7),
                ..RegionAccesses::default()
            }],
            ..Region::default()
        };
        let made = |line| vec![place(Some("table"), Some("src/t.c:5")), main(line)];
        let mut first = region("[anonymous]", made("src/t.c:20"), 100);
        first.first_touches = vec![FirstTouches {
            thread: 0,
            cpu_node: 0,
            pages: 3,
            at: vec![place(None, None), main("src/t.c:22")],
        }];
        let user = LineUser {
            thread: 0,
            cpu_node: 0,
            loads: 1,
            stores: 1,
            loaded_bytes: 1,
            stored_bytes: 1,
            waited_ns: 9,
            at: vec![main("src/t.c:25")],
        };
        let second = region("[anonymous]", made("src/t.c:20"), 50);
        ProgramMemory {
            regions: vec![first, second, region("[heap]", Vec::new(), 1000)],
            contended_lines: vec![ContendedLine {
                address: 64,
                region: String::new(),
                changes: 1,
                threads: vec![user],
            }],
            ..ProgramMemory::default()
        }
    }

    #[test]
    fn waits_for_regions_are_in_the_calls_that_allocated_them() {
        insta::assert_snapshot!(callgrind(&program()));
    }

    #[test]
    fn names_stay_on_their_lines_and_a_program_that_did_nothing_has_no_functions() {
        let mut program = program();
        program.regions.truncate(1);
        program.regions[0].made_at[0].function = Some("a\nfn=b".to_owned());
        let text = callgrind(&program);
        assert!(text.contains("fn=a fn=b\n"), "{text}");
        assert!(!callgrind(&ProgramMemory::default()).contains("\nfn="));
    }
}
