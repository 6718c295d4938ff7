//! The system's numbers of objects in a synthetic description: a list, or loops.

use numalab_topology::MAX_ID;

use super::synthetic_items::{Item, wrong};
use crate::error::ReadError;

/// Consecutive numbers for the objects at every `step`th place, `times` of them.
#[derive(Clone, Copy)]
struct Loop {
    step: usize,
    times: usize,
}

/// Returns the numbers of `count` objects in order of the tree; `levels` are those above.
///
/// # Errors
/// [`ReadError::Markup`] if the text does not give each object another number.
pub(super) fn numbers(
    text: Option<&str>,
    count: usize,
    levels: &[Item],
) -> Result<Vec<u32>, ReadError> {
    let Some(text) = text else { return Ok((0..).take(count).collect()) };
    let loops = match text.contains('*') {
        true => text.split(':').map(given).collect(),
        false if text.contains(|c: char| c.is_ascii_alphabetic()) => of_types(text, count, levels),
        false => None,
    };
    let all: Option<Vec<u32>> = match loops {
        Some(loops) => interleaved(loops, count),
        None => text.split(',').map(|index| index.parse().ok()).collect(),
    };
    let mut sorted = all.clone().unwrap_or_default();
    sorted.sort_unstable();
    sorted.dedup();
    let is_whole = sorted.len() == count && sorted.last().is_none_or(|&most| most <= MAX_ID);
    all.filter(|all| is_whole && all.len() == count).ok_or_else(|| {
        let forms = "loops such as 8*2:1*8, or types of different levels above, such as numa:core";
        wrong(text, &format!("{count} different numbers, {forms}"))
    })
}

/// Parses a loop such as `8*2`.
fn given(text: &str) -> Option<Loop> {
    let (step, times) = text.split_once('*')?;
    let (step, times) = (step.parse().ok()?, times.parse().ok()?);
    (step > 0 && times > 0).then_some(Loop { step, times })
}

/// Returns the loops over levels such as `numa:core`: the first type's objects are numbered first.
fn of_types(text: &str, count: usize, levels: &[Item]) -> Option<Vec<Loop>> {
    let mut width = 1;
    let mut widths = Vec::new();
    for level in levels.iter().filter(|level| !level.is_attached) {
        width *= level.count;
        widths.push((level, width));
    }
    let named = text.split(':').map(|name| widths.iter().find(|(level, _)| level.has_name(name)));
    let named: Vec<usize> =
        named.map(|found| found.map(|(_, width)| *width)).collect::<Option<_>>()?;
    let of_width = |&width: &usize| {
        let above = named.iter().filter(|above| **above < width).max().unwrap_or(&1);
        Loop { step: count / width, times: width / above }
    };
    Some(named.iter().map(of_width).collect())
}

/// Returns the numbers that loops give; objects that no loop distinguishes are numbered last.
fn interleaved(mut loops: Vec<Loop>, count: usize) -> Option<Vec<u32>> {
    let total = loops.iter().try_fold(1usize, |all, of| all.checked_mul(of.times))?;
    let rest = count.checked_div(total).filter(|rest| rest * total == count)?;
    let least = loops.iter().map(|of| of.step).min()?;
    if rest > 1 && least == rest {
        loops.push(Loop { step: 1, times: rest });
    } else if rest > 1 {
        return None;
    }
    let number = |place: usize| {
        let mut unit = 1;
        let mut number = 0;
        for of in &loops {
            number += place / of.step % of.times * unit;
            unit *= of.times;
        }
        u32::try_from(number).ok()
    };
    (0..count).map(number).collect()
}
