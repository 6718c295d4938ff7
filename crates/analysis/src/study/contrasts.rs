//! Which treatments are set against each other.

use numalab_record::study::{Factor, FactorKind, StudyRun};
use numalab_stats::{Contrast, Layout};

/// What an effect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectKind {
    /// A level against the factor's first, averaged over all other factors: what the
    /// study asks.
    Main,
    /// A level against the first where the other factors have certain levels.
    Within,
    /// Several factors changed at once, against the baseline.
    Together,
    /// How much larger the effect of one factor is with another.
    Interaction,
    /// How a value, or an effect, grows with each doubling of a number.
    Trend,
}

impl EffectKind {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 5] =
        [Self::Main, Self::Within, Self::Together, Self::Interaction, Self::Trend];

    /// A stable word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "effect",
            Self::Within => "within",
            Self::Together => "together",
            Self::Interaction => "interaction",
            Self::Trend => "trend",
        }
    }
}

/// One comparison that a study makes for every metric.
pub(super) struct Asked {
    pub kind: EffectKind,
    /// In words: `pages 4k → 2m`.
    pub label: String,
    /// The treatments of the two sides, where there are only two.
    pub sides: Option<(usize, usize)>,
    pub contrast: Contrast,
}

/// Everything that a study compares, main effects first.
pub(super) fn asked(run: &StudyRun) -> Vec<Asked> {
    let counts: Vec<usize> = run.factors.iter().map(|factor| factor.levels.len()).collect();
    // A study that was parsed has two levels of every factor at least.
    let Ok(layout) = Layout::new(counts) else { return Vec::new() };
    if layout.treatments() != run.treatments.len() {
        return Vec::new();
    }
    let asking = Asking { run, layout };
    let mut asked = asking.main();
    asked.extend(asking.within());
    asked.extend(asking.together());
    asked.extend(asking.interactions());
    asked.extend(asking.trends());
    asked
}

struct Asking<'a> {
    run: &'a StudyRun,
    layout: Layout,
}

impl Asking<'_> {
    /// Levels of choice factors but the first of each, by factor and level.
    fn changes(&self) -> impl Iterator<Item = (usize, usize)> {
        let factors = self.run.factors.iter().enumerate();
        let choices = factors.filter(|(_, factor)| factor.kind == FactorKind::Choice);
        choices.flat_map(|(at, factor)| (1..factor.levels.len()).map(move |level| (at, level)))
    }

    fn main(&self) -> Vec<Asked> {
        let single = self.run.factors.len() == 1;
        let main = |(factor, level): (usize, usize)| Asked {
            kind: EffectKind::Main,
            label: change(&self.run.factors[factor], level),
            sides: single.then_some((0, level)),
            contrast: self.layout.main_effect(factor, level),
        };
        self.changes().map(main).collect()
    }

    fn within(&self) -> Vec<Asked> {
        if self.run.factors.len() == 1 {
            return Vec::new();
        }
        let mut asked = Vec::new();
        for (factor, level) in self.changes() {
            for baseline in 0..self.layout.treatments() {
                let mut levels = self.layout.levels_of(baseline);
                if levels[factor] != 0 {
                    continue;
                }
                levels[factor] = level;
                let Some(candidate) = self.treatment(&levels) else { continue };
                let change = change(&self.run.factors[factor], level);
                asked.push(Asked {
                    kind: EffectKind::Within,
                    label: format!("{change} where {}", self.others(&levels, factor)),
                    sides: Some((baseline, candidate)),
                    contrast: self.layout.pair(baseline, candidate),
                });
            }
        }
        asked
    }

    fn together(&self) -> Vec<Asked> {
        let scaled = self.run.factors.iter().any(|factor| factor.kind == FactorKind::Scale);
        let treatments = (1..self.layout.treatments()).filter(|_| !scaled);
        treatments
            .filter_map(|candidate| {
                let levels = self.layout.levels_of(candidate);
                let changed = levels.iter().enumerate().filter(|(_, level)| **level > 0);
                let changes: Vec<String> =
                    changed.map(|(at, level)| change(&self.run.factors[at], *level)).collect();
                (changes.len() > 1).then(|| Asked {
                    kind: EffectKind::Together,
                    label: changes.join(", "),
                    sides: Some((0, candidate)),
                    contrast: self.layout.pair(0, candidate),
                })
            })
            .collect()
    }

    fn interactions(&self) -> Vec<Asked> {
        let mut asked = Vec::new();
        for one in self.changes() {
            for other in self.changes().filter(|other| other.0 > one.0) {
                let [first, second] =
                    [one, other].map(|(at, level)| change(&self.run.factors[at], level));
                asked.push(Asked {
                    kind: EffectKind::Interaction,
                    label: format!("{first} with {second}"),
                    sides: None,
                    contrast: self.layout.interaction(one, other),
                });
            }
        }
        asked
    }

    fn trends(&self) -> Vec<Asked> {
        let factors = self.run.factors.iter().enumerate();
        let scales = factors.filter(|(_, factor)| factor.kind == FactorKind::Scale);
        let mut asked = Vec::new();
        for (at, scale) in scales {
            let mut add = |label: String, contrast: Result<Contrast, numalab_stats::Error>| {
                // The numbers of a scale that was parsed are positive, one for each level.
                let Ok(contrast) = contrast else { return };
                asked.push(Asked { kind: EffectKind::Trend, label, sides: None, contrast });
            };
            add(
                format!("with each doubling of {}", scale.name),
                self.layout.trend(at, &scale.numbers),
            );
            for (factor, level) in self.changes() {
                let change = change(&self.run.factors[factor], level);
                let label = format!("effect of {change} with each doubling of {}", scale.name);
                let trend = self.layout.trend_of_effect((factor, level), at, &scale.numbers);
                add(label, trend);
            }
        }
        asked
    }

    fn treatment(&self, levels: &[usize]) -> Option<usize> {
        self.run.treatments.iter().position(|treatment| treatment.levels == levels)
    }

    /// The levels of all factors but one: `host=off, guests=8`.
    fn others(&self, levels: &[usize], but: usize) -> String {
        let factors = self.run.factors.iter().zip(levels).enumerate();
        let others = factors.filter(|(at, _)| *at != but);
        let names: Vec<String> = others
            .map(|(_, (factor, level))| format!("{}={}", factor.name, factor.levels[*level]))
            .collect();
        names.join(", ")
    }
}

/// `pages 4k → 2m`.
fn change(factor: &Factor, level: usize) -> String {
    format!("{} {} → {}", factor.name, factor.levels[0], factor.levels[level])
}
