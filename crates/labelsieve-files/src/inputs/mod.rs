//! Checks and joins that several stages share: tables as features, copies, decisions, one network for all features.

pub mod copies;
pub mod decisions;
pub mod left_out;
pub mod same_network;
pub mod tables;
