//! A server with a real socket, asked by a client that knows no more than the contract.

mod client;
mod contract;
mod deciding;
mod earlier;
mod fixture;
mod lambda;
mod pictures;
mod safety;
mod scoring;
