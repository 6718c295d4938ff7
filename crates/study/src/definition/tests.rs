use serde_json::json;

use super::*;

fn level(text: &str) -> Level {
    #[derive(Deserialize)]
    struct Holder {
        level: Level,
    }
    toml::from_str::<Holder>(&format!("level = {text}")).unwrap().level
}

fn backend(text: &str) -> Result<BackendSpec, String> {
    #[derive(Deserialize)]
    struct Holder {
        backend: BackendSpec,
    }
    let holder: Result<Holder, _> = toml::from_str(text);
    holder.map(|holder| holder.backend).map_err(|error| error.to_string())
}

#[test]
fn a_bare_value_is_a_setting_of_its_kind_under_the_factors_name() {
    for (text, name, number) in [
        ("4", "4", Some(4.0)),
        ("-1", "-1", Some(-1.0)),
        ("2.5", "2.5", Some(2.5)),
        ("true", "true", None),
        ("\"4k\"", "4k", None),
        ("\"4\"", "4", None),
    ] {
        let level = level(text);
        assert_eq!((level.name().as_str(), level.number()), (name, number), "{text}");
        let settings = level.settings("factor");
        assert_eq!(settings.keys().collect::<Vec<_>>(), ["factor"], "{text}");
        assert_eq!(settings["factor"].to_string(), name);
    }
}

#[test]
fn a_table_has_a_name_and_sets_its_own_settings_only() {
    let level = level("{ name = \"2m\", set = { pages = \"2m\", pool = 512, thp = false } }");
    assert_eq!((level.name().as_str(), level.number()), ("2m", None));
    let settings = level.settings("factor");
    let shown: Vec<String> = settings.iter().map(|(name, of)| format!("{name}={of}")).collect();
    assert_eq!(shown, ["pages=2m", "pool=512", "thp=false"]);
}

#[test]
fn a_table_without_settings_sets_nothing_and_its_name_may_be_a_number() {
    let level = level("{ name = \"8\" }");
    assert_eq!((level.number(), level.settings("factor").len()), (Some(8.0), 0));
}

#[test]
fn a_backend_is_a_name_or_one_table() {
    let named = backend("backend = \"host\"").unwrap();
    assert_eq!(named, BackendSpec::default());
    let table = backend("[backend.linux-guest]\ncpus = 4\nemulate = \"1G,1G\"").unwrap();
    assert_eq!(table.kind, "linux-guest");
    assert_eq!(Value::Object(table.settings), json!({ "cpus": 4, "emulate": "1G,1G" }));
    for text in
        ["backend = 3", "backend = true", "backend = []", "[backend]", "[backend.a]\n[backend.b]"]
    {
        let error = backend(text).unwrap_err();
        assert!(error.contains("one table such as [backend.linux-guest]"), "{text}: {error}");
    }
}

#[test]
fn a_backend_is_written_as_it_is_read() {
    let spec = BackendSpec {
        kind: "guests".to_owned(),
        settings: Map::from_iter([("guests".to_owned(), Value::from(4))]),
    };
    assert_eq!(serde_json::to_value(&spec).unwrap(), json!({ "guests": { "guests": 4 } }));
    let plain = serde_json::to_value(BackendSpec::default()).unwrap();
    assert_eq!(plain, json!({ "host": {} }));
}

#[test]
fn an_invalid_level_is_refused_with_the_allowed_forms() {
    #[derive(Debug, Deserialize)]
    struct Holder {
        #[serde(rename = "level")]
        _level: Level,
    }
    for text in ["[1]", "2020-01-01", "{ set = {} }", "{ name = \"a\", other = 1 }"] {
        let read: Result<Holder, _> = toml::from_str(&format!("level = {text}"));
        let message = read.unwrap_err().to_string();
        let words = ["a value, or a table", "missing field `name`", "unknown field"];
        assert!(words.iter().any(|words| message.contains(words)), "{text}: {message}");
    }
}
