//! The figures of the paper, printed beside ours: top-5 accuracy in percent for k = 1, 2, 5, 10, 20.

use super::release::{Backbone, Dataset};

/// Shots of the benchmark.
pub const SHOTS: [usize; 5] = [1, 2, 5, 10, 20];

/// λ that the paper tuned on validation classes, by position in [`SHOTS`].
pub fn lambda(backbone: Backbone, shot: usize) -> f32 {
    match backbone {
        Backbone::Resnet10 => [0.01, 0.05, 0.5, 1.0, 5.0][shot],
        Backbone::Resnet50pca => [0.01, 0.05, 1.0, 5.0, 5.0][shot],
    }
}

/// Which classes compete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classes {
    Novel,
    All,
}

/// The published row of a method, if there is one.
pub fn row(dataset: Dataset, backbone: Backbone, classes: Classes, name: &str) -> Option<[f64; 5]> {
    use Backbone::{Resnet10, Resnet50pca};
    use Classes::{All, Novel};
    use Dataset::{Imagenet, Places365};
    Some(match (dataset, backbone, classes, name) {
        (Imagenet, Resnet10, Novel, "clean only") => [45.3, 57.1, 69.3, 74.8, 77.8],
        (Imagenet, Resnet10, Novel, "similarity") => [49.8, 56.3, 64.2, 68.4, 71.2],
        (Imagenet, Resnet10, Novel, "β = 1") => [56.1, 56.4, 57.1, 57.7, 58.7],
        (Imagenet, Resnet10, Novel, "β*") => [55.6, 58.3, 63.4, 67.5, 71.0],
        (Imagenet, Resnet10, Novel, "linear") => [59.8, 59.3, 58.4, 58.6, 59.4],
        (Imagenet, Resnet10, Novel, "label propagation") => [62.6, 67.0, 74.6, 76.3, 77.7],
        (Imagenet, Resnet10, Novel, "mlp") => [63.6, 68.8, 73.7, 75.6, 77.6],
        (Imagenet, Resnet10, Novel, "gcn") => [67.8, 70.9, 73.9, 76.1, 78.2],
        (Imagenet, Resnet10, Novel, "gcn, cosine") => [73.2, 75.3, 75.6, 78.5, 80.7],
        (Imagenet, Resnet10, All, "clean only") => [57.0, 64.7, 72.5, 75.8, 77.4],
        (Imagenet, Resnet10, All, "gcn") => [70.3, 72.1, 74.1, 75.6, 76.9],
        (Imagenet, Resnet10, All, "gcn, cosine") => [72.4, 73.4, 77.2, 78.8, 79.2],
        (Imagenet, Resnet10, Novel, "prototypical") => [39.3, 54.4, 66.3, 71.2, 73.9],
        (Imagenet, Resnet10, Novel, "logistic with hallucination") => [40.7, 50.8, 62.0, 69.3, 76.5],
        (Imagenet, Resnet10, Novel, "pmn with hallucination") => [45.8, 57.8, 69.0, 74.3, 77.4],
        (Imagenet, Resnet50pca, Novel, "prototypical") => [49.6, 64.0, 74.4, 78.1, 80.0],
        (Imagenet, Resnet50pca, Novel, "pmn with hallucination") => [54.7, 66.8, 77.4, 81.4, 83.8],
        (Imagenet, Resnet50pca, Novel, "diffusion") => [63.6, 69.5, 75.2, 78.5, 80.8],
        (Imagenet, Resnet50pca, Novel, "diffusion, logistic") => [64.0, 71.1, 79.7, 83.9, 86.3],
        (Imagenet, Resnet50pca, Novel, "gcn") => [69.7, 73.7, 77.0, 79.9, 81.9],
        (Imagenet, Resnet50pca, Novel, "gcn, cosine") => [78.0, 80.2, 80.9, 83.7, 85.7],
        (Imagenet, Resnet50pca, All, "gcn") => [73.8, 76.6, 78.9, 80.8, 82.2],
        (Imagenet, Resnet50pca, All, "gcn, cosine") => [78.2, 79.6, 80.4, 82.4, 84.1],
        (Places365, Resnet10, Novel, "clean only") => [28.7, 38.0, 50.5, 57.9, 62.3],
        (Places365, Resnet10, Novel, "β = 1") => [44.0, 45.7, 48.4, 50.0, 50.8],
        (Places365, Resnet10, Novel, "label propagation") => [39.6, 46.5, 54.8, 59.6, 62.0],
        (Places365, Resnet10, Novel, "mlp") => [46.9, 50.1, 55.4, 59.2, 61.5],
        (Places365, Resnet10, Novel, "gcn") => [47.1, 50.5, 55.1, 59.0, 61.9],
        (Places365, Resnet10, Novel, "gcn, cosine") => [50.7, 53.5, 57.0, 59.8, 62.3],
        _ => return None,
    })
}
