//! What waits to go out on one connection, in order: encoded bytes, ranges of log files, and holds.
//!
//! The bytes themselves lie in the connection's leased buffers, the small one used as a sliding window and at most one large
//! one; this keeps only where. Replies leave in the order of their requests because pieces do.

use std::io::IoSlice;

use heapless::Deque;

use crate::holds::HoldIx;
use crate::log::ReadRange;

/// Pieces that one connection may have waiting: a fetch of [`RANGES_MAX`] ranges and the replies before it.
pub const PIECES_MAX: usize = 2 * RANGES_MAX + 40;

/// File ranges in one reply. Partitions of a fetch beyond it answer empty, as Kafka's size limit does.
pub const RANGES_MAX: usize = 32;

/// One part of what goes out.
#[derive(Debug)]
enum Piece {
    /// Bytes of the small buffer.
    Small(u32),
    /// Bytes of the large buffer.
    Large(u32),
    /// Bytes of a log file.
    File(ReadRange),
    /// Nothing after this leaves before the hold is free.
    Hold(HoldIx),
}

/// Where a reply lies, for as long as it has not left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the small buffer, counted from the first byte that the connection ever put there.
    Small(u64),
    /// At this offset of the large buffer.
    Large(u32),
}

/// What stands at the front.
#[derive(Debug)]
pub enum Front {
    /// Nothing waits.
    Empty,
    /// The hold must be free first.
    Hold(HoldIx),
    /// Bytes from [`Outbox::gather`].
    Bytes,
    /// A file range: file, position and bytes left.
    File(ReadRange),
}

/// The reply's own bytes and the file ranges that go between them.
pub struct Finished<'a> {
    /// Encoded bytes, gaps not counted.
    pub bytes: usize,
    /// Where in the encoded bytes each range goes.
    pub gaps: &'a [u32],
    /// The ranges, as many as gaps.
    pub ranges: &'a [ReadRange],
}

/// The queue of one connection.
#[derive(Debug, Default)]
pub struct Outbox {
    pieces: Deque<Piece, PIECES_MAX>,
    small_start: usize,
    small_end: usize,
    small_base: u64,
    large_start: usize,
    large_end: usize,
    holds: usize,
}

impl Outbox {
    /// Nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Held replies in the queue.
    #[must_use]
    pub const fn holds(&self) -> usize {
        self.holds
    }

    /// Whether a reply of `ranges` file ranges has places in the queue.
    #[must_use]
    pub fn room_for(&self, ranges: usize) -> bool {
        self.pieces.len() + 2 * ranges + 2 <= PIECES_MAX
    }

    /// Whether the large buffer is in use.
    #[must_use]
    pub const fn uses_large(&self) -> bool {
        self.large_end > 0
    }

