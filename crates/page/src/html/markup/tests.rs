//! The exact markup of a page.

use super::*;

#[test]
fn text_that_looks_like_markup_is_text() {
    for (text, escaped) in [
        ("plain → text", "plain → text"),
        ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
        ("\"quoted\" 'twice'", "&quot;quoted&quot; &#39;twice&#39;"),
        ("&amp;", "&amp;amp;"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\u{1b}[31mred\u{7}\0\r", "·[31mred···"),
    ] {
        assert_eq!(escape(text), escaped);
    }
}

#[test]
fn the_first_tip_of_a_chart_is_its_tab_stop() {
    assert_eq!(tip("1 < 2", true), "data-tip=\"1 &lt; 2\" tabindex=\"0\"");
    assert_eq!(tip("a\nb", false), "data-tip=\"a\nb\" tabindex=\"-1\"");
}

#[test]
fn a_table_says_which_columns_are_figures() {
    let row = |words: [&str; 2]| words.map(str::to_owned).to_vec();
    let drawn = Table::new("Latency & more").words("node").figures("ns");
    let expected = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
                    aria-label=\"Latency &amp; more\"><table><thead><tr>\
                    <th scope=\"col\">node</th><th scope=\"col\" class=\"n\">ns</th>\
                    </tr></thead><tbody>\n\
                    <tr><td>0</td><td class=\"n\">&lt;1</td></tr>\n\
                    <tr><td>1</td><td class=\"n\">141</td></tr>\n\
                    </tbody></table></div>\n";
    assert_eq!(table(&drawn.rows([row(["0", "<1"]), row(["1", "141"])])), expected);
}

#[test]
fn a_table_of_words_alone_says_so_and_a_table_without_rows_has_a_head() {
    let expected = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Words\">\
                    <table class=\"words\"><thead><tr><th scope=\"col\">one</th></tr></thead>\
                    <tbody>\n</tbody></table></div>\n";
    assert_eq!(table(&Table::new("Words").words("one")), expected);
}
