//! Replies that wait for the disk: encoded, in their place in line, and not yet allowed out.
//!
//! A produce that asks for durability is answered in full when its batches are written; the reply then stands in the connection's
//! [`Outbox`](crate::outbox::Outbox) behind a hold. Each partition it wrote to has one *wait* here, in the order of appends, so
//! that when a partition's durable end moves only the head of its queue is looked at. The last wait to end frees the reply.

use skerry_core::error_code::ErrorCode;
use skerry_core::time::Instant;

use crate::ids::{ConnId, PartitionIx};

/// A held reply's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldIx(u32);

/// What became of one wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The connection whose reply it is.
    pub conn: ConnId,
    /// The reply.
    pub hold: HoldIx,
    /// The partition's place in the reply, counted over all topics.
    pub ordinal: u32,
    /// Set when the partition's answer must be changed to this error before the reply leaves.
    pub error: Option<ErrorCode>,
    /// No other wait keeps the reply back.
    pub free: bool,
}

#[derive(Clone, Copy)]
struct Hold {
    conn: Option<ConnId>,
    remaining: u32,
    first: u32,
    deadline: Instant,
    next_free: u32,
}

#[derive(Clone, Copy)]
struct Wait {
    hold: u32,
    ordinal: u32,
    end: i64,
    next: u32,
    next_in_hold: u32,
}

#[derive(Clone, Copy)]
struct Queue {
    head: u32,
    tail: u32,
}

const NONE: u32 = u32::MAX;

/// Every held reply and its waits.
///
/// When full: [`Holds::room`] says so before anything is appended, and the request stays unread in its connection's buffer until
/// a flush frees places: the producer's own TCP window does the waiting.
pub struct Holds {
    holds: Vec<Hold>,
    waits: Vec<Wait>,
    queues: Vec<Queue>,
    free_hold: u32,
    free_wait: u32,
    free_holds: usize,
    free_waits: usize,
}

impl Holds {
    /// Takes memory for `holds` replies, `waits` partitions within them, and a queue for each of `partitions`.
    #[must_use]
    pub fn new(holds: usize, waits: usize, partitions: usize) -> Self {
        Self {
            holds: Vec::with_capacity(holds),
            waits: Vec::with_capacity(waits),
            queues: vec![Queue { head: NONE, tail: NONE }; partitions],
            free_hold: NONE,
            free_wait: NONE,
            free_holds: holds,
            free_waits: waits,
        }
    }

    /// Bytes that [`Holds::new`] takes.
    #[must_use]
    pub const fn bytes(holds: usize, waits: usize, partitions: usize) -> usize {
        holds * size_of::<Hold>() + waits * size_of::<Wait>() + partitions * size_of::<Queue>()
    }

    /// Whether one more reply over `partitions` partitions can be held.
    #[must_use]
    pub fn room(&self, partitions: usize) -> bool {
        self.free_holds > 0 && partitions <= self.free_waits
    }

    /// Replies held, and waits in the queues of partitions. Cost: a look at all.
    #[must_use]
    pub fn used(&self) -> (usize, usize) {
        let free = core::iter::successors(Some(self.free_wait), |ix| self.waits.get(*ix as usize).map(|w| w.next));
        let waits = (self.waits.len() + 1).saturating_sub(free.count());
        (self.holds.iter().filter(|h| h.conn.is_some()).count(), waits)
    }

    /// Begins to hold a reply of `conn` until its waits have ended or `deadline` has come. `None` when full.
    pub fn hold(&mut self, conn: ConnId, deadline: Instant) -> Option<HoldIx> {
        self.free_holds = self.free_holds.checked_sub(1)?;
        let mut ix = self.free_hold;
        if ix == NONE {
            // Slots are made as they are first used, within the capacity taken at start.
            ix = self.holds.len() as u32;
            self.holds.push(Hold {
                conn: None,
                remaining: 0,
                first: NONE,
                deadline,
                next_free: NONE,
            });
        }
        let hold = self.holds.get_mut(ix as usize)?;
        self.free_hold = hold.next_free;
        *hold = Hold {
            conn: Some(conn),
            remaining: 0,
            first: NONE,
            deadline,
            next_free: NONE,
        };
        Some(HoldIx(ix))
    }

