//! Learn from a stream in portions, look at the model on the way, stop, and go on: `cargo run --release --example stream`.
//!
//! The stream here is drawn from a known mixture, so that the true level can be shown beside what was learned.

use gmm_bmm::data::synth::{Synth, SynthSpec};
use gmm_bmm::{FitSettings, Model, OnlineFit};
use ndarray::array;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stream = Synth::new(SynthSpec { k: 3, dim: 2, ..SynthSpec::default() })?;
    let truth = stream.truth();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (test, _) = truth.sample(5_000, &mut rng);

    // Two to four components side by side. The start wants 5,000 rows by default; this stream starts sooner.
    let settings = FitSettings::obmm(2..=4).start_rows(500);
    let mut pass = OnlineFit::new(["x", "y"], settings)?;
    println!("{:>8}  {:>2}  {:>9}  (the truth: {:.4})", "rows", "K", "held out", truth.score(test.view()));
    for portion in 0..20 {
        let (rows, _) = truth.sample(1_000, &mut rng);
        pass.observe(rows.view())?;
        if portion % 4 == 3 {
            let now = pass.mixture()?;
            println!("{:>8}  {:>2}  {:>9.4}", pass.rows(), now.k(), now.score(test.view()));
        }
    }

    // What a program would write to a file at night and read in the morning.
    let mut file = Vec::new();
    pass.to_model()?.write(&mut file)?;
    let mut resumed = Model::read(file.as_slice())?.resume()?;

    let (rows, _) = truth.sample(1_000, &mut rng);
    pass.observe(rows.view())?;
    resumed.observe(rows.view())?;
    assert_eq!(pass.mixture()?, resumed.mixture()?, "going on gives the bits of never having stopped");
    println!(
        "{:>8}  {:>2}  {:>9.4}  after going on",
        resumed.rows(),
        resumed.mixture()?.k(),
        resumed.mixture()?.score(test.view())
    );

    let odd = array![[0.0, 0.0], [40.0, -40.0]];
    println!("log-density of {odd}: {:.1}", resumed.mixture()?.score_samples(odd.view()));
    Ok(())
}
