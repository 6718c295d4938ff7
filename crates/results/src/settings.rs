//! Settings of backends, as pages and rows.

use numalab_page::rows::Rows;
use numalab_page::{Page, Panel, Part, Table, Terminal};
use numalab_record::study::{BackendSettings, ListedSetting, SettingList};

use crate::document::document_of;
use crate::report::Report;

impl Report for SettingList {
    fn page(&self) -> Page {
        Page {
            brand: "numalab study settings".to_owned(),
            title: "Settings for [backend.NAME], for --set and for levels of factors".to_owned(),
            parts: self.backends.iter().map(part).collect(),
            whole: true,
            ..Page::default()
        }
    }

    document_of!(StudySettings);

    fn rows(&self) -> Option<Rows> {
        let of = |backend: &BackendSettings, set_by: &str, setting: &ListedSetting| {
            let ListedSetting { name, about, expected, default } = setting.clone();
            let default = default.unwrap_or_default();
            vec![backend.backend.clone(), set_by.to_owned(), name, about, expected, default]
        };
        let of_backend = |backend: &BackendSettings| {
            let settings = backend.settings.iter().map(|one| of(backend, "backend", one));
            let levels = backend.levels.iter().map(|one| of(backend, "level", one));
            settings.chain(levels).collect::<Vec<_>>()
        };
        let rows = Rows::new("setting").labels(["backend", "set_by", "setting"]);
        let rows = rows.texts(["about", "expected", "default"]);
        Some(rows.rows(self.backends.iter().flat_map(of_backend)))
    }
}

fn part(backend: &BackendSettings) -> Part {
    let levels = "set by levels of factors";
    let panels = [(backend.about.as_str(), &backend.settings), (levels, &backend.levels)];
    let panels = panels.into_iter().filter(|(_, settings)| !settings.is_empty());
    Part {
        title: format!("[backend.{}]", backend.backend),
        panels: panels.map(|(caption, settings)| panel(caption, settings)).collect(),
        ..Part::default()
    }
}

fn panel(caption: &str, settings: &[ListedSetting]) -> Panel {
    let columns = ["setting", "effect", "expected", "default"];
    let table = columns.into_iter().fold(Table::new(caption), Table::words);
    let row = |setting: &ListedSetting| {
        let ListedSetting { name, about, expected, default } = setting.clone();
        vec![name, about, expected, default.unwrap_or_default()]
    };
    let narrow = Table::new(caption).words("setting").words("effect and values");
    let in_brief = |setting: &ListedSetting| {
        let ListedSetting { name, about, expected, default } = setting;
        let default =
            default.as_ref().map_or_else(String::new, |default| format!(" [default: {default}]"));
        vec![name.clone(), format!("{about}: {expected}{default}")]
    };
    Panel::table(table.rows(settings.iter().map(row)))
        .on_terminal(Terminal::Instead(vec![narrow.rows(settings.iter().map(in_brief))]))
}
