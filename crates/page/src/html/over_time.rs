//! Use of memory over time: accesses, waiting, and each region.

use super::markup::{escape, tip};
use super::plot::{Drawing, Frame, Scale, ScaleKind, WIDTH, tick_text};
use crate::number::figure;
use crate::{MemoryOverTime, Moment};

/// The left end of the axes, which leaves room for regions' names in the size of text that `style.css` sets
/// for narrow screens.
const LEFT: f64 = 206.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 40.0;
const RATES: f64 = 110.0;
const THREADS: f64 = 56.0;
const GAP: f64 = 26.0;
const ROW: f64 = 18.0;
/// The maximum length of a region's name, in characters.
const NAME: usize = 19;

/// Draws the chart, with its legend.
pub(super) fn chart(of: &MemoryOverTime, caption: &str) -> String {
    let Some(last) = of.moments.last() else { return String::new() };
    let x = Time::until(last.end_s);
    let mut drawing = Drawing::new();
    let rates = frame(TOP, RATES);
    let threads = frame(rates.bottom + GAP, THREADS);
    let rows_top = threads.bottom + GAP - 8.0;
    let bottom = rows_top + ROW * of.rows.len() as f64;
    // Prevents seams between adjacent rectangles.
    drawing.raw("<g shape-rendering=\"crispEdges\">");
    draw_rates(&mut drawing, of, &x, rates);
    draw_threads(&mut drawing, of, &x, threads);
    draw_rows(&mut drawing, of, &x, rows_top);
    drawing.raw("</g>");
    draw_phases(&mut drawing, of, &x, bottom);
    let ticks: Vec<(f64, String)> =
        x.scale.ticks().into_iter().map(|tick| (x.scale.at(tick), tick_text(tick))).collect();
    let axis = Frame { left: LEFT, right: RIGHT, top: TOP, bottom: bottom + 4.0 };
    drawing.x_axis(axis, &ticks, x.unit);
    drawing.finish(bottom + 62.0, caption, caption) + &legend(of)
}

/// The time axis, in a unit that suits its length.
struct Time {
    scale: Scale,
    unit: &'static str,
    symbol: &'static str,
    per_second: f64,
}

impl Time {
    fn until(seconds: f64) -> Self {
        let (unit, symbol, per_second) = match seconds {
            ..1e-3 => ("microseconds", "µs", 1e6),
            1e-3..1.0 => ("milliseconds", "ms", 1e3),
            _ => ("seconds", "s", 1.0),
        };
        let scale = Scale::new(ScaleKind::Linear, (0.0, seconds * per_second), (LEFT, RIGHT));
        Self { scale, unit, symbol, per_second }
    }

    fn at(&self, seconds: f64) -> f64 {
        self.scale.at(seconds * self.per_second)
    }

    fn text(&self, seconds: f64) -> String {
        format!("{} {}", figure(seconds * self.per_second), self.symbol)
    }
}

const fn frame(top: f64, height: f64) -> Frame {
    Frame { left: LEFT, right: RIGHT, top, bottom: top + height }
}

/// Returns the start and end of each moment on the drawing.
fn spans<'a>(of: &'a MemoryOverTime, x: &Time) -> Vec<(f64, f64, &'a Moment)> {
    let mut begin = 0.0;
    let span = |moment: &'a Moment| {
        let from = begin;
        begin = moment.end_s;
        (x.at(from), x.at(moment.end_s), moment)
    };
    of.moments.iter().map(span).collect()
}

/// Draws accesses per second: remote ones at the bottom, local ones on top.
fn draw_rates(drawing: &mut Drawing, of: &MemoryOverTime, x: &Time, frame: Frame) {
    let all = |moment: &Moment| moment.local + moment.remote + moment.unplaced;
    let most = of.moments.iter().map(all).fold(0.0, f64::max);
    let (unit, scale) = prefix(most);
    let y = Scale::new(ScaleKind::Linear, (0.0, most / scale), (frame.bottom, frame.top));
    axis(drawing, frame, &y, &format!("{unit}{}/s", of.counted));
    for (at, (from, to, moment)) in spans(of, x).into_iter().enumerate() {
        let parts = [("f1", moment.remote), ("f0", moment.local), ("f5", moment.unplaced)];
        let mut sum = 0.0;
        for (class, value) in parts.into_iter().filter(|(_, value)| *value > 0.0) {
            let (below, above) = (y.at(sum / scale), y.at((sum + value) / scale));
            sum += value;
            drawing.raw(&bar(class, (from, to), (above, below), 1.0));
        }
        let text = format!(
            "until {}: {} {} per second\nlocal {}, remote {}{}",
            x.text(moment.end_s),
            figure(all(moment)),
            of.counted,
            figure(moment.local),
            figure(moment.remote),
            if moment.unplaced > 0.0 {
                format!(", not known {}", figure(moment.unplaced))
            } else {
                String::new()
            }
        );
        drawing.raw(&format!(
            "<rect class=\"hit\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{RATES:.1}\" {}/>",
            frame.top,
            to - from,
            tip(&text, at == 0)
        ));
    }
}

