//! Work that is followed by a `Watch`, and stopped by it.

use labelsieve::classifier::{Cosine, WeightedClass};
use labelsieve::graph::Neighbours;
use labelsieve::synthetic::Recipe;
use labelsieve::{ClassProblem, Error, Method, NoisyPool};
use labelsieve_numerics::Watch;

const STOPPED: Error = Error::Numerics(labelsieve_numerics::Error::Stopped);

#[test]
fn a_watched_class_counts_its_rows_for_the_graph_and_for_the_training() {
    let class = Recipe { n_classes: 1, ..Recipe::default() }.generate(0).classes.remove(0);
    let z = class.noisy.len();
    let n = class.clean.len() + class.noisy.len();
    let pool = NoisyPool::new(class.noisy);
    let watch = Watch::new();
    let problem = ClassProblem::new(&class.clean, &pool).unwrap().watched(&watch);
    let followed = Method::gcn().build().unwrap().relevance(&problem, 3).unwrap();
    assert_eq!(watch.done(), z + n);
    let alone = ClassProblem::new(&class.clean, &pool).unwrap();
    assert_eq!(followed, Method::gcn().build().unwrap().relevance(&alone, 3).unwrap());
}

#[test]
fn stopped_work_ends_with_an_error_and_not_with_half_a_result() {
    let class = Recipe { n_classes: 1, ..Recipe::default() }.generate(0).classes.remove(0);
    let watch = Watch::new();
    watch.stop();
    assert_eq!(Neighbours::exact_watched(&class.noisy, 50, &watch), Err(STOPPED));
    let ones = vec![1.0; class.noisy.len()];
    let examples = [WeightedClass::new(&class.clean, &class.noisy, &ones).unwrap(); 2];
    assert_eq!(Cosine::default().train_watched(&examples, 64, 0, &watch), Err(STOPPED));
    let pool = NoisyPool::with_graph(class.noisy.clone());
    let problem = ClassProblem::new(&class.clean, &pool).unwrap().watched(&watch);
    for name in ["gcn", "mlp", "label-propagation"] {
        let method: Method = serde_json::from_value(serde_json::json!({ "method": name })).unwrap();
        assert_eq!(method.build().unwrap().relevance(&problem, 0), Err(STOPPED), "{name}");
    }
}
