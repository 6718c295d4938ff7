//! The skeleton of every page: one self-contained file.

use super::markup::escape;

/// Returns a page with its style and script inline. Its content security policy forbids everything
/// else, so not even an error can cause network access.
pub(crate) fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n{body}\
         <div id=\"tip\" role=\"status\" hidden></div>\n<script>\n{}</script>\n</body>\n</html>\n",
        escape(title),
        include_str!("style.css"),
        include_str!("script.js")
    )
}
