//! Learns from a stream in batches, saves the model and resumes: `cargo run --release --example stream`.
//!
//! The stream is drawn from a known mixture, so that its score can be compared with the true one.

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

    // Two to four components in parallel. The start takes 500 rows instead of 5,000.
    let settings = FitSettings::obmm(2..=4).start_rows(500);
    let mut pass = OnlineFit::new(["x", "y"], settings)?;
    println!(
        "{:>8}  {:>2}  {:>9}  (true mixture: {:.4})",
        "rows",
        "K",
        "held out",
        truth.score(test.view()).unwrap()
    );
    for batch in 0..20 {
        let (rows, _) = truth.sample(1_000, &mut rng);
        pass.observe(rows.view())?;
        if batch % 4 == 3 {
            let now = pass.mixture()?;
            println!("{:>8}  {:>2}  {:>9.4}", pass.rows(), now.k(), now.score(test.view()).unwrap());
        }
    }

    // The bytes of a model file.
    let mut file = Vec::new();
    pass.to_model()?.write(&mut file)?;
    let mut resumed = Model::read(file.as_slice())?.resume()?;

    let (rows, _) = truth.sample(1_000, &mut rng);
    pass.observe(rows.view())?;
    resumed.observe(rows.view())?;
    assert_eq!(pass.mixture()?, resumed.mixture()?, "a resumed pass gives the same bits");
    println!(
        "{:>8}  {:>2}  {:>9.4}  resumed",
        resumed.rows(),
        resumed.mixture()?.k(),
        resumed.mixture()?.score(test.view()).unwrap()
    );

    let odd = array![[0.0, 0.0], [40.0, -40.0]];
    println!("log-density of {odd}: {:.1}", resumed.mixture()?.score_samples(odd.view()).unwrap());
    Ok(())
}
