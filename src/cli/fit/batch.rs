//! `fit --algo em`: batch EM over all rows in memory.

use std::time::Instant;

use super::{Args, FitResult, Fitted};
use crate::cli::console::Console;
use crate::cli::data_args::{MissingResult, tell_end};
use crate::cli::usage;
use crate::data::{Block, Dequantize};
use crate::dist::GaussianMixture;
use crate::learn::{
    Components, EmFit, EmSettings, KComparison, RowWeights, WeightedRows, check_enough_rows,
    find_column_faults, find_numbering, find_odd_values, fit_em, fit_em_learning_k, judge_row_count,
    name_column_faults,
};
use crate::model::{Model, Recipe};
use crate::stats::{BatchSums, ColumnSummary};

/// Fits by batch EM. The best of several K is the one with the best BIC.
pub(super) fn fit_batch(args: &Args, console: &Console) -> anyhow::Result<Fitted> {
    if args.checkpoint.checkpoint.is_some() || args.trace.is_asked_for() {
        return Err(usage(
            "batch EM has no checkpoints and no learning curve: use an online learner, such as --algo obmm",
        ));
    }
    let mut rows = args.data.open(args.seed, None, console)?;
    let columns = rows.columns().clone();
    let mut sample = args.plot.sample(&columns.names, args.seed)?;
    let begun = Instant::now();
    let mut block = rows.read_all()?;
    let read_seconds = begun.elapsed().as_secs_f64();
    tell_end(&mut rows, console);
    let components = args.components();
    let counted =
        block.weights().map_or(block.rows(), |weights| weights.iter().filter(|w| **w > 0.0).count());
    check_enough_rows(components.largest_at_start(), counted as u64)?;
    console.tell(name_column_faults(&find_column_faults(block.view()), &columns.names));
    console.tell(find_numbering(block.view(), &columns.names));
    console.tell(find_odd_values(block.view(), &columns.names));
    let dequantize =
        if args.dequantize { Dequantize::Discrete.decided(block.view()) } else { Dequantize::Off };
    if let Some(noise) = dequantize.noise(args.seed) {
        noise.add_to(block.values_mut(), columns.len(), 0);
    }
    let begun = Instant::now();
    let mut settings = EmSettings::default();
    settings.effort = args.revisions.effort.unwrap_or(settings.effort);
    settings.covariance = args.covariance;
    let weighted = WeightedRows { rows: block.view(), weights: block.weights() };
    let effective = weighted.effective_rows();
    let fits = match &components {
        Components::Given(ks) => {
            let fit = |&k: &usize| fit_em(weighted, k, args.seed, &settings);
            ks.iter().map(fit).collect::<Result<Vec<_>, _>>()?
        }
        &Components::Learned { least, most } => {
            vec![fit_em_learning_k(weighted, least..=most, args.seed, &settings)?]
        }
    };
    let score = |fit: EmFit| (fit.less_bic_price(effective), fit.mixture);
    let mut fits: Vec<(f64, GaussianMixture)> = fits.into_iter().map(score).collect();
    let best = (0..fits.len()).fold(0, |best, i| if fits[i].0 > fits[best].0 { i } else { best });
    let batches = batch_sums(&fits, &block);
    let scores: Vec<_> = fits.iter().map(|(score, mixture)| (mixture.k(), Some(*score))).collect();
    let choice = KComparison::new(&scores, &batches);
    fits.swap(0, best);
    let mixtures = fits.into_iter().map(|(_, mixture)| mixture).collect();
    let summaries: Vec<ColumnSummary> =
        block.view().columns().into_iter().map(|column| column.iter().copied().collect()).collect();
    let are_weights = |weights: &[f64]| weights.iter().any(|weight| ![0.0, 1.0].contains(weight));
    let mut weights = block.weights().filter(|weights| are_weights(weights)).map(|_| RowWeights::default());
    if let Some(weights) = &mut weights {
        weights.column = rows.weight_column().map(str::to_string);
    }
    let recipe = Recipe::Em { settings, seed: args.seed, dequantize, weights };
    let model = Model::from_mixtures(mixtures, recipe, &columns, &summaries)
        .with_ranks_of(block.view(), block.weights());
    let mut result =
        FitResult::new(&model, rows.rows_skipped(), choice, read_seconds, begun.elapsed().as_secs_f64());
    result.missing = MissingResult::of(&rows);
    if let Some(sample) = &mut sample {
        let counts = |i: &usize| block.weights().is_none_or(|weights| weights[*i] > 0.0);
        (0..block.rows()).filter(counts).for_each(|i| sample.offer(block.row(i)));
    }
    console.tell(judge_row_count(model.k(), model.rows()));
    Ok(Fitted { model, result, sample, curve: None })
}

/// The scores of all rows under each mixture.
fn batch_sums(fits: &[(f64, GaussianMixture)], block: &Block) -> BatchSums {
    let by_mixture: Vec<_> = fits.iter().map(|(_, mixture)| mixture.log_densities(block.view())).collect();
    let mut totals = vec![0.0; fits.len()];
    let mut batches = BatchSums::new(totals.clone());
    for row in 0..block.rows() {
        let weight = block.weights_of(row..row + 1);
        let times = weight.map_or(1.0, |weight| weight[0]);
        totals.iter_mut().zip(&by_mixture).for_each(|(total, scores)| *total += times * scores[row]);
        batches.record_weighted(1, weight, &totals);
    }
    batches
}
