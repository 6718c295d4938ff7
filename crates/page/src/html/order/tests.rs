//! The drawing of each value.

use super::*;

fn dot(value: f64, kind: usize, disturbed: bool) -> Dot {
    Dot { value, kind, disturbed, detail: format!("value {value} <{kind}>") }
}

fn drawn(dots: Vec<Dot>) -> String {
    chart(&RunOrder {
        dots,
        names: vec!["before".to_owned(), "after & later".to_owned()],
        unit: "ns".to_owned(),
        described: "all of it".to_owned(),
    })
}

/// Returns the classes of the visible dots, in order.
fn classes(drawing: &str) -> Vec<&str> {
    let circles = drawing.split("<circle class=\"").skip(1);
    let classes = circles.map(|circle| circle.split('"').next().unwrap_or_default());
    classes.filter(|class| *class != "hit").collect()
}

#[test]
fn a_dot_has_the_colour_of_its_kind_and_is_hollow_where_it_was_disturbed() {
    let drawing = drawn(vec![dot(1.0, 0, false), dot(2.0, 1, true), dot(3.0, 7, false)]);
    assert_eq!(classes(&drawing), ["f0", "hollow c1", "f1"], "colours begin again after six");
}

#[test]
fn dots_go_from_left_to_right_and_a_larger_value_is_higher() {
    let drawing = drawn(vec![dot(1.0, 0, false), dot(2.0, 0, false), dot(1.5, 0, false)]);
    let places = |name: &str| -> Vec<f64> {
        let dots = drawing.split("<circle class=\"f0\"").skip(1);
        let text =
            |dot: &str| dot.split(&format!("{name}=\"")).nth(1)?.split('"').next()?.parse().ok();
        dots.filter_map(text).collect()
    };
    // 544 units for three dots and their margins.
    assert_eq!(places("cx"), [220.0, 356.0, 492.0]);
    let up = places("cy");
    assert!(up[1] < up[2] && up[2] < up[0], "{up:?}");
    assert!(up.iter().all(|y| (FRAME.top..=FRAME.bottom).contains(y)), "{up:?}");
}

#[test]
fn each_dot_can_be_asked_and_the_first_is_reached_by_tab() {
    let drawing = drawn(vec![dot(1.0, 0, false), dot(2.0, 1, false)]);
    assert!(drawing.contains("data-tip=\"value 1 &lt;0&gt;\" tabindex=\"0\"/>"), "{drawing}");
    assert!(drawing.contains("data-tip=\"value 2 &lt;1&gt;\" tabindex=\"-1\"/>"), "{drawing}");
}

#[test]
fn a_legend_names_the_kinds_below() {
    let drawing = drawn(vec![dot(1.0, 0, false)]);
    let legend = "</svg>\n<p class=\"legend keys\"><span class=\"key k0\">before</span>\n\
                  <span class=\"key k1\">after &amp; later</span>\n</p>\n";
    assert!(drawing.ends_with(legend), "{drawing}");
    let head = "<title>Run order</title>\n<desc>all of it</desc>\n";
    assert!(drawing.contains(head), "{drawing}");
}
