//! What both example firmwares share: the board, and the one function that is the example.
#![no_std]

pub mod board;
pub mod send;

// The critical section of `cortex-m`, and the log over semihosting.
use cortex_m as _;
use defmt_semihosting as _;
