//! A page in a browser and the server behind it, with which a person decides about candidates.
//!
//! It speaks HTTP and computes nothing: every question goes to a [`Session`] of `labelsieve-pipeline`.
//!
//! ```text
//! browser ──► server.rs: 127.0.0.1, a port ──► guard.rs: token, Host, Origin, headers ──► routes.rs ──► Session
//!                                                                                 └─► page.rs: embedded files
//! ```
//!
//! What keeps other pages, other users and other machines out is in [`guard`](mod@guard)'s documentation.

mod answer;
mod events;
pub mod guard;
mod page;
mod routes;
mod server;

pub use labelsieve_pipeline::review::Session;
pub use server::{Address, Error, Server, Stop};