    /// The free end of the small buffer, after moving what waits to its front.
    pub fn spare<'b>(&mut self, small: &'b mut [u8]) -> &'b mut [u8] {
        if self.small_start > 0 {
            small.copy_within(self.small_start..self.small_end, 0);
            self.small_base += self.small_start as u64;
            self.small_end -= self.small_start;
            self.small_start = 0;
        }
        small.get_mut(self.small_end..).unwrap_or_default()
    }

    /// Where the next reply in the small buffer will lie.
    #[must_use]
    pub const fn next_place(&self) -> Place {
        Place::Small(self.small_base + self.small_end as u64)
    }

    /// Puts a hold in line: what is committed after it waits for it. False when full.
    #[must_use]
    pub fn hold(&mut self, hold: HoldIx) -> bool {
        let done = self.pieces.push_back(Piece::Hold(hold)).is_ok();
        self.holds += usize::from(done);
        done
    }

    /// Takes in a reply that was written to [`Outbox::spare`], or to the start of the large buffer. The caller has asked
    /// [`Outbox::room_for`] before.
    pub fn commit(&mut self, reply: &Finished<'_>, large: bool) {
        let mut at = 0;
        for (gap, range) in reply.gaps.iter().zip(reply.ranges) {
            let gap = *gap as usize;
            self.push_bytes(gap.saturating_sub(at), large);
            at = gap;
            let _ = self.pieces.push_back(Piece::File(*range));
        }
        self.push_bytes(reply.bytes.saturating_sub(at), large);
        if large {
            self.large_start = 0;
            self.large_end = reply.bytes;
        } else {
            self.small_end += reply.bytes;
        }
    }

    fn push_bytes(&mut self, bytes: usize, large: bool) {
        let n = u32::try_from(bytes).unwrap_or(u32::MAX);
        match (self.pieces.back_mut(), large) {
            _ if n == 0 => {}
            (Some(Piece::Small(last)), false) | (Some(Piece::Large(last)), true) => *last += n,
            (_, false) => drop(self.pieces.push_back(Piece::Small(n))),
            (_, true) => drop(self.pieces.push_back(Piece::Large(n))),
        }
    }

    /// What stands at the front.
    #[must_use]
    pub fn front(&self) -> Front {
        match self.pieces.front() {
            None => Front::Empty,
            Some(Piece::Small(_) | Piece::Large(_)) => Front::Bytes,
            Some(Piece::File(range)) => Front::File(*range),
            Some(Piece::Hold(hold)) => Front::Hold(*hold),
        }
    }

    /// Collects the bytes at the front, up to the first hold that is not free, into `slices`: how many slices, and whether a file
    /// range follows at once.
    pub fn gather<'b>(
        &self,
        small: &'b [u8],
        large: &'b [u8],
        is_free: impl Fn(HoldIx) -> bool,
        slices: &mut [IoSlice<'b>],
    ) -> (usize, bool) {
        let (mut small_at, mut large_at, mut used) = (self.small_start, self.large_start, 0);
        // Where the last slice begins, while it is one of the small buffer: what a free hold divides lies together there.
        let mut last = None;
        for piece in &self.pieces {
            let part = match piece {
                Piece::Small(n) => {
                    let start = last.unwrap_or(small_at);
                    small_at += *n as usize;
                    used -= usize::from(last.replace(start).is_some());
                    small.get(start..small_at)
                }
                Piece::Large(n) => {
                    let start = large_at;
                    large_at += *n as usize;
                    last = None;
                    large.get(start..large_at)
                }
                Piece::File(_) => return (used, true),
                Piece::Hold(hold) if is_free(*hold) => continue,
                Piece::Hold(_) => break,
            };
            let (Some(slot), Some(part)) = (slices.get_mut(used), part) else {
                break;
            };
            *slot = IoSlice::new(part);
            used += 1;
        }
        (used, false)
    }

    /// `bytes` from [`Outbox::gather`] have left; `freed` gets the free holds that they went past.
    pub fn sent(&mut self, mut bytes: usize, mut freed: impl FnMut(HoldIx)) {
        while let Some(piece) = self.pieces.front_mut() {
            let (left, large) = match piece {
                Piece::Small(n) => (n, false),
                Piece::Large(n) => (n, true),
                Piece::Hold(hold) if bytes > 0 => {
                    freed(*hold);
                    self.unhold();
                    continue;
                }
                Piece::File(_) | Piece::Hold(_) => break,
            };
            let now = bytes.min(*left as usize);
            *left -= u32::try_from(now).unwrap_or(0);
            bytes -= now;
            let done = *left == 0;
            if large {
                self.large_start += now;
                if self.large_start == self.large_end {
                    (self.large_start, self.large_end) = (0, 0);
                }
            } else {
                self.small_start += now;
            }
            if !done {
                break;
            }
            self.pieces.pop_front();
        }
        if self.small_start == self.small_end {
            self.small_base += self.small_start as u64;
            (self.small_start, self.small_end) = (0, 0);
        }
    }

    /// `bytes` of the file range at the front have left; the range comes back when that was all of it, to be released.
    pub fn sent_file(&mut self, bytes: usize) -> Option<ReadRange> {
        let Some(Piece::File(range)) = self.pieces.front_mut() else {
            return None;
        };
        let now = u32::try_from(bytes).unwrap_or(u32::MAX).min(range.bytes);
        range.position += u64::from(now);
        range.bytes -= now;
        if range.bytes > 0 {
            return None;
        }
        let done = *range;
        self.pieces.pop_front();
        Some(done)
    }

    /// Takes the hold at the front away.
    pub fn unhold(&mut self) {
        if let Some(Piece::Hold(_)) = self.pieces.front() {
            self.pieces.pop_front();
            self.holds -= 1;
        }
    }

    /// Each hold still in line.
    pub fn each_hold(&self, mut each: impl FnMut(HoldIx)) {
        for piece in &self.pieces {
            if let Piece::Hold(hold) = piece {
                each(*hold);
            }
        }
    }

    /// Forgets everything; `range` and `hold` get what the caller must give back.
    pub fn clear(&mut self, mut range: impl FnMut(ReadRange), mut hold: impl FnMut(HoldIx)) {
        while let Some(piece) = self.pieces.pop_front() {
            match piece {
                Piece::File(r) => range(r),
                Piece::Hold(h) => hold(h),
                Piece::Small(_) | Piece::Large(_) => {}
            }
        }
        *self = Self::default();
    }

    /// The bytes of a reply that has not left.
    pub fn reply_mut<'b>(
        &self,
        place: Place,
        bytes: usize,
        small: &'b mut [u8],
        large: &'b mut [u8],
    ) -> Option<&'b mut [u8]> {
        match place {
            Place::Small(at) => {
                let at = usize::try_from(at.checked_sub(self.small_base)?).ok()?;
                small.get_mut(at..at + bytes)
            }
            Place::Large(at) => large.get_mut(at as usize..at as usize + bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holds::Holds;
    use crate::ids::ConnId;
    use skerry_core::time::Instant;

    fn plain(bytes: usize) -> Finished<'static> {
        Finished {
            bytes,
            gaps: &[],
            ranges: &[],
        }
    }

    /// What would be sent now, as text.
    fn front(out: &Outbox, small: &[u8], large: &[u8]) -> String {
        front_past(out, &[], small, large)
    }

    /// The same, with some holds free.
    fn front_past(out: &Outbox, free: &[HoldIx], small: &[u8], large: &[u8]) -> String {
        let mut slices = [IoSlice::new(&[]); 4];
        let (used, _) = out.gather(small, large, |hold| free.contains(&hold), &mut slices);
        slices[..used]
            .iter()
            .map(|s| core::str::from_utf8(s).unwrap())
            .collect()
    }

    #[test]
    fn replies_leave_in_order_and_the_window_slides() {
        let mut small = *b"..........";
        let mut out = Outbox::default();
        out.spare(&mut small)[..4].copy_from_slice(b"abcd");
        out.commit(&plain(4), false);
        out.spare(&mut small)[..3].copy_from_slice(b"efg");
        out.commit(&plain(3), false);
        assert_eq!(front(&out, &small, &[]), "abcdefg");
        out.sent(5, |_| {});
        let place = out.next_place();
        assert_eq!(out.spare(&mut small).len(), 8, "what has left gives its room back");
        assert_eq!(
            out.next_place(),
            place,
            "a place counts from the first byte ever, not from the buffer's start"
        );
        assert_eq!(front(&out, &small, &[]), "fg");
        out.sent(2, |_| {});
        assert!(out.is_empty() && matches!(out.front(), Front::Empty));
    }

    #[test]
    fn nothing_passes_a_hold_and_a_held_reply_can_be_changed_where_it_lies() {
        let mut holds = Holds::new(1, 1, 1);
        let hold = holds.hold(ConnId::from_parts(0, 0), Instant::NEVER).unwrap();
        let mut small = *b"......";
        let mut out = Outbox::default();
        out.spare(&mut small)[..1].copy_from_slice(b"a");
        out.commit(&plain(1), false);
        let place = out.next_place();
        assert!(out.hold(hold));
        out.spare(&mut small)[..2].copy_from_slice(b"bc");
        out.commit(&plain(2), false);
        assert_eq!(front(&out, &small, &[]), "a");
        out.sent(1, |_| {});
        assert!(matches!(out.front(), Front::Hold(h) if h == hold));
        let _ = out.spare(&mut small);
        out.reply_mut(place, 2, &mut small, &mut []).unwrap()[0] = b'B';
        out.unhold();
        assert_eq!((front(&out, &small, &[]).as_str(), out.holds()), ("Bc", 0));
    }

    /// Goal: replies that one flush frees leave in one call. Method: three held replies and a large one, of which the second
    /// hold is freed last; then everything is sent in two parts.
    #[test]
    fn bytes_go_past_free_holds_together() {
        let mut holds = Holds::new(3, 1, 1);
        let [a, b, c] = [0, 1, 2].map(|n| holds.hold(ConnId::from_parts(n, 0), Instant::NEVER).unwrap());
        let (mut small, large) = (*b"aabbcc..", *b"LL");
        let mut out = Outbox::default();
        for hold in [a, b, c] {
            assert!(out.hold(hold));
            let _ = out.spare(&mut small);
            out.commit(&plain(2), false);
        }
        out.commit(&plain(2), true);
        assert_eq!(front_past(&out, &[], &small, &large), "");
        assert_eq!(front_past(&out, &[a, c], &small, &large), "aa");
        let mut slices = [IoSlice::new(&[]); 4];
        assert_eq!(out.gather(&small, &large, |_| true, &mut slices), (2, false));
        assert_eq!(front_past(&out, &[a, b, c], &small, &large), "aabbccLL");
        let mut freed = Vec::new();
        out.sent(4, |hold| freed.push(hold));
        assert_eq!(
            (freed.as_slice(), out.holds()),
            (&[a, b][..], 1),
            "the third hold was not gone past"
        );
        assert_eq!(front_past(&out, &[c], &small, &large), "ccLL");
        out.sent(4, |hold| freed.push(hold));
        assert_eq!((freed.as_slice(), out.holds()), (&[a, b, c][..], 0));
        assert!(out.is_empty());
    }

    #[test]
    fn a_large_reply_follows_small_ones_and_gives_its_buffer_back_once_sent() {
        let (mut small, large) = (*b"ab....", *b"LARGE!");
        let mut out = Outbox::default();
        let _ = out.spare(&mut small);
        out.commit(&plain(2), false);
        out.commit(&plain(6), true);
        assert!(out.uses_large());
        assert_eq!(front(&out, &small, &large), "abLARGE!");
        out.sent(5, |_| {});
        assert_eq!(front(&out, &small, &large), "GE!");
        out.sent(3, |_| {});
        assert!(out.is_empty() && !out.uses_large());
    }
}
