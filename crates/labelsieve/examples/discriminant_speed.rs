//! Times the discriminant on random rows: `discriminant_speed ROWS COLUMNS REPEATS`, for `benches/classifiers/run`.

use std::time::Instant;

use labelsieve::Features;
use labelsieve::classifier::discriminant::ClassSums;
use labelsieve::classifier::{Discriminant, Shrinkage, WeightedClass};
use labelsieve_numerics::Watch;
use labelsieve_numerics::random::Stream;

const N_CLASSES: usize = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sizes = std::env::args().skip(1).map(|size| size.parse());
    let sizes: Vec<usize> = sizes.collect::<Result<_, _>>()?;
    let [n_rows, dim, repeats] = sizes[..] else { return Err("expected ROWS COLUMNS REPEATS".into()) };
    let stream = Stream::new(0);
    let mut examples = Vec::new();
    for class in 0..N_CLASSES {
        let stream = stream.branch(class as u64);
        let draw = |first: usize, n: usize| {
            Features::new((first * dim..(first + n) * dim).map(|i| stream.normal(i as u64)).collect(), dim)
        };
        examples.push((draw(0, 1)?, draw(1, n_rows / N_CLASSES - 1)?));
    }
    let weights = vec![0.7; n_rows / N_CLASSES - 1];
    let mut sums_seconds = f64::INFINITY;
    let mut fit_seconds = f64::INFINITY;
    for _ in 0..=repeats {
        let start = Instant::now();
        let mut sums = ClassSums::new(dim, N_CLASSES, n_rows);
        for (clean, noisy) in &examples {
            sums.add(&WeightedClass::new(clean, noisy, &weights)?)?;
        }
        sums.flush();
        sums_seconds = sums_seconds.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let settings = Discriminant { shrinkage: Shrinkage::LedoitWolf };
        std::hint::black_box(settings.fit(&sums, None, Watch::unwatched())?);
        fit_seconds = fit_seconds.min(start.elapsed().as_secs_f64());
    }
    println!("{{\"sums\": {sums_seconds}, \"fit\": {fit_seconds}}}");
    Ok(())
}