/// Draws the running threads, and those of them that wait for memory.
fn draw_threads(drawing: &mut Drawing, of: &MemoryOverTime, x: &Time, frame: Frame) {
    let most = of.moments.iter().map(|moment| moment.running).fold(0.0, f64::max);
    let y = Scale::new(ScaleKind::Linear, (0.0, most.max(1.0)), (frame.bottom, frame.top));
    axis(drawing, frame, &y, "threads running");
    let spans = spans(of, x);
    drawing.raw(&area("f5", &spans, frame.bottom, |moment| y.at(moment.running), 0.45));
    if of.has_waits {
        drawing.raw(&area("f3", &spans, frame.bottom, |moment| y.at(moment.waiting), 1.0));
    }
    for (from, to, moment) in spans {
        let waiting = match of.has_waits {
            true => format!(", {} of them waiting for memory", figure(moment.waiting)),
            false => String::new(),
        };
        let text = format!(
            "until {}: {} threads running{waiting}",
            x.text(moment.end_s),
            figure(moment.running)
        );
        drawing.raw(&format!(
            "<rect class=\"hit\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{THREADS:.1}\" {}/>",
            frame.top,
            to - from,
            tip(&text, false)
        ));
    }
}

/// Draws an axis with two values, because the chart is so low.
fn axis(drawing: &mut Drawing, frame: Frame, scale: &Scale, name: &str) {
    let ticks = scale.ticks();
    let last = ticks.last().copied().unwrap_or(0.0);
    for tick in [0.0, last] {
        let y = scale.at(tick);
        drawing.line("grid", (frame.left, y), (frame.right, y));
        drawing.text("tick", "end", (frame.left - 8.0, y + 4.0), &tick_text(tick));
    }
    drawing.text("unit", "start", (4.0, frame.top - 8.0), name);
}

/// Draws a row for each region, darker the more it is used.
fn draw_rows(drawing: &mut Drawing, of: &MemoryOverTime, x: &Time, top: f64) {
    let cells = of.rows.iter().flat_map(|row| &row.cells);
    let most = cells.map(|(value, _)| *value).fold(0.0, f64::max);
    let spans = spans(of, x);
    for (at, row) in of.rows.iter().enumerate() {
        let y = top + ROW * at as f64;
        let name = cut(&row.name);
        drawing.text("tick", "end", (LEFT - 8.0, y + ROW - 5.0), &name);
        drawing.raw(&format!(
            "<rect class=\"empty\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            y + 1.0,
            RIGHT - LEFT,
            ROW - 2.0
        ));
        for ((from, to, moment), (value, remote)) in spans.iter().zip(&row.cells) {
            if *value <= 0.0 {
                continue;
            }
            let class = if *remote > 0.5 { "f1" } else { "f0" };
            let text = format!(
                "{}, until {}: {} {} per second, {:.0} % remote",
                row.name,
                x.text(moment.end_s),
                figure(*value),
                of.counted,
                100.0 * remote
            );
            drawing.raw(&format!(
                "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.1}\" \
                 fill-opacity=\"{:.2}\" data-tip=\"{}\"/>",
                y + 1.0,
                to - from,
                ROW - 2.0,
                0.15 + 0.85 * heat(*value, most),
                escape(&text)
            ));
        }
    }
}

/// Draws the starts of phases, with their numbers above.
fn draw_phases(drawing: &mut Drawing, of: &MemoryOverTime, x: &Time, bottom: f64) {
    if of.phases.len() < 2 {
        return;
    }
    for (at, phase) in of.phases.iter().enumerate() {
        let (from, to) = (x.at(phase.begin_s), x.at(phase.end_s));
        if at > 0 {
            drawing.line("mark", (from, 16.0), (from, bottom));
        }
        let middle = f64::midpoint(from, to);
        drawing.text("strong", "middle", (middle, 20.0), &phase.label);
    }
}

/// Returns the heat on a logarithmic scale of three decades.
fn heat(value: f64, most: f64) -> f64 {
    (1.0 + (value / most.max(f64::MIN_POSITIVE)).log10() / 3.0).clamp(0.0, 1.0)
}

