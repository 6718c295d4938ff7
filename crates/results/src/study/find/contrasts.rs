//! The contrasts between treatments that a study tests.

use numalab_record::study::{Cells, Factor, FactorKind, StudyRun};
use numalab_stats::{Contrast, FactorLevels};
use serde::Serialize;

/// The comparison of treatments that an effect makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectKind {
    /// One level against the factor's first, averaged over all other factors: the study's question.
    Main,
    /// One level against the first, with the other factors at fixed levels.
    Within,
    /// Several factors changed at once, compared with the baseline.
    Together,
    /// The change in one factor's effect when another factor changes.
    Interaction,
    /// The growth of a value, or of an effect, per doubling of a number.
    Trend,
}

impl EffectKind {
    /// All kinds, in the order of reports.
    pub const ALL: [Self; 5] =
        [Self::Main, Self::Within, Self::Together, Self::Interaction, Self::Trend];

    /// Returns the kind's name, which is stable across versions.
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

/// The factors that an effect changes, and those that it holds fixed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// Factors that go from one level to another: two for an interaction, none for a plain trend
    /// over a scale.
    pub changed: Vec<LevelChange>,
    /// The fixed levels of the other factors, if the effect has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldLevel>,
    /// The factor that a trend runs over, per doubling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
}

/// A factor that goes from its first level to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct LevelChange {
    /// The factor's name.
    pub factor: String,
    /// The factor's first level.
    pub from: String,
    /// The level compared with it.
    pub to: String,
}

/// A factor held at one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct HeldLevel {
    /// The factor's name.
    pub factor: String,
    /// The level at which it is held.
    pub level: String,
}

/// One comparison that a study makes on every metric.
pub(super) struct PlannedContrast {
    pub kind: EffectKind,
    pub change: Change,
    /// The treatments of the two sides, if there are just two.
    pub sides: Option<(usize, usize)>,
    pub contrast: Contrast,
}

impl PlannedContrast {
    /// Returns each treatment's values in the blocks that are complete for this contrast. A
    /// treatment that stopped early lacks the last blocks.
    pub(super) fn columns(&self, cells: &Cells) -> Vec<Vec<f64>> {
        let weighted = self.contrast.weights().iter().zip(&cells.treatments);
        let of_contrast = weighted.filter(|(weight, _)| **weight != 0.0);
        let blocks = of_contrast.map(|(_, column)| column.len()).min().unwrap_or(0);
        let cut = |column: &Vec<f64>| column[..blocks.min(column.len())].to_vec();
        cells.treatments.iter().map(cut).collect()
    }
}

/// Returns all contrasts of a study, main effects first.
pub(super) fn asked(run: &StudyRun) -> Vec<PlannedContrast> {
    let counts: Vec<usize> = run.factors.iter().map(|factor| factor.levels.len()).collect();
    // A parsed study has at least two levels per factor.
    let Ok(layout) = FactorLevels::new(counts) else { return Vec::new() };
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
    layout: FactorLevels,
}

impl Asking<'_> {
    /// Returns all levels of choice factors except the first of each, as factor and level.
    fn changes(&self) -> impl Iterator<Item = (usize, usize)> {
        let factors = self.run.factors.iter().enumerate();
        let choices = factors.filter(|(_, factor)| factor.kind == FactorKind::Choice);
        choices.flat_map(|(at, factor)| (1..factor.levels.len()).map(move |level| (at, level)))
    }

    fn main(&self) -> Vec<PlannedContrast> {
        let single = self.run.factors.len() == 1;
        let main = |(factor, level): (usize, usize)| PlannedContrast {
            kind: EffectKind::Main,
            change: Change { changed: vec![self.change(factor, level)], ..Change::default() },
            sides: single.then_some((0, level)),
            contrast: self.layout.main_effect(factor, level),
        };
        self.changes().map(main).collect()
    }

    fn within(&self) -> Vec<PlannedContrast> {
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
                asked.push(PlannedContrast {
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

    fn together(&self) -> Vec<PlannedContrast> {
        let scaled = self.run.factors.iter().any(|factor| factor.kind == FactorKind::Scale);
        let treatments = (1..self.layout.treatments()).filter(|_| !scaled);
        treatments
            .filter_map(|candidate| {
                let levels = self.layout.levels_of(candidate);
                let changed = levels.iter().enumerate().filter(|(_, level)| **level > 0);
                let changed: Vec<LevelChange> =
                    changed.map(|(at, level)| self.change(at, *level)).collect();
                (changed.len() > 1).then(|| PlannedContrast {
                    kind: EffectKind::Together,
                    change: Change { changed, ..Change::default() },
                    sides: Some((0, candidate)),
                    contrast: self.layout.pair(0, candidate),
                })
            })
            .collect()
    }

    fn interactions(&self) -> Vec<PlannedContrast> {
        let mut asked = Vec::new();
        for one in self.changes() {
            for other in self.changes().filter(|other| other.0 > one.0) {
                let changed = [one, other].map(|(at, level)| self.change(at, level)).to_vec();
                asked.push(PlannedContrast {
                    kind: EffectKind::Interaction,
                    change: Change { changed, ..Change::default() },
                    sides: None,
                    contrast: self.layout.interaction(one, other),
                });
            }
        }
        asked
    }

    fn trends(&self) -> Vec<PlannedContrast> {
        let factors = self.run.factors.iter().enumerate();
        let scales = factors.filter(|(_, factor)| factor.kind == FactorKind::Scale);
        let mut asked = Vec::new();
        for (at, scale) in scales {
            let mut add = |changed, contrast: Result<Contrast, numalab_stats::Error>| {
                // The numbers of a parsed scale are positive, one per level.
                let Ok(contrast) = contrast else { return };
                let change =
                    Change { changed, scale: Some(scale.name.clone()), ..Change::default() };
                asked.push(PlannedContrast {
                    kind: EffectKind::Trend,
                    change,
                    sides: None,
                    contrast,
                });
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

    /// Returns the levels of all factors except one.
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
