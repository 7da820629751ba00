//! Pictures: each as SVG, and as PNG at twice the resolution with an embedded font.

mod by_k;
mod canvas;
mod curves;
mod figure1;
mod frame;
mod learning;
mod legend;
mod pairs;
mod panels;
mod shapes;
mod style;
mod times;

pub use canvas::PictureFormat;
pub use figure1::figure1;
pub use learning::LearningCurve;
pub use pairs::{PairPlot, PlotGroup};

use std::collections::BTreeSet;

use super::ReportError;
use super::analysis::{SetSummary, Summary};
use super::format::{range_of_k, title};
use crate::dist::Axes;
use crate::experiment::{CurveRecord, RecordIndex};
use crate::text::number::thousands;

/// A picture in both formats.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Picture {
    /// The file's name without folder and extension.
    pub name: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// The text for readers who cannot see it.
    pub alt: String,
    pub svg: String,
    pub png: Vec<u8>,
}

impl Picture {
    fn draw(
        name: String,
        caption: String,
        alt: String,
        figure: &impl canvas::Figure,
    ) -> Result<Self, ReportError> {
        let failed = |reason| ReportError::Drawing { name: name.clone(), reason };
        let svg = canvas::svg(figure).map_err(failed)?;
        let png = canvas::png(figure).map_err(failed)?;
        Ok(Picture { name, caption, alt, svg, png })
    }
}

/// The pictures of each data set.
pub(super) fn pictures(summary: &Summary, index: &RecordIndex) -> Result<Vec<Vec<Picture>>, ReportError> {
    let mut taken = BTreeSet::new();
    summary
        .sets
        .iter()
        .map(|set| {
            let slug = slug(&set.data.data, &mut taken);
            let mut pictures = set_pictures(summary, set, curves_of(index, set), &slug)?;
            pictures.extend(pair_plot(summary, set, index, &slug)?);
            Ok(pictures)
        })
        .collect()
}

/// Explains which sets have no learning curve.
pub(super) fn notes(summary: &Summary, index: &RecordIndex) -> Vec<String> {
    let note = |set: &SetSummary| {
        let curves = curves_of(index, set);
        let rows = curves.first()?.points.last()?.0;
        let are_points = curves.iter().all(|curve| curve.start_rows == Some(rows));
        are_points.then(|| {
            format!(
                "{}: no learning curve, because the start is fitted to all {} training rows.",
                title(&set.data),
                thousands(rows)
            )
        })
    };
    summary.sets.iter().filter_map(note).collect()
}

fn curves_of<'a>(index: &'a RecordIndex, set: &SetSummary) -> &'a [CurveRecord] {
    index.set(&set.data.data).map_or(&[], |set| set.curves())
}

fn set_pictures(
    summary: &Summary,
    set: &SetSummary,
    curves: &[CurveRecord],
    slug: &str,
) -> Result<Vec<Picture>, ReportError> {
    let title = title(&set.data);
    let mut pictures = Vec::new();
    if let Some(figure) = by_k::ByK::new(set, &summary.contenders) {
        let (over, ringed) = match set.has_folds() {
            true => ("folds", "a ring marks the K that most folds chose"),
            false => ("test rows", "a ring marks the chosen K"),
        };
        let caption = format!(
            "{title}: mean test log-likelihood against the number of components K, ±1 standard error over the {over}; {ringed}. The error bars of one K are mostly the spread between the {over}, which all learners share."
        );
        let alt = format!("Line chart of test log-likelihood against K on {title}. {}", best_of(set));
        pictures.push(Picture::draw(format!("loglik-{slug}"), caption, alt, &figure)?);
    }
    if let Some(figure) = curves::Curves::new(set, curves) {
        let fold = if set.has_folds() { " of fold 0" } else { "" };
        let caption = format!(
            "{title}: test log-likelihood{fold} against rows seen{}.{}{}",
            if figure.has_log_axis() { ", on a log axis" } else { "" },
            figure.start_rows().map_or(String::new(), |(first, all)| format!(
                " The curves begin after the start, which is fitted to the first {} of the {} rows.",
                thousands(first),
                thousands(all)
            )),
            if figure.has_revisions() {
                " Vertical lines mark revisions of the structure that changed the mixture."
            } else {
                ""
            }
        );
        let alt = format!("Learning curves on {title}: test log-likelihood against rows seen.");
        pictures.push(Picture::draw(format!("curve-{slug}"), caption, alt, &figure)?);
    }
    if let Some(figure) = times::Times::new(summary, set) {
        let over = if set.has_folds() { ", median over the folds" } else { "" };
        let caption = format!("{title}: learning time in seconds at K = {}{over}.", figure.k);
        let alt = format!("Bar chart of learning times on {title}.");
        pictures.push(Picture::draw(format!("time-{slug}"), caption, alt, &figure)?);
    }
    Ok(pictures)
}

/// The reference's mixture on fold 0 with the K chosen there, if the records have it.
fn pair_plot(
    summary: &Summary,
    set: &SetSummary,
    index: &RecordIndex,
    slug: &str,
) -> Result<Option<Picture>, ReportError> {
    let found = || {
        let (records, reference) = (index.set(&set.data.data)?, summary.reference.as_ref()?);
        let k = *set.entry(reference)?.chosen.get(&0)?;
        let components = records.cell(reference, k, 0)?.marginals.clone()?;
        Some((reference, k, components, records.data()?.sample.clone()?))
    };
    let Some((reference, k, components, rows)) = found() else { return Ok(None) };
    let (title, name) = (title(&set.data), reference.name());
    let plot = PairPlot {
        heading: format!("{title}: {name}, K = {k}"),
        axes: set.data.columns.iter().take(Axes::LEADING).cloned().collect(),
        groups: PlotGroup::of_each(&components),
        components,
        rows,
        rows_in_all: set.data.rows as u64,
    };
    let Some(figure) = plot.figure() else { return Ok(None) };
    let over = if plot.axes.len() < set.data.columns.len() { "the first columns" } else { "all columns" };
    let caption = format!(
        "{title}: the mixture that {name} learned{}, with a sample of the rows, along {over}. The legend lists the \
         weights.",
        if set.has_folds() { " in fold 0" } else { "" }
    );
    let alt = format!("Pair plot of {k} components on {title}: ellipses over a sample of the rows.");
    Picture::draw(format!("pairs-{slug}"), caption, alt, &figure).map(Some)
}

fn best_of(set: &SetSummary) -> String {
    let best = set.entries.iter().find(|entry| entry.best);
    best.and_then(|entry| {
        Some(format!(
            "Best mean: {} with {:.2} at K = {}.",
            entry.contender.name(),
            entry.score.as_ref()?.mean,
            range_of_k(&entry.chosen)?
        ))
    })
    .unwrap_or_default()
}

/// A unique name that is safe for a file.
fn slug(name: &str, taken: &mut BTreeSet<String>) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let mut slug = plain.to_lowercase();
    let mut number = 1;
    while !taken.insert(slug.clone()) {
        number += 1;
        slug = format!("{}-{number}", plain.to_lowercase());
    }
    slug
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_plain_and_differ() {
        let mut taken = BTreeSet::new();
        assert_eq!(slug("abalone+dequantized", &mut taken), "abalone-dequantized");
        assert_eq!(slug("../A b", &mut taken), "---a-b");
        assert_eq!(slug("../a/b", &mut taken), "---a-b-2");
    }
}
