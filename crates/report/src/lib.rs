//! Records to terminal text, Markdown, HTML, CSV and JSON.
