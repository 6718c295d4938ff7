use super::*;

fn variables(text: &str) -> Vec<(String, String)> {
    let mut command = Command::new("true");
    Environment::of(text).unwrap().apply(&mut command);
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    command.get_envs().map(|(name, value)| (text(name), text(value.unwrap()))).collect()
}

#[test]
fn variables_are_separated_by_spaces_and_values_may_contain_equal_signs() {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(variables(""), []);
    assert_eq!(variables("A=1"), [pair("A", "1")]);
    assert_eq!(variables("  B=x=y \t A= "), [pair("A", ""), pair("B", "x=y")]);
    assert_eq!(variables("A=1 A=2"), [pair("A", "2")], "the last one counts");
}

#[test]
fn an_invalid_variable_is_quoted() {
    for (text, found) in [("A", "A"), ("A=1 B", "B"), ("=1", "=1")] {
        let message = Environment::of(text).unwrap_err().to_string();
        let expected =
            format!("setting environment: {found}: expected NAME=VALUE, separated by spaces");
        assert_eq!(message, expected);
    }
}
