//! Secret bytes of a fixed number.

use core::ops::{Deref, DerefMut};

use zeroize::{Zeroize, ZeroizeOnDrop};

/// So many bytes, wiped when dropped.
///
/// Cost: they are wiped as one piece. `Zeroizing<[u8; N]>` goes byte by byte, which a handshake felt: it wipes some hundred secrets.
#[derive(Clone)]
pub struct Wiped<const N: usize>([u8; N]);

impl<const N: usize> Wiped<N> {
    /// Zeros, to be written.
    #[must_use]
    pub const fn zeros() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Deref for Wiped<N> {
    type Target = [u8; N];

    fn deref(&self) -> &[u8; N] {
        &self.0
    }
}

impl<const N: usize> DerefMut for Wiped<N> {
    fn deref_mut(&mut self) -> &mut [u8; N] {
        &mut self.0
    }
}

impl<const N: usize> Zeroize for Wiped<N> {
    fn zeroize(&mut self) {
        self.0.as_mut_slice().zeroize();
    }
}

impl<const N: usize> Drop for Wiped<N> {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl<const N: usize> ZeroizeOnDrop for Wiped<N> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_what_was_wiped() {
        let mut bytes = Wiped::<67>::zeros();
        bytes.fill(7);
        bytes.zeroize();
        assert_eq!(*bytes, [0; 67]);
    }
}
