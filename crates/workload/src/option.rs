//! Options in a command line.

/// Returns the value of an option: `-l 5`, `-l5`, `--loop=5` or `--loop 5`.
pub(crate) fn option<'a>(words: &'a [String], names: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(index, word)| {
        let name = names.iter().find(|name| word.starts_with(**name))?;
        match word.strip_prefix(name)? {
            "" => words.get(index + 1).map(String::as_str),
            rest if name.starts_with("--") => rest.strip_prefix('='),
            rest => Some(rest),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn options_are_found_in_each_of_their_forms() {
        for text in ["-x -l 5", "-x -l5", "--loop=5", "--loop 5"] {
            assert_eq!(option(&words(text), &["-l", "--loop"]), Some("5"), "{text}");
        }
        assert_eq!(option(&words("-x"), &["-l"]), None);
        assert_eq!(option(&words("-l"), &["-l"]), None);
    }
}
