//! Training recipes: epochs, learning rates, augmentation.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, Setting};
use crate::images::{Augmentation, Crop};

/// How a network is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// Epochs.
    pub epochs: usize,
    /// Batches per epoch; by default, enough to see as many images as there are.
    pub batches_per_epoch: Option<usize>,
    /// Images per batch.
    pub batch: usize,
    /// Learning rates.
    pub rates: Rates,
    /// Momentum.
    pub momentum: f32,
    /// Weight decay.
    pub decay: f32,
    /// The augmentation.
    pub augmentation: Augmentation,
}

/// The learning rate of each epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rates {
    /// From each epoch (counted from 0), the rate beside it.
    Steps(Vec<(usize, f32)>),
    /// Half a cosine from the first rate to the second.
    Cosine(f32, f32),
}

impl Rates {
    /// The rate of an epoch, from 0, of `epochs`.
    pub fn at(&self, epoch: usize, epochs: usize) -> f32 {
        match self {
            Rates::Steps(steps) => {
                steps.iter().rev().find(|(from, _)| *from <= epoch).map_or(0.0, |(_, rate)| *rate)
            }
            Rates::Cosine(first, last) => {
                let way = epoch as f32 / (epochs.max(2) - 1) as f32;
                last + (first - last) * 0.5 * (1.0 + (std::f32::consts::PI * way).cos())
            }
        }
    }
}

/// More images than any device can hold: larger values are typos.
pub const MAX_BATCH: usize = 1 << 16;

/// More epochs would take centuries.
const MAX_EPOCHS: usize = 1_000_000;

/// The order of an epoch is drawn in advance: that many numbers take less than 1 GiB.
const MAX_IMAGES: usize = 100_000_000;

/// Recipes by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The paper's ResNet-10 on the base classes of Low-Shot ImageNet: 100 epochs of 4000 batches of 400.
    LowShotImageNet,
    /// The ConvNet-128 on mini-ImageNet: 60 epochs of 1000 batches of 8 × 32.
    MiniImageNet,
    /// For sets of some ten thousand small images: 60 passes in batches of 256, half a cosine from 0.1.
    Small,
}

impl Preset {
    /// All of them with their names on the command line.
    pub const ALL: [(&str, Preset); 3] = [
        ("lowshot-imagenet", Preset::LowShotImageNet),
        ("mini-imagenet", Preset::MiniImageNet),
        ("small", Preset::Small),
    ];

    /// The recipe for images of this size.
    pub fn recipe(self, height: usize, width: usize) -> Recipe {
        let augmentation = Augmentation::usual(height, width);
        let steps = |epochs, batches, batch, rates: &[(usize, f32)]| Recipe {
            epochs,
            batches_per_epoch: Some(batches),
            batch,
            rates: Rates::Steps(rates.to_vec()),
            momentum: 0.9,
            decay: 5e-4,
            augmentation,
        };
        match self {
            Preset::LowShotImageNet => {
                steps(100, 4000, 400, &[(0, 0.1), (30, 0.01), (60, 0.001), (90, 0.0001)])
            }
            Preset::MiniImageNet => {
                steps(60, 1000, 8 * 32, &[(0, 0.1), (20, 0.006), (40, 0.0012), (50, 0.00024)])
            }
            Preset::Small => Recipe {
                epochs: 60,
                batches_per_epoch: None,
                batch: 256,
                rates: Rates::Cosine(0.1, 0.0),
                momentum: 0.9,
                decay: 5e-4,
                augmentation: Augmentation::gentle(height, width),
            },
        }
    }
}

impl Recipe {
    /// Fine-tuning of a whole network: 10 epochs at rate 0.01, as the paper does with base classes.
    pub fn fine_tuning(height: usize, width: usize) -> Recipe {
        Recipe { epochs: 10, rates: Rates::Steps(vec![(0, 0.01)]), ..Preset::Small.recipe(height, width) }
    }

    /// Batches per epoch for so many images.
    pub fn batches(&self, images: usize) -> usize {
        self.batches_per_epoch.unwrap_or_else(|| images.div_ceil(self.batch.max(1)))
    }

    /// Checks all settings.
    pub fn check(&self) -> Result<()> {
        let wrong = |name, expected: &str, found: String| {
            Err(Error::Setting { name, expected: expected.to_owned(), found })
        };
        if self.batch < 2 {
            return wrong(
                Setting::BatchSize,
                "at least 2, which a normalisation needs",
                self.batch.to_string(),
            );
        }
        if self.batch > MAX_BATCH {
            return wrong(Setting::BatchSize, &format!("at most {MAX_BATCH}"), self.batch.to_string());
        }
        if !(1..=MAX_EPOCHS).contains(&self.epochs) {
            return wrong(Setting::Epochs, &format!("1 to {MAX_EPOCHS}"), self.epochs.to_string());
        }
        let most_batches = MAX_IMAGES / self.batch;
        if let Some(batches) = self.batches_per_epoch.filter(|n| !(1..=most_batches).contains(n)) {
            let expected = format!("1 to {most_batches} of {} images", self.batch);
            return wrong(Setting::BatchesPerEpoch, &expected, batches.to_string());
        }
        for epoch in 0..self.epochs {
            let rate = self.rates.at(epoch, self.epochs);
            if !(rate >= 0.0 && rate.is_finite()) {
                return wrong(Setting::LearningRate, "a non-negative number", rate.to_string());
            }
        }
        if let Crop::Random(crop) = self.augmentation.crop
            && !(crop.area.0 > 0.0 && crop.area.0 <= crop.area.1 && crop.area.1 <= 1.0)
        {
            let found = format!("{} to {}", crop.area.0, crop.area.1);
            return wrong(Setting::CropShare, "numbers above 0 and up to 1, the smaller first", found);
        }
        for (name, value) in [(Setting::Momentum, self.momentum), (Setting::WeightDecay, self.decay)] {
            if !(0.0..1.0).contains(&value) {
                return wrong(name, "a number in [0, 1)", value.to_string());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_step_and_anneal() {
        let steps = Preset::LowShotImageNet.recipe(224, 224).rates;
        let at = |epoch| steps.at(epoch, 100);
        assert_eq!([at(0), at(29), at(30), at(89), at(90)], [0.1, 0.1, 0.01, 0.001, 0.0001]);
        let cosine = Rates::Cosine(0.1, 0.0);
        assert_eq!(cosine.at(0, 11), 0.1);
        assert!((cosine.at(5, 11) - 0.05).abs() < 1e-6);
        assert!(cosine.at(10, 11).abs() < 1e-6);
    }
}