fn bar(class: &str, (from, to): (f64, f64), (above, below): (f64, f64), opacity: f64) -> String {
    format!(
        "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{above:.1}\" width=\"{:.2}\" height=\"{:.1}\" \
         fill-opacity=\"{opacity}\"/>",
        to - from,
        (below - above).max(0.0)
    )
}

/// Draws a filled step curve.
fn area(
    class: &str,
    spans: &[(f64, f64, &Moment)],
    bottom: f64,
    height: impl Fn(&Moment) -> f64,
    opacity: f64,
) -> String {
    let step = |(_, to, moment): &(f64, f64, &Moment)| format!("V{:.1}H{to:.1}", height(moment));
    let steps: String = spans.iter().map(step).collect();
    let from = spans.first().map_or(LEFT, |(from, ..)| *from);
    format!(
        "<path class=\"{class}\" fill-opacity=\"{opacity}\" d=\"M{from:.1} {bottom:.1}{steps}V{bottom:.1}Z\"/>"
    )
}

/// Returns a unit prefix that keeps figures short, and its divisor.
fn prefix(most: f64) -> (&'static str, f64) {
    match most {
        most if most >= 2e9 => ("10⁹ ", 1e9),
        most if most >= 2e6 => ("10⁶ ", 1e6),
        most if most >= 2e3 => ("10³ ", 1e3),
        _ => ("", 1.0),
    }
}

/// Shortens a name at its start, since the end of a path is more informative.
fn cut(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= NAME {
        return name.to_owned();
    }
    let end: String = name.chars().skip(letters - (NAME - 1)).collect();
    format!("…{end}")
}

fn legend(of: &MemoryOverTime) -> String {
    let any = |value: fn(&Moment) -> f64| of.moments.iter().any(|moment| value(moment) > 0.0);
    let mut items = Vec::new();
    if any(|moment| moment.local) {
        items.push((0, "local"));
    }
    if any(|moment| moment.remote) {
        items.push((1, "remote"));
    }
    if any(|moment| moment.unplaced) {
        items.push((5, "distance not known"));
    }
    if of.has_waits {
        items.push((3, "waiting for memory and caches"));
    }
    let item = |(colour, text): &(u8, &str)| {
        format!("<i style=\"background:var(--s{colour})\"></i><span>{text}</span>\n")
    };
    let items: String = items.iter().map(item).collect();
    format!("<div class=\"legend many\">\n{items}</div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PhaseMark, TimeRow};

    #[test]
    fn remote_accesses_waiting_and_phases_are_drawn() {
        let moment = |end_s, local, remote| Moment {
            end_s,
            local,
            remote,
            running: 2.0,
            waiting: 0.5,
            ..Moment::default()
        };
        let phase =
            |begin_s, end_s, label: &str| PhaseMark { begin_s, end_s, label: label.to_owned() };
        let of = MemoryOverTime {
            moments: vec![moment(1.0, 5e6, 0.0), moment(2.0, 1e6, 3e6)],
            rows: vec![TimeRow { name: "<heap>".to_owned(), cells: vec![(5e6, 0.0), (4e6, 0.75)] }],
            phases: vec![phase(0.0, 1.0, "1"), phase(1.0, 2.0, "2")],
            counted: "accesses".to_owned(),
            has_waits: true,
        };
        let html = chart(&of, "over time");
        assert!(html.contains("10⁶ accesses/s") && html.contains("&lt;heap&gt;"), "{html}");
        assert!(html.contains("75 % remote") && html.contains("class=\"mark\""), "{html}");
        assert!(html.contains("waiting for memory and caches") && !html.contains("not known"));
        assert_eq!(chart(&MemoryOverTime::default(), ""), "");
    }

    /// Names lost their first letters on telephones, where text is 17 px high.
    #[test]
    fn the_longest_name_has_room_in_the_text_of_narrow_screens() {
        let style = include_str!("style.css");
        let size =
            style.split("svg.chart { font-size: ").nth(1).and_then(|of| of.split("px").next());
        let size: f64 = size.expect("a size").parse().expect("a number");
        assert!(0.6 * size * NAME as f64 <= LEFT - 8.0, "letters of wide fonts");
    }

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(cut("/usr/lib/x86_64-linux-gnu/libc.so.6"), "…inux-gnu/libc.so.6");
        assert_eq!(cut("[heap]"), "[heap]");
    }

    #[test]
    fn times_are_in_a_unit_that_suits_the_whole() {
        assert_eq!(Time::until(12.0).text(1.5), "1.50 s");
        assert_eq!(Time::until(0.0017).text(0.0015), "1.50 ms");
        assert_eq!(Time::until(8e-5).text(7e-5), "70.0 µs");
        let time = Time::until(0.0017);
        assert!((time.at(0.0017) - RIGHT).abs() < 1e-9);
    }
}
