//! How long to wait before the next try.

use crate::time::Millis;

/// Doubles from `first` to `most`; each wait is drawn from its upper half, so that a thousand devices that lost the same broker
/// do not come back in step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    first: u32,
    most: u32,
    next: u32,
    random: u32,
}

impl Backoff {
    /// `seed`: anything that differs between devices.
    pub(super) fn new(first: Millis, most: Millis, seed: u32) -> Self {
        let ms = |millis: Millis| u32::try_from(millis.0).unwrap_or(u32::MAX);
        let first = ms(first).max(1);
        Self {
            first,
            most: ms(most).max(first),
            next: first,
            // Xorshift stands still at 0.
            random: seed.max(1),
        }
    }

    /// The next wait.
    pub(super) fn draw(&mut self) -> Millis {
        // Marsaglia, "Xorshift RNGs", 2003: 13, 17, 5.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        let whole = self.next;
        self.next = whole.saturating_mul(2).min(self.most);
        let half = whole / 2;
        Millis(u64::from(whole - half + self.random % (half + 1)))
    }

    /// It went well: begin small again.
    pub(super) const fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_a_bound_and_never_leave_their_upper_half() {
        for seed in [0, 1, 7, u32::MAX] {
            let mut backoff = Backoff::new(Millis(100), Millis(1000), seed);
            for whole in [100, 200, 400, 800, 1000, 1000] {
                let Millis(wait) = backoff.draw();
                assert!((whole / 2..=whole).contains(&wait), "{wait} of {whole}");
            }
            backoff.reset();
            assert!(backoff.draw().0 <= 100);
        }
        let mut largest = Backoff::new(Millis(u64::MAX), Millis(0), 1);
        assert!(largest.draw().0 >= u64::from(u32::MAX / 2));
        assert!(largest.draw().0 >= u64::from(u32::MAX / 2));
    }
}