    /// Lets the reply also wait until `partition` is durable up to `end` (exclusive). False when full.
    pub fn wait(&mut self, hold: HoldIx, partition: PartitionIx, ordinal: u32, end: i64) -> bool {
        if self.free_waits == 0 || partition.0 as usize >= self.queues.len() || hold.0 as usize >= self.holds.len() {
            return false;
        }
        let mut ix = self.free_wait;
        if ix == NONE {
            ix = self.waits.len() as u32;
            self.waits.push(Wait {
                hold: NONE,
                ordinal,
                end,
                next: NONE,
                next_in_hold: NONE,
            });
        }
        let (Some(wait), Some(queue), Some(held)) = (
            self.waits.get_mut(ix as usize),
            self.queues.get_mut(partition.0 as usize),
            self.holds.get_mut(hold.0 as usize),
        ) else {
            return false;
        };
        self.free_wait = wait.next;
        self.free_waits -= 1;
        *wait = Wait {
            hold: hold.0,
            ordinal,
            end,
            next: NONE,
            next_in_hold: held.first,
        };
        held.first = ix;
        held.remaining += 1;
        let tail = queue.tail;
        queue.tail = ix;
        if tail == NONE {
            queue.head = ix;
        } else if let Some(last) = self.waits.get_mut(tail as usize) {
            last.next = ix;
        }
        true
    }

    /// Whether nothing keeps the reply back any more.
    #[must_use]
    pub fn is_free(&self, hold: HoldIx) -> bool {
        self.holds.get(hold.0 as usize).is_none_or(|h| h.remaining == 0)
    }

    /// When the reply must leave, durable or not.
    #[must_use]
    pub fn deadline(&self, hold: HoldIx) -> Instant {
        self.holds.get(hold.0 as usize).map_or(Instant::NEVER, |h| h.deadline)
    }

    /// Whether anything waits on `partition`.
    #[must_use]
    pub fn is_waited_on(&self, partition: PartitionIx) -> bool {
        self.queues.get(partition.0 as usize).is_some_and(|q| q.head != NONE)
    }

    /// Ends the waits that `durable` satisfies, oldest first. Cost: those ended, no scan.
    pub fn on_durable(&mut self, partition: PartitionIx, durable: i64, mut each: impl FnMut(Ended)) {
        while let Some(ix) = self.head(partition) {
            if self.waits.get(ix as usize).is_none_or(|w| w.end > durable) {
                break;
            }
            self.pop(partition, ix, None, &mut each);
        }
    }

    /// Ends every wait on `partition` with `error`: its disk failed or it was deleted.
    pub fn on_failed(&mut self, partition: PartitionIx, error: ErrorCode, mut each: impl FnMut(Ended)) {
        while let Some(ix) = self.head(partition) {
            self.pop(partition, ix, Some(error), &mut each);
        }
    }

    /// Ends what is left of one reply's waits with `error` (its timeout has come). The waits themselves leave their queues when
    /// their turn comes.
    pub fn expire(&mut self, hold: HoldIx, error: ErrorCode, mut each: impl FnMut(Ended)) {
        let Some(held) = self.holds.get_mut(hold.0 as usize) else {
            return;
        };
        let Some(conn) = held.conn else { return };
        let mut at = core::mem::replace(&mut held.first, NONE);
        let mut left = core::mem::replace(&mut held.remaining, 0);
        while let Some(wait) = self.waits.get_mut(at as usize) {
            let next = wait.next_in_hold;
            // Waits that ended earlier were cut from the hold when they were popped: only live ones carry its number.
            if wait.hold == hold.0 {
                wait.hold = NONE;
                left = left.saturating_sub(1);
                each(Ended {
                    conn,
                    hold,
                    ordinal: wait.ordinal,
                    error: Some(error),
                    free: left == 0,
                });
            }
            at = next;
        }
    }

    /// Gives the reply's slot back: it left, or its connection closed. Waits that are still queued stay, belonging to nobody.
    pub fn release(&mut self, hold: HoldIx) {
        self.expire(hold, ErrorCode::NONE, |_| {});
        if let Some(held) = self.holds.get_mut(hold.0 as usize)
            && held.conn.take().is_some()
        {
            held.next_free = self.free_hold;
            self.free_hold = hold.0;
            self.free_holds += 1;
        }
    }

    fn head(&self, partition: PartitionIx) -> Option<u32> {
        self.queues
            .get(partition.0 as usize)
            .map(|q| q.head)
            .filter(|h| *h != NONE)
    }

