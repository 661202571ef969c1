//! Evaluation: accuracy, confidence intervals over episodes, tuning, and relevance and its probabilities against the truth.

mod accuracy;
mod advice;
mod calibration;
mod doubts;
mod episodes;
mod interval;
mod leave_one_out;
mod pool_size;
mod relevance_analysis;
mod size_group;
mod test_sets;
mod tuning;

pub use accuracy::{Accuracy, ClassCounts, accuracy, accuracy_of};
pub use advice::{Advice, ENOUGH_RIGHT};
pub use calibration::{Bin, Calibration, Reliability};
pub use doubts::Doubts;
pub use episodes::{FewWay, FewWayTrial, alternate_halves, draw_clean};
pub use interval::Interval;
pub use leave_one_out::{CheckedClass, LeaveOneOut, LeaveOneOutCheck, is_recognised, leave_one_out};
pub use pool_size::{GroupGain, gain_by_pool_size};
pub use relevance_analysis::{RelevanceAnalysis, average_precision, roc_auc};
pub use size_group::SizeGroup;
pub use test_sets::{BaseTest, TestAccuracy, TestSets};
pub use tuning::{BETAS, LAMBDAS, Trial, best};
