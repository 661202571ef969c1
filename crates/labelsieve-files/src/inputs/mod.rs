//! Opening and joining the inputs of several stages.
//!
//! [`tables`] opens tables of examples and finds their rows by class and id; [`copies`] finds clean examples among the
//! candidates; [`decisions`] matches decisions with candidates; [`same_network`] refuses features of different networks;
//! [`left_out`] reports candidates that cannot be scored.

pub mod copies;
pub mod decisions;
pub mod left_out;
pub mod same_network;
pub mod tables;
