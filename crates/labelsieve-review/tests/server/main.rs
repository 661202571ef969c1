//! A server with a real socket, asked by a client that knows no more than the contract.

mod client;
mod contract;
mod fixture;
mod safety;
mod scoring;
