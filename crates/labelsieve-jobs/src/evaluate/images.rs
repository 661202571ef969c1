//! Accuracy of a network on images whose classes are known.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::Path;

use labelsieve::evaluation::{Accuracy, ClassCounts};
use labelsieve_files::work::near_name::nearest;
use labelsieve_files::work::{Error, Monitor, Result};
use labelsieve_networks::image_files::ImageSource;
use labelsieve_networks::image_scores::ImageScorer;
use labelsieve_networks::images::OnDamage;
use labelsieve_numerics::Device;

use crate::device::Devices;

/// Classes that are named in a message.
const MOST_NAMED: usize = 5;

/// Measures the network in `model` on all images of `source`; returns its classes too.
pub fn measure_images(
    model: &Path,
    source: &ImageSource,
    on_damage: OnDamage,
    device: Device,
    monitor: &dyn Monitor,
) -> Result<(Vec<String>, Accuracy)> {
    let scorer = ImageScorer::open(model)?;
    let position: HashMap<&str, usize> =
        scorer.classes().iter().enumerate().map(|(c, name)| (name.as_str(), c)).collect();
    let mut counts = vec![ClassCounts::default(); scorer.classes().len()];
    let mut all_known = true;
    scorer.score(source, on_damage, device, &Devices, monitor, |images| {
        for (label, scores) in images.labels.iter().zip(images.scores.rows()) {
            let Some(&class) = label.as_deref().and_then(|label| position.get(label)) else {
                all_known = false;
                return Ok(ControlFlow::Break(())); // the rest would be measured for nothing
            };
            counts[class].add(scores, class);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if !all_known {
        return Err(UnknownClasses::count(source, &position)?.error(model, scorer.classes()));
    }
    Ok((scorer.classes().to_vec(), Accuracy::from_counts(counts)))
}

/// Images that a network cannot be measured on.
#[derive(Default)]
struct UnknownClasses {
    n_images: usize,
    n_without_class: usize,
    /// Classes that the network does not have, with the number of their images.
    unknown: BTreeMap<String, usize>,
}

impl UnknownClasses {
    /// Looks at all images, undecoded.
    fn count(source: &ImageSource, known: &HashMap<&str, usize>) -> Result<UnknownClasses> {
        let mut found = UnknownClasses::default();
        for image in source.images()?.flatten() {
            found.n_images += 1;
            match image.label {
                None => found.n_without_class += 1,
                Some(label) if !known.contains_key(label.as_str()) => {
                    *found.unknown.entry(label).or_default() += 1
                }
                Some(_) => (),
            }
        }
        Ok(found)
    }

    fn error(&self, model: &Path, classes: &[String]) -> Error {
        if self.n_without_class > 0 {
            return Error::input(
                format!("{} of {} images have no class", self.n_without_class, self.n_images),
                "put images in a folder per class, or name the column of their classes with --label-column",
            );
        }
        let mut largest: Vec<(&String, &usize)> = self.unknown.iter().collect();
        largest.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let named = largest.iter().take(MOST_NAMED).map(|(name, n)| format!("`{name}` ({n})"));
        let named = named.collect::<Vec<_>>().join(", ");
        let more = if largest.len() > MOST_NAMED { ", …" } else { "" };
        let meant = largest.iter().find_map(|(name, _)| {
            let meant = nearest(name, classes.iter().map(String::as_str))?;
            Some(format!("did you mean `{meant}` by `{name}`? "))
        });
        Error::input(
            format!(
                "{} of {} images are of {} classes that are not among the {} of `{}`: {named}{more}",
                self.unknown.values().sum::<usize>(),
                self.n_images,
                self.unknown.len(),
                classes.len(),
                model.display()
            ),
            format!(
                "{}measure only on classes that the network was trained on; --where chooses images",
                meant.unwrap_or_default()
            ),
        )
    }
}
