//! Scales, ticks and axes of a drawing.

use super::markup::escape;

/// The width of every drawing in its own units.
pub(crate) const WIDTH: f64 = 640.0;

/// A mapping of a quantity to a position on the drawing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    kind: ScaleKind,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

/// The relation between values and lengths on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScaleKind {
    /// Equal differences have equal lengths.
    Linear,
    /// Equal ratios have equal lengths.
    Logarithmic,
}

impl Scale {
    /// Returns the scale that maps `low..=high` to `from..=to`; bounds that do not span a scale are
    /// moved apart.
    pub(crate) fn new(kind: ScaleKind, (low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let low = match kind {
            ScaleKind::Linear => low,
            ScaleKind::Logarithmic => low.max(1e-9),
        };
        let high = if high > low { high } else { low + 1.0 };
        Self { kind, low, high, from, to }
    }

    /// Returns the position of `value`, clamped to the drawing.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = match self.kind {
            ScaleKind::Linear => (value - self.low) / (self.high - self.low),
            ScaleKind::Logarithmic => {
                (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
            }
        };
        let share = if share.is_finite() { share } else { 1.0 };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Returns `true` if `value` is within the drawing.
    pub(crate) fn shows(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Returns round values along the scale: about five, or 1-2-5 on a logarithmic one of more than
    /// a decade.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        if self.kind == ScaleKind::Logarithmic && self.high / self.low > 10.0 {
            return decades(self.low, self.high);
        }
        let step = round_step((self.high - self.low) / 5.0);
        let first = (self.low / step).ceil();
        (0..12)
            .map(|index| (first + f64::from(index)) * step)
            .filter(|&tick| tick.is_finite() && tick <= self.high * (1.0 + 1e-9))
            .collect()
    }
}

/// Returns 1, 2 and 5 times every power of ten in a range, or only the powers if those would be too
/// many.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor(), high.log10().ceil());
    let factors: &[f64] = if last - first > 4.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let within = |tick: &f64| (low..=high).contains(tick);
    (0..24)
        .map(|index| 10_f64.powf(first + f64::from(index)))
        .flat_map(|power| factors.iter().map(move |factor| factor * power))
        .filter(within)
        .collect()
}

/// Returns the next of 1, 2 and 5 times a power of ten above `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.max(f64::MIN_POSITIVE).log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step);
    factor.unwrap_or(10.0) * power
}

/// The position of the axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Frame {
    /// Returns the axes of a drawing of this height, with margins for their labels. The right
    /// margin is half a label of four letters, in the font size of a phone.
    pub(crate) const fn in_height(height: f64) -> Self {
        Self { left: 58.0, right: WIDTH - 30.0, top: 34.0, bottom: height - 62.0 }
    }
}

pub(crate) struct Drawing {
    class: &'static str,
    body: String,
}

impl Drawing {
    pub(crate) fn new() -> Self {
        Self { class: "chart", body: String::new() }
    }

    /// Returns a drawing that shrinks to the width of a phone, instead of scrolling there.
    pub(crate) fn shrinking() -> Self {
        Self { class: "chart shrinks", ..Self::new() }
    }

    pub(crate) fn raw(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    pub(crate) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.raw(&format!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    pub(crate) fn text(&mut self, class: &str, anchor: &str, (x, y): (f64, f64), text: &str) {
        self.raw(&format!(
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            escape(text)
        ));
    }

    /// Adds horizontal grid lines with their values, and the name of the axis above.
    pub(crate) fn y_axis(&mut self, frame: Frame, scale: &Scale, name: &str) {
        for tick in scale.ticks() {
            let y = scale.at(tick);
            self.line("grid", (frame.left, y), (frame.right, y));
            self.text("tick", "end", (frame.left - 8.0, y + 5.0), &tick_text(tick));
        }
        self.text("unit", "start", (4.0, frame.top - 14.0), name);
    }

    /// Adds labels below the drawing; every second one is hidden on a phone.
    pub(crate) fn x_axis(&mut self, frame: Frame, ticks: &[(f64, String)], name: &str) {
        for (index, (x, label)) in ticks.iter().enumerate() {
            let class = if index % 2 == 0 { "tick" } else { "tick wide" };
            self.line("grid", (*x, frame.bottom), (*x, frame.bottom + 5.0));
            self.text(class, "middle", (*x, frame.bottom + 24.0), label);
        }
        self.line("grid", (frame.left, frame.bottom), (frame.right, frame.bottom));
        let middle = f64::midpoint(frame.left, frame.right);
        self.text("unit", "middle", (middle, frame.bottom + 50.0), name);
    }

    pub(crate) fn finish(self, height: f64, title: &str, description: &str) -> String {
        format!(
            "<svg class=\"{}\" data-chart role=\"group\" viewBox=\"0 0 {WIDTH} {height:.0}\">\n\
             <title>{}</title>\n<desc>{}</desc>\n{}</svg>\n",
            self.class,
            escape(title),
            escape(description),
            self.body
        )
    }
}

/// Returns a round value without superfluous digits.
pub(crate) fn tick_text(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() >= 1e6 || value.abs() < 1e-3 {
        return format!("{value:.0e}");
    }
    let decimals = if value.abs() < 0.1 { 5 } else { 3 };
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(crate) fn path(points: &[(f64, f64)]) -> String {
    let step = |(index, (x, y)): (usize, &(f64, f64))| {
        let command = if index == 0 { 'M' } else { 'L' };
        format!("{command}{x:.1} {y:.1}")
    };
    points.iter().enumerate().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_scale_is_marked_at_one_two_and_five() {
        let scale = Scale::new(ScaleKind::Logarithmic, (0.9, 120.0), (0.0, 1.0));
        let ticks: Vec<String> = scale.ticks().into_iter().map(tick_text).collect();
        assert_eq!(ticks, ["1", "2", "5", "10", "20", "50", "100"]);
    }

    #[test]
    fn a_linear_scale_is_marked_at_round_values() {
        let scale = Scale::new(ScaleKind::Linear, (0.0, 43.0), (0.0, 1.0));
        assert_eq!(scale.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0]);
        let small = Scale::new(ScaleKind::Linear, (0.0, 0.0017), (0.0, 1.0)).ticks();
        assert_eq!(
            small.into_iter().map(tick_text).collect::<Vec<_>>(),
            ["0", "5e-4", "0.001", "0.0015"]
        );
    }

    #[test]
    fn bounds_that_make_no_scale_still_give_places() {
        for bounds in [(5.0, 5.0), (0.0, 0.0), (9.0, 1.0), (f64::MAX, f64::MAX)] {
            for kind in [ScaleKind::Linear, ScaleKind::Logarithmic] {
                let scale = Scale::new(kind, bounds, (0.0, 100.0));
                assert!((0.0..=100.0).contains(&scale.at(5.0)), "{kind:?} {bounds:?}");
                assert!(scale.ticks().len() <= 72);
            }
        }
    }
}
