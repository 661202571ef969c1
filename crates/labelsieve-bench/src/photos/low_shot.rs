//! The paper's protocol: all novel classes at once, several shots, several episodes.

use labelsieve_files::work::Result;
use labelsieve_files::work::table::percent;
use labelsieve_jobs::device::Devices;
use labelsieve_networks::devices::Devices as _;
use labelsieve_networks::opening::network::{NetworkPart, open_network};
use labelsieve_report::RunDirectory;

use super::config::Backbone;
use super::fine_tune::FineTuning;
use super::half::{Half, Halves};
use super::pictures::Pictures;
use super::prepare::BenchmarkInputs;
use super::tables::Heading;
use super::{CollectedResults, Comparison, Photos, figures, measure, results, tables};
use crate::protocol::{Run, Task, means_over};
use crate::systems;

impl Photos {
    /// Tables and figures of one backbone and one set of candidates; returns the tables as lines.
    pub(super) fn low_shot(
        &self,
        comparison: &Comparison,
        pictures: Option<&Pictures>,
        run: &mut Run,
        directory: &RunDirectory,
        collected: &mut CollectedResults,
    ) -> Result<Vec<String>> {
        let Comparison { inputs, context, backbone, monitor } = *comparison;
        let (tuning, report) = if self.untuned {
            (None, Half::new(context, inputs.photos.reported_untuned(), "novel"))
        } else {
            let (tune, report) = inputs.photos.halves();
            let tuning = Half::new(context, tune, "tuning").novel_only();
            (Some(tuning), Half::new(context, report, "reported"))
        };
        let halves = Halves { tuning: tuning.as_ref(), report: &report };
        let attention = measure::attention(run, &report, self.seed, monitor)?;
        let score = inputs.config.protocol.tune_by.score();
        let mut outcome = measure::measure(run, halves, attention.as_ref(), score, monitor)?;
        if self.compared {
            let tuning = tuning.as_ref().map(|half| half as &dyn Task);
            for row in systems::rows(run, tuning, &report, score, monitor)? {
                outcome.add_system(row);
            }
        }
        if let (Some(pictures), Some(network)) = (pictures, &backbone.network) {
            let opened = open_network(network, NetworkPart::Features, None)?;
            let device = Devices.learners(self.device, monitor)?;
            monitor.note(&format!("fine-tuning on {device}"));
            let fine_tuning = FineTuning { device: &device, opened: &opened, pictures };
            let episodes = self.fine_tune.min(run.grid.episodes);
            let (rows, schedules) =
                fine_tuning.rows(run, halves, outcome.gcn()?, episodes, score, monitor)?;
            outcome.add_after("gcn, cosine", rows);
            outcome.schedules = schedules;
        }
        let heading = self.heading(inputs, backbone, &report);
        let shots = &inputs.config.protocol.shots;
        collected.tables.extend(tables::result_tables(&outcome, shots, &heading));
        collected.figures.extend(figures::figures(&outcome, &report, shots, &heading));
        collected.results.push(results::json(&outcome, &backbone.name, context.candidates, shots));
        let is_first = backbone.name == inputs.config.backbones[0].name;
        let is_last = inputs.candidates.last().is_some_and(|last| last.name == context.candidates.name);
        if is_first && is_last {
            let columns = &inputs.config.photos;
            run.clock.time("galleries", || {
                figures::write_gallery(directory, &outcome, &report, shots[0], columns)
            })?;
        }
        Ok(tables::lines(&outcome, shots, &heading))
    }

    /// The heading of the tables of one backbone and one set of candidates.
    pub(super) fn heading(&self, inputs: &BenchmarkInputs, backbone: &Backbone, report: &Half) -> Heading {
        let context = report.context;
        let simulated = if inputs.config.candidates.simulated { "simulated " } else { "" };
        let noise = percent(context.candidates.noise_of(report.classes.iter().copied()).0);
        let episodes = inputs.config.protocol.episodes;
        let fine_tuned = if (1..episodes).contains(&self.fine_tune) {
            format!(", {} for the fine-tuned rows", self.fine_tune)
        } else {
            String::new()
        };
        let base =
            if context.backbone.base_is_learned { "learned with the backbone" } else { "base prototypes" };
        Heading {
            id: format!("{}-{}", backbone.name.replace('.', "_"), context.candidates.name),
            title: format!("{}, {} ({noise} % {simulated}noise)", backbone.name, context.candidates.name),
            caption: format!(
                "{}{fine_tuned}; W_B: {base}; {simulated}noise {noise} % over the reported classes.",
                means_over(episodes, "episode")
            ),
            command: self.command(),
        }
    }
}
