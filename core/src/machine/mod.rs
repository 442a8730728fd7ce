//! Protocol state machines: no sockets, no clock, no storage of their own.

pub mod group;
pub mod producer;
