//! The local web server of the review. It speaks HTTP and computes nothing: every question goes to a [`Session`](crate::Session).
//!
//! ```text
//! browser ──► listener.rs: 127.0.0.1, a port ──► guard.rs: token, Host, Origin, headers ──► routes.rs ──► Session
//!                                                                                   └─► page.rs: embedded files
//! ```
//!
//! [`guard`](mod@guard) keeps out other pages, other users and other machines.

mod answer;
mod events;
pub mod guard;
mod listener;
mod page;
mod routes;

pub use listener::{Address, Error, Server, Stop};
