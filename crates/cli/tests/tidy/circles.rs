//! Finds circular dependencies between the files of a crate, by the paths in their code.
//!
//! A module and its children may depend on each other. Re-exported names (`pub use`) belong to the
//! file that defines them.

use std::collections::{BTreeMap, BTreeSet};

/// A module's path in its crate; empty for `lib.rs` and `main.rs`.
pub type Module = Vec<String>;

/// Returns the modules of each circle.
pub fn circles(sources: &BTreeMap<Module, String>) -> Vec<Vec<String>> {
    let known = knows(sources);
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        known.keys().map(|module| (module, reached(module, &known))).collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (module, all) in &reached {
        let circle: Vec<String> = all
            .iter()
            .filter(|other| reached[*other].contains(module))
            .map(|other| other.join("::"))
            .collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

fn reached<'a>(
    from: &Module,
    known: &'a BTreeMap<Module, BTreeSet<Module>>,
) -> BTreeSet<&'a Module> {
    let mut all = BTreeSet::new();
    let mut open: Vec<&Module> = known[from].iter().collect();
    while let Some(module) = open.pop() {
        if all.insert(module) {
            open.extend(&known[module]);
        }
    }
    all
}

/// Returns the modules that each module names, except its parents and children.
fn knows(sources: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let is_kin = |a: &Module, b: &Module| a.starts_with(b) || b.starts_with(a);
    let imports: BTreeMap<Module, Vec<Module>> = sources
        .iter()
        .map(|(module, code)| (module.clone(), absolute(module, paths(code), sources)))
        .collect();
    let others = |(module, paths): (&Module, &Vec<Module>)| {
        let named = paths.iter().flat_map(|path| owners(path, sources, &imports));
        (module.clone(), named.filter(|other| !is_kin(module, other)).collect())
    };
    imports.iter().map(others).collect()
}

/// Returns the module that a path names, and those that re-export the name.
fn owners(
    path: &Module,
    sources: &BTreeMap<Module, String>,
    imports: &BTreeMap<Module, Vec<Module>>,
) -> Vec<Module> {
    let (mut path, mut owners) = (path.clone(), Vec::new());
    loop {
        let end = (0..=path.len()).rev().find(|end| sources.contains_key(&path[..*end]));
        let (module, rest) = path.split_at(end.unwrap_or(0));
        let module = module.to_vec();
        if owners.contains(&module) {
            return owners;
        }
        let handed_on = rest
            .first()
            .and_then(|name| imports[&module].iter().find(|import| import.last() == Some(name)));
        owners.push(module);
        match handed_on {
            Some(import) => path = [import.as_slice(), &rest[1..]].concat(),
            None => return owners,
        }
    }
}

/// Makes paths absolute in the crate; paths into other crates are left out.
fn absolute(
    module: &Module,
    paths: Vec<Module>,
    sources: &BTreeMap<Module, String>,
) -> Vec<Module> {
    let from_root = |path: Module| {
        let mut base = module.clone();
        let mut names = path.as_slice();
        match path[0].as_str() {
            "crate" => (base, names) = (Module::new(), &names[1..]),
            "self" => names = &names[1..],
            "super" => {
                while let Some(("super", rest)) =
                    names.split_first().map(|(first, rest)| (first.as_str(), rest))
                {
                    base.pop();
                    names = rest;
                }
            }
            child if sources.contains_key([&base[..], &[child.to_owned()]].concat().as_slice()) => {
            }
            _ => return None,
        }
        base.extend_from_slice(names);
        Some(base)
    };
    paths.into_iter().filter_map(from_root).collect()
}

/// Returns every imported path, and every other that begins with `crate` or `super`.
fn paths(code: &str) -> Vec<Module> {
    let mut found = Vec::new();
    let mut lines = code.lines().map(|line| line.split("//").next().unwrap_or(line));
    while let Some(line) = lines.next() {
        let Some(first) = imported(line) else {
            found.extend(inline(line));
            continue;
        };
        let mut tree = first.to_owned();
        while !tree.contains(';') {
            tree.push_str(lines.next().unwrap_or(";"));
        }
        expand(&[], tree.split(';').next().unwrap_or_default(), &mut found);
    }
    found
}

/// Returns the path after `use` in a line that begins with it, after `pub` and the like.
fn imported(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let visible = line.strip_prefix("pub").map(|rest| match rest.strip_prefix('(') {
        Some(within) => within.split_once(')').map_or(rest, |(_, rest)| rest).trim_start(),
        None => rest.trim_start(),
    });
    visible.unwrap_or(line).strip_prefix("use ")
}

/// Expands `a::{b, c::{d, e as f}}` to paths.
fn expand(above: &[String], tree: &str, found: &mut Vec<Module>) {
    let (head, group) = match tree.split_once('{') {
        Some((head, group)) => (head, group.rsplit_once('}').map(|(inner, _)| inner)),
        None => (tree, None),
    };
    let head = head.split(" as ").next().unwrap_or_default();
    let names = head.split("::").map(str::trim).filter(|name| !name.is_empty());
    let path: Module = above.iter().cloned().chain(names.map(str::to_owned)).collect();
    let Some(group) = group else {
        if !path.is_empty() {
            found.push(path);
        }
        return;
    };
    let (mut depth, mut from) = (0_usize, 0);
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&path, &group[from..at], found);
                from = (at + 1).min(group.len());
            }
            _ => {}
        }
    }
}

/// Finds paths such as `crate::plan::cell` within code.
fn inline(code: &str) -> Vec<Module> {
    let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = code.split(|c| !is_of_path(c));
    let named = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    named
        .map(|word| word.split("::").filter(|n| !n.is_empty()).map(str::to_owned).collect())
        .collect()
}

/// Returns sources by module path (`a::b`), for tests.
fn given(files: &[(&str, &str)]) -> BTreeMap<Module, String> {
    let module =
        |path: &str| path.split("::").filter(|n| !n.is_empty()).map(str::to_owned).collect();
    files.iter().map(|(path, code)| (module(path), (*code).to_owned())).collect()
}

#[test]
fn a_circle_is_found_through_imports_paths_and_names_that_are_handed_on() {
    let named = given(&[
        ("", ""),
        ("a", "use crate::{b::B, c::{C, D}};"),
        ("b", "fn f() { super::a::f(); }"),
    ]);
    assert_eq!(circles(&named), [["a", "b"]]);
    let handed_on =
        given(&[("", "pub use b::B;"), ("a", "use crate::B;"), ("b", "use crate::a::A;")]);
    assert_eq!(circles(&handed_on), [["a", "b"]]);
    let long = given(&[
        ("", ""),
        ("a", "use crate::b;"),
        ("b", "use super::c;"),
        ("c", "\npub use crate::a::{A};"),
    ]);
    assert_eq!(circles(&long), [["a", "b", "c"]]);
}

#[test]
fn a_module_and_its_children_are_not_a_circle_and_comments_do_not_count() {
    let kin = given(&[
        ("", "mod a;\nuse a::A;"),
        ("a", "mod b;\nuse b::B;"),
        ("a::b", "use super::A;\nuse crate::E;"),
    ]);
    assert!(circles(&kin).is_empty());
    let comment = given(&[
        ("", ""),
        ("a", "use crate::b;"),
        ("b", "// see crate::a\n/// [`crate::a`]\nuse std::io;"),
    ]);
    assert!(circles(&comment).is_empty());
}