    fn pop(&mut self, partition: PartitionIx, ix: u32, error: Option<ErrorCode>, each: &mut impl FnMut(Ended)) {
        let (Some(queue), Some(wait)) = (
            self.queues.get_mut(partition.0 as usize),
            self.waits.get_mut(ix as usize),
        ) else {
            return;
        };
        queue.head = wait.next;
        if queue.head == NONE {
            queue.tail = NONE;
        }
        let Wait {
            hold,
            ordinal,
            next_in_hold,
            ..
        } = *wait;
        *wait = Wait {
            hold: NONE,
            ordinal: 0,
            end: 0,
            next: self.free_wait,
            next_in_hold: NONE,
        };
        self.free_wait = ix;
        self.free_waits += 1;
        if hold == NONE {
            return;
        }
        self.cut(hold, ix, next_in_hold);
        let Some(held) = self.holds.get_mut(hold as usize) else {
            return;
        };
        held.remaining = held.remaining.saturating_sub(1);
        if let Some(conn) = held.conn {
            each(Ended {
                conn,
                hold: HoldIx(hold),
                ordinal,
                error,
                free: held.remaining == 0,
            });
        }
    }

    /// Takes wait `ix` out of its reply's own list. Cost: the reply's partitions.
    fn cut(&mut self, hold: u32, ix: u32, next: u32) {
        let Some(held) = self.holds.get_mut(hold as usize) else {
            return;
        };
        if held.first == ix {
            held.first = next;
            return;
        }
        let mut at = held.first;
        while let Some(wait) = self.waits.get_mut(at as usize) {
            if wait.next_in_hold == ix {
                wait.next_in_hold = next;
                return;
            }
            at = wait.next_in_hold;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: PartitionIx = PartitionIx(1);
    const Q: PartitionIx = PartitionIx(0);

    fn conn(n: u32) -> ConnId {
        ConnId::from_parts(n, 0)
    }

    fn durable(holds: &mut Holds, p: PartitionIx, end: i64) -> Vec<(u32, bool)> {
        let mut out = Vec::new();
        holds.on_durable(p, end, |e| out.push((e.conn.index() as u32, e.free)));
        out
    }

    #[test]
    fn a_reply_is_free_when_its_last_partition_is_durable() {
        let mut holds = Holds::new(2, 4, 2);
        let h = holds.hold(conn(7), Instant::NEVER).unwrap();
        assert!(holds.wait(h, P, 0, 10));
        assert!(holds.wait(h, Q, 1, 5));
        assert!(durable(&mut holds, P, 9).is_empty());
        assert_eq!(durable(&mut holds, P, 10), [(7, false)]);
        assert!(!holds.is_free(h));
        assert_eq!(durable(&mut holds, Q, 50), [(7, true)]);
        assert!(holds.is_free(h));
        holds.release(h);
        assert!(holds.room(4));
    }

    #[test]
    fn expiry_answers_only_what_still_waits_and_frees_every_slot_in_the_end() {
        let mut holds = Holds::new(2, 3, 2);
        let h = holds.hold(conn(1), Instant::from_micros(5)).unwrap();
        for (p, ordinal) in [(P, 0), (Q, 1), (P, 2)] {
            assert!(holds.wait(h, p, ordinal, 1));
        }
        assert!(!holds.wait(h, P, 3, 1), "full is an answer");
        assert_eq!(durable(&mut holds, Q, 1), [(1, false)]);
        let mut late = Vec::new();
        holds.expire(h, ErrorCode::REQUEST_TIMED_OUT, |e| late.push((e.ordinal, e.free)));
        late.sort_unstable();
        assert_eq!(late.iter().map(|l| l.0).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(late.iter().filter(|l| l.1).count(), 1);
        holds.release(h);
        assert!(!holds.room(3), "expired waits stand in their queue until it moves");
        assert!(durable(&mut holds, P, 1).is_empty());
        assert!(holds.room(3));
    }

    #[test]
    fn a_failed_partition_names_the_error_for_each_reply() {
        let mut holds = Holds::new(2, 3, 2);
        let a = holds.hold(conn(1), Instant::NEVER).unwrap();
        let b = holds.hold(conn(2), Instant::NEVER).unwrap();
        assert!(holds.hold(conn(3), Instant::NEVER).is_none());
        assert!(holds.wait(a, P, 0, 1) && holds.wait(b, P, 0, 2) && holds.wait(b, Q, 1, 2));
        let mut out = Vec::new();
        holds.on_failed(P, ErrorCode::KAFKA_STORAGE_ERROR, |e| {
            out.push((e.hold, e.error.is_some(), e.free))
        });
        assert_eq!(out, [(a, true, true), (b, true, false)]);
        // A connection that closes leaves no slot behind.
        holds.release(b);
        assert!(durable(&mut holds, Q, 9).is_empty());
        holds.release(a);
        assert!(holds.room(3) && holds.free_holds == 2);
    }
}
