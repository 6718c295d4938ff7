//! apt's record of a package (deb-control(5)).

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageRecord {
    pub name: String,
    pub version: String,
    /// Dependencies: for each one the alternative names, in order.
    pub depends: Vec<Vec<String>>,
    /// The virtual names it provides.
    pub provides: Vec<String>,
}

impl PackageRecord {
    /// Returns the name of the package's entry in the cache: name and version, in the form of apt's
    /// file names.
    pub fn entry_name(&self) -> String {
        format!("{}_{}", self.name, self.version.replace(':', "%3a"))
    }
}

/// Parses the output of `apt-cache show`: records are separated by empty lines. Names and versions
/// that Debian's policy (5.6.1, 5.6.12) forbids are omitted, because they become arguments and file
/// names.
pub(super) fn parse(text: &str) -> Vec<PackageRecord> {
    let records = text.split("\n\n").map(parse_one);
    records.filter(|record| is_name(&record.name) && is_version(&record.version)).collect()
}

fn parse_one(text: &str) -> PackageRecord {
    let mut record = PackageRecord::default();
    for line in text.lines() {
        // Continuation lines begin with a space and belong to fields that are not read here.
        let Some((field, value)) = line.split_once(": ") else {
            continue;
        };
        match field {
            "Package" => value.clone_into(&mut record.name),
            "Version" => value.clone_into(&mut record.version),
            "Depends" | "Pre-Depends" => record.depends.extend(value.split(", ").map(alternatives)),
            "Provides" => record.provides = value.split(", ").map(bare_name).collect(),
            _ => {}
        }
    }
    record
}

fn alternatives(dependency: &str) -> Vec<String> {
    dependency.split(" | ").map(bare_name).filter(|name| is_name(name)).collect()
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && is_made_of(text, "+-.")
}

fn is_version(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && is_made_of(text, "+-.:~")
}

fn is_made_of(text: &str, others: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

/// Returns `libc6` for `libc6:amd64 (>= 2.34)`.
fn bare_name(text: &str) -> String {
    let end = text.find([' ', ':', '(']).unwrap_or(text.len());
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_versions_and_dependencies_are_read() {
        let text = "Package: tool\nVersion: 1:2.0-3\nPre-Depends: base\n\
                    Depends: libc6 (>= 2.34), one | two:any (= 1), python3:any\n\
                    Provides: tool-api (= 2), other\n\
                    Description: a tool: with a colon\n\n\
                    Package: second\nVersion: 1\n";
        let records = parse(text);
        assert_eq!(records[0].entry_name(), "tool_1%3a2.0-3");
        let depends: Vec<_> = records[0].depends.iter().map(|any| any.join("|")).collect();
        assert_eq!(depends, ["base", "libc6", "one|two", "python3"]);
        assert_eq!(records[0].provides, ["tool-api", "other"]);
        assert_eq!(records[1].name, "second");
    }

    #[test]
    fn text_without_records_gives_none() {
        assert_eq!(parse(""), []);
        assert_eq!(parse("N: Unable to locate package x\n"), []);
    }

    #[test]
    fn names_that_would_be_options_or_paths_are_omitted() {
        for (name, version) in [("../../x", "1"), ("-oDir=/", "1"), ("a b", "1"), ("", "1")] {
            assert_eq!(parse(&format!("Package: {name}\nVersion: {version}\n")), [], "{name}");
        }
        for version in ["", "../1", "1/../../x", "-1", "1 2"] {
            assert_eq!(parse(&format!("Package: a\nVersion: {version}\n")), [], "{version}");
        }
        let records = parse("Package: a\nVersion: 1\nDepends: -oX=1 | b, ../c, d\n");
        assert_eq!(records[0].depends.concat(), ["b", "d"]);
        let real = parse("Package: libstdc++6\nVersion: 2:1.0~rc1+b2-3.1\n");
        assert_eq!(real[0].entry_name(), "libstdc++6_2%3a1.0~rc1+b2-3.1");
    }
}
