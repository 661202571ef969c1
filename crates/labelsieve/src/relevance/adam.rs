//! The Adam optimiser (Kingma and Ba 2015) with L2 weight decay added to the gradient.

use labelsieve_numerics::kernels::for_this_machine;
use labelsieve_numerics::level::Level;

const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// The sizes of a step: the learning rate and the root of the second moment without their bias, and the weight decay.
#[derive(Clone, Copy)]
struct StepSizes {
    rate: f32,
    root: f32,
    weight_decay: f32,
}

/// First and second moments of the gradient of each parameter.
pub(super) struct Adam {
    level: Level,
    step: i32,
    mean: Vec<f32>,
    square: Vec<f32>,
}

impl Adam {
    pub fn new(level: Level, n_parameters: usize) -> Adam {
        Adam { level, step: 0, mean: vec![0.0; n_parameters], square: vec![0.0; n_parameters] }
    }

    /// Moves `parameters` one step against `gradient`.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32], learning_rate: f32, weight_decay: f32) {
        self.step += 1;
        let rate = (f64::from(learning_rate) / (1.0 - f64::from(BETA_1).powi(self.step))) as f32;
        let root = (1.0 - f64::from(BETA_2).powi(self.step)).sqrt() as f32;
        update(
            self.level,
            parameters,
            gradient,
            &mut self.mean,
            &mut self.square,
            StepSizes { rate, root, weight_decay },
        );
    }
}

for_this_machine! {
    fn update(
        parameters: &mut [f32],
        gradient: &[f32],
        means: &mut [f32],
        squares: &mut [f32],
        sizes: StepSizes,
    ) {
        let StepSizes { rate, root, weight_decay } = sizes;
        let moments = means.iter_mut().zip(squares);
        for ((parameter, &gradient), (mean, square)) in parameters.iter_mut().zip(gradient).zip(moments) {
            let gradient = gradient + weight_decay * *parameter;
            *mean = BETA_1 * *mean + (1.0 - BETA_1) * gradient;
            *square = BETA_2 * *square + (1.0 - BETA_2) * gradient * gradient;
            *parameter -= rate * *mean / (square.sqrt() / root + EPSILON);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_moves_each_parameter_by_the_learning_rate() {
        for level in Level::available() {
            let mut parameters = [1.0, -2.0, 0.0];
            Adam::new(level, 3).step(&mut parameters, &[0.3, -7.0, 0.0], 0.1, 0.0);
            for (found, expected) in parameters.iter().zip([0.9, -1.9, 0.0]) {
                assert!((found - expected).abs() < 1e-5, "{level}: {parameters:?}");
            }
        }
    }

    #[test]
    fn weight_decay_acts_through_the_gradient() {
        let mut parameters = [1.0];
        Adam::new(Level::current(), 1).step(&mut parameters, &[0.0], 0.1, 5e-4);
        assert!((parameters[0] - 0.9).abs() < 1e-4); // any gradient, however small, moves a first step by the rate
    }

    #[test]
    fn steps_have_the_same_bits_at_every_level() {
        let stream = labelsieve_numerics::random::Stream::new(4);
        let draw = |label: u64| -> Vec<f32> { (0..77).map(|i| stream.branch(label).normal(i)).collect() };
        let trained: Vec<Vec<f32>> = Level::available()
            .into_iter()
            .map(|level| {
                let mut parameters = draw(0);
                let mut adam = Adam::new(level, 77);
                (1..20).for_each(|step| adam.step(&mut parameters, &draw(step), 0.1, 5e-4));
                parameters
            })
            .collect();
        assert!(trained.iter().all(|other| *other == trained[0]));
    }
}
