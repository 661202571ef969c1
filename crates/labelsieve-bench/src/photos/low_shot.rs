//! The paper's protocol: all novel classes at once, several shots, several episodes.

use std::path::Path;

use labelsieve_files::work::table::percent;
use labelsieve_files::work::{Monitor, Result};
use labelsieve_jobs::device::Devices;
use labelsieve_networks::devices::Devices as _;
use labelsieve_networks::opening::network::{Wanted, open_network};
use labelsieve_report::RunDirectory;

use super::config::Backbone;
use super::fine_tune::FineTuning;
use super::half::{Ground, Half};
use super::measure::Outcome;
use super::pictures::Pictures;
use super::prepare::Prepared;
use super::tables::Heading;
use super::{Collected, Photos, figures, measure, results, tables};
use crate::protocol::{Run, Score, Task, means_over};
use crate::systems;

impl Photos {
    /// Tables and figures of one backbone and one set of candidates; returns the tables as lines.
    #[expect(clippy::too_many_arguments, reason = "the whole of a run, each part with a life of its own")]
    pub(super) fn low_shot(
        &self,
        prepared: &Prepared,
        ground: Ground,
        backbone: &Backbone,
        pictures: Option<&Pictures>,
        run: &mut Run,
        directory: &RunDirectory,
        collected: &mut Collected,
        monitor: &dyn Monitor,
    ) -> Result<Vec<String>> {
        let (tuning, report) = match self.untuned {
            true => (None, Half::new(ground, prepared.photos.reported_untuned(), "novel")),
            false => {
                let (tune, report) = prepared.photos.halves();
                let tuning = Half::new(ground, tune, "tuning").novel_only();
                (Some(tuning), Half::new(ground, report, "reported"))
            }
        };
        let attention = measure::attention(run, &report, self.seed, monitor)?;
        let score = prepared.config.protocol.tune_by.score();
        let mut outcome =
            measure::measure(run, tuning.as_ref(), &report, attention.as_ref(), score, monitor)?;
        if self.compared {
            let tuning = tuning.as_ref().map(|half| half as &dyn Task);
            for row in systems::rows(run, tuning, &report, score, monitor)? {
                outcome.add_system(row);
            }
        }
        if let (Some(pictures), Some(network)) = (pictures, &backbone.network) {
            let halves = (tuning.as_ref(), &report);
            self.fine_tune(network, pictures, halves, score, &mut outcome, run, monitor)?;
        }
        let heading = self.heading(prepared, backbone, &report);
        let shots = &prepared.config.protocol.shots;
        collected.tables.extend(tables::result_tables(&outcome, shots, &heading));
        collected.figures.extend(figures::figures(&outcome, &report, shots, &heading));
        collected.results.push(results::json(&outcome, &backbone.name, ground.candidates, shots));
        let is_first = backbone.name == prepared.config.backbones[0].name;
        let is_last = prepared.candidates.last().is_some_and(|last| last.name == ground.candidates.name);
        if is_first && is_last {
            let columns = &prepared.config.photos;
            run.clock.time("galleries", || {
                figures::write_gallery(directory, &outcome, &report, shots[0], columns)
            })?;
        }
        Ok(tables::lines(&outcome, shots, &heading))
    }

    /// Adds the rows of the fine-tuned network.
    #[expect(clippy::too_many_arguments, reason = "a network, its photos, what is measured and who is told")]
    fn fine_tune(
        &self,
        network: &Path,
        pictures: &Pictures,
        halves: (Option<&Half>, &Half),
        score: Score,
        outcome: &mut Outcome,
        run: &mut Run,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let opened = open_network(network, Wanted::Features, None)?;
        let device = Devices.learners(self.device, monitor)?;
        monitor.note(&format!("fine-tuning on {device}"));
        let fine_tuning = FineTuning { device: &device, opened: &opened, pictures };
        let episodes = self.fine_tune.min(run.grid.episodes);
        let (rows, schedules) = fine_tuning.rows(run, halves, outcome.gcn()?, episodes, score, monitor)?;
        outcome.add_after("gcn, cosine", rows);
        outcome.schedules = schedules;
        Ok(())
    }

    /// What stands above the tables of one backbone and one set of candidates.
    pub(super) fn heading(&self, prepared: &Prepared, backbone: &Backbone, report: &Half) -> Heading {
        let ground = report.ground;
        let simulated = if prepared.config.candidates.simulated { "simulated " } else { "" };
        let noise = percent(ground.candidates.noise_of(report.classes.iter().copied()).0);
        let episodes = prepared.config.protocol.episodes;
        let fine_tuned = match self.fine_tune {
            n if n > 0 && n < episodes => format!(", {n} for the fine-tuned rows"),
            _ => String::new(),
        };
        let base =
            if ground.backbone.base_is_learned { "learned with the backbone" } else { "base prototypes" };
        Heading {
            id: format!("{}-{}", backbone.name.replace('.', "_"), ground.candidates.name),
            title: format!("{}, {} ({noise} % {simulated}noise)", backbone.name, ground.candidates.name),
            caption: format!(
                "{}{fine_tuned}; W_B: {base}; {simulated}noise {noise} % over the reported classes.",
                means_over(episodes, "episode")
            ),
            command: self.command(),
        }
    }
}
