//! Quoting of commands for a shell.

/// Returns the word, quoted if a POSIX shell would change it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Returns the command line that a POSIX shell splits into these words.
pub fn command_line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_takes_the_line_apart_into_the_words_it_was_made_of() {
        let words = ["plain", "", "two words", "it's", "$HOME `id` \\", "a\nb", "<*>"];
        let words = words.map(str::to_owned);
        let script = format!("printf '%s\\0' {}", command_line(&words));
        let output = Command::new("sh").arg("-c").arg(script).output().expect("sh starts");
        let wanted: String = words.iter().map(|word| format!("{word}\0")).collect();
        assert_eq!(String::from_utf8_lossy(&output.stdout), wanted);
    }

    #[test]
    fn words_that_need_none_have_no_quotes() {
        let words = ["sysbench", "--threads=4", "/dev/shm", "a:b,c@d%e+f"].map(str::to_owned);
        assert_eq!(command_line(&words), "sysbench --threads=4 /dev/shm a:b,c@d%e+f");
    }
}
