//! Randomness of the operating system, for programs that run on one.

use super::{CryptoError, Random};

/// The system's generator. Cost: a system call for each draw, where the system has no quicker way.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError> {
        getrandom::fill(out).map_err(|_| CryptoError::Failed)
    }
}
