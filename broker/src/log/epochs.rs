//! Where each leader epoch began in a partition (KIP-101, KIP-320). Derived: every batch bears its epoch.

use super::types::EpochEnd;

/// Epochs remembered per partition: one begins at each start of the broker that appends.
pub(super) const EPOCHS_MAX: usize = 16;

/// An epoch and the offset of its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    pub(super) epoch: i32,
    pub(super) start: i64,
}

/// The epochs of one partition, rising.
///
/// When full: the oldest goes. A question about it is then answered as one about an epoch before the log's start.
#[derive(Clone, Debug)]
pub(super) struct Epochs(heapless::Deque<Epoch, EPOCHS_MAX>);

impl Epochs {
    pub(super) const EMPTY: Self = Self(heapless::Deque::new());

    /// A batch of `epoch` is at `start`. An epoch that does not rise is not noted.
    pub(super) fn note(&mut self, epoch: i32, start: i64) {
        if epoch <= self.latest() {
            return;
        }
        if self.0.is_full() {
            self.0.pop_front();
        }
        let _ = self.0.push_back(Epoch { epoch, start });
    }

    /// The newest epoch, −1 when there is none.
    pub(super) fn latest(&self) -> i32 {
        self.0.back().map_or(-1, |last| last.epoch)
    }

    /// The epoch under which `offset` was written, −1 when unknown.
    pub(super) fn at(&self, offset: i64) -> i32 {
        self.0
            .iter()
            .rev()
            .find(|epoch| epoch.start <= offset)
            .map_or(-1, |epoch| epoch.epoch)
    }

    /// Where `epoch` ends in a log that ends at `end`.
    pub(super) fn end_of(&self, epoch: i32, end: i64) -> EpochEnd {
        if epoch >= 0 && epoch == self.latest() {
            return EpochEnd {
                leader_epoch: epoch,
                end_offset: end,
            };
        }
        let Some(next) = self.0.iter().find(|known| known.epoch > epoch).filter(|_| epoch >= 0) else {
            return EpochEnd {
                leader_epoch: -1,
                end_offset: -1,
            };
        };
        let floor = self.0.iter().rev().find(|known| known.epoch <= epoch);
        EpochEnd {
            leader_epoch: floor.map_or(epoch, |known| known.epoch),
            end_offset: next.start.min(end),
        }
    }

    /// The log begins at `log_start` now.
    pub(super) fn cut_before(&mut self, log_start: i64) {
        while let Some(second) = self.0.iter().nth(1)
            && second.start <= log_start
        {
            self.0.pop_front();
        }
        if let Some(first) = self.0.front_mut() {
            first.start = first.start.max(log_start);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Epoch> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(epochs: &Epochs, epoch: i32) -> (i32, i64) {
        let end = epochs.end_of(epoch, 100);
        (end.leader_epoch, end.end_offset)
    }

    #[test]
    fn answers_as_kafka_does() {
        let mut epochs = Epochs::EMPTY;
        assert_eq!(end(&epochs, 0), (-1, -1));
        for (epoch, start) in [(2, 10), (2, 20), (5, 40), (4, 50), (6, 60)] {
            epochs.note(epoch, start);
        }
        assert_eq!(end(&epochs, -1), (-1, -1));
        assert_eq!(end(&epochs, 1), (1, 10), "before the first: the first one's start");
        assert_eq!(end(&epochs, 2), (2, 40));
        assert_eq!(end(&epochs, 3), (2, 40));
        assert_eq!(end(&epochs, 5), (5, 60));
        assert_eq!(end(&epochs, 6), (6, 100));
        assert_eq!(end(&epochs, 7), (-1, -1), "never heard of");
        assert_eq!(
            [epochs.at(9), epochs.at(10), epochs.at(39), epochs.at(99)],
            [-1, 2, 2, 6]
        );
        epochs.cut_before(45);
        assert_eq!(
            epochs.iter().map(|e| (e.epoch, e.start)).collect::<Vec<_>>(),
            [(5, 45), (6, 60)]
        );
    }

    #[test]
    fn the_oldest_goes_when_full() {
        let mut epochs = Epochs::EMPTY;
        for epoch in 0..20 {
            epochs.note(epoch, i64::from(epoch) * 3);
        }
        assert_eq!(epochs.iter().count(), EPOCHS_MAX);
        assert_eq!(end(&epochs, 2), (2, 12), "as if before the log's start");
        assert_eq!(end(&epochs, 18), (18, 57));
    }
}
