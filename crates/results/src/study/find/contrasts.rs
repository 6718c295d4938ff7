//! Which treatments are set against each other.

use numalab_record::study::{Cells, Factor, FactorKind, StudyRun};
use numalab_stats::{Contrast, Layout};
use serde::Serialize;

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

/// What is changed, and what stands still.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// Factors that go from one level to another: two for an interaction; none for the plain
    /// trend over a scale.
    pub changed: Vec<LevelChange>,
    /// The levels of the other factors, where the effect is at certain ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldLevel>,
    /// The factor with each doubling of which a trend is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
}

/// A factor that goes from its first level to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LevelChange {
    /// The factor.
    pub factor: String,
    /// Its first level.
    pub from: String,
    /// The other level.
    pub to: String,
}

/// A factor that stands still.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldLevel {
    /// The factor.
    pub factor: String,
    /// Its level.
    pub level: String,
}

/// One comparison that a study makes for every metric.
pub(super) struct Asked {
    pub kind: EffectKind,
    pub change: Change,
    /// The treatments of the two sides, where there are only two.
    pub sides: Option<(usize, usize)>,
    pub contrast: Contrast,
}

impl Asked {
    /// The values of each treatment in the blocks that all those of the contrast have: one that was
    /// not tried to the end lacks the last.
    pub(super) fn columns(&self, cells: &Cells) -> Vec<Vec<f64>> {
        let weighted = self.contrast.weights().iter().zip(&cells.treatments);
        let of_contrast = weighted.filter(|(weight, _)| **weight != 0.0);
        let blocks = of_contrast.map(|(_, column)| column.len()).min().unwrap_or(0);
        let cut = |column: &Vec<f64>| column[..blocks.min(column.len())].to_vec();
        cells.treatments.iter().map(cut).collect()
    }
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
            change: Change { changed: vec![self.change(factor, level)], ..Change::default() },
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
                asked.push(Asked {
                    kind: EffectKind::Within,
                    change: Change {
                        changed: vec![self.change(factor, level)],
                        held: self.others(&levels, factor),
                        scale: None,
                    },
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
                let changed: Vec<LevelChange> =
                    changed.map(|(at, level)| self.change(at, *level)).collect();
                (changed.len() > 1).then(|| Asked {
                    kind: EffectKind::Together,
                    change: Change { changed, ..Change::default() },
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
                let changed = [one, other].map(|(at, level)| self.change(at, level)).to_vec();
                asked.push(Asked {
                    kind: EffectKind::Interaction,
                    change: Change { changed, ..Change::default() },
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
            let mut add = |changed, contrast: Result<Contrast, numalab_stats::Error>| {
                // The numbers of a scale that was parsed are positive, one for each level.
                let Ok(contrast) = contrast else { return };
                let change =
                    Change { changed, scale: Some(scale.name.clone()), ..Change::default() };
                asked.push(Asked { kind: EffectKind::Trend, change, sides: None, contrast });
            };
            add(Vec::new(), self.layout.trend(at, &scale.numbers));
            for (factor, level) in self.changes() {
                let trend = self.layout.trend_of_effect((factor, level), at, &scale.numbers);
                add(vec![self.change(factor, level)], trend);
            }
        }
        asked
    }

    fn treatment(&self, levels: &[usize]) -> Option<usize> {
        self.run.treatments.iter().position(|treatment| treatment.levels == levels)
    }

    /// The levels of all factors but one.
    fn others(&self, levels: &[usize], but: usize) -> Vec<HeldLevel> {
        let factors = self.run.factors.iter().zip(levels).enumerate();
        let others = factors.filter(|(at, _)| *at != but);
        others
            .map(|(_, (factor, level))| HeldLevel {
                factor: factor.name.clone(),
                level: factor.levels[*level].clone(),
            })
            .collect()
    }

    fn change(&self, factor: usize, level: usize) -> LevelChange {
        let Factor { name, levels, .. } = &self.run.factors[factor];
        LevelChange { factor: name.clone(), from: levels[0].clone(), to: levels[level].clone() }
    }
}
