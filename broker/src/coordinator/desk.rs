//! Connections whose join or sync waits, and the answers that have come for them.

use skerry_core::machine::group::{Answer, Answers, Waiter};
use skerry_net::queue::Queue;

use crate::ids::ConnId;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Free,
    Waits(ConnId),
    Answered(ConnId, Answer),
}

/// One place per connection.
///
/// When full: cannot be, since a connection asks one thing at a time.
/// Cost: constant; nothing allocates.
pub struct Desk {
    places: Vec<Place>,
    /// Connections whose answer has come and that have not been told.
    wakes: Queue<u32>,
}

impl Desk {
    /// Takes memory for so many connections.
    #[must_use]
    pub fn new(connections: u32) -> Self {
        Self {
            places: vec![Place::Free; connections as usize],
            wakes: Queue::new(connections),
        }
    }

    /// Bytes that [`Desk::new`] takes.
    #[must_use]
    pub const fn memory_bytes(connections: u32) -> usize {
        connections as usize * size_of::<Place>() + Queue::<u32>::bytes(connections)
    }

    /// `conn` asks; its mark for the group machine.
    pub fn take(&mut self, conn: ConnId) -> Waiter {
        if let Some(place) = self.places.get_mut(conn.index()) {
            *place = Place::Waits(conn);
        }
        Waiter((conn.generation() as u64) << 32 | conn.index() as u64)
    }

    /// The answer for `conn`, if it has come.
    #[must_use]
    pub fn answer(&self, conn: ConnId) -> Option<Answer> {
        match self.places.get(conn.index()) {
            Some(Place::Answered(whose, answer)) if *whose == conn => Some(*answer),
            _ => None,
        }
    }

    /// `conn` has its answer, or is gone.
    pub fn leave(&mut self, conn: ConnId) {
        if let Some(place) = self.places.get_mut(conn.index())
            && matches!(place, Place::Waits(whose) | Place::Answered(whose, _) if *whose == conn)
        {
            *place = Place::Free;
        }
    }

    /// The next connection whose answer has come.
    pub fn next_wake(&mut self) -> Option<ConnId> {
        while let Some(slot) = self.wakes.pop() {
            if let Some(Place::Answered(conn, _)) = self.places.get(slot as usize) {
                return Some(*conn);
            }
        }
        None
    }
}

impl Answers for Desk {
    /// An answer for a connection that is gone, or that has asked something else since, is dropped: the member that it is about goes on
    /// without hearing of it, as when a reply is lost on its way.
    fn answer(&mut self, waiter: Waiter, answer: Answer) {
        let conn = ConnId::from_parts(waiter.0 as u32, (waiter.0 >> 32) as u32);
        if let Some(place) = self.places.get_mut(conn.index())
            && *place == Place::Waits(conn)
        {
            *place = Place::Answered(conn, answer);
            self.wakes.push(waiter.0 as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skerry_core::machine::group::GroupError;

    const NO: Answer = Answer::Refused(GroupError::UnknownMemberId);

    #[test]
    fn an_answer_reaches_only_who_asked() {
        let mut desk = Desk::new(2);
        let (old, new) = (ConnId::from_parts(1, 7), ConnId::from_parts(1, 8));
        let waiter = desk.take(old);
        desk.leave(old);
        desk.take(new);
        Answers::answer(&mut desk, waiter, NO);
        assert_eq!(
            (desk.answer(old), desk.answer(new), desk.next_wake()),
            (None, None, None)
        );
        desk.leave(old);
        let waiter = desk.take(new);
        Answers::answer(&mut desk, waiter, NO);
        Answers::answer(&mut desk, waiter, Answer::Refused(GroupError::IllegalGeneration));
        assert_eq!((desk.answer(old), desk.answer(new)), (None, Some(NO)));
        assert_eq!((desk.next_wake(), desk.next_wake()), (Some(new), None));
        assert_eq!(desk.answer(new), Some(NO), "until it leaves, it can be read again");
        desk.leave(new);
        assert_eq!(desk.answer(new), None);
    }
}
