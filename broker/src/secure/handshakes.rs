//! Places for handshakes under way: what only they need, taken at start.
//!
//! When full: a connection stands in line, having cost no cryptography; a handshake that has stood still for long gives its place up when
//! others wait (see [`crate::secure::PATIENCE`]).

use std::rc::Rc;

use skerry_tls::notes::Notes;

use super::settings::Settings;

/// One handshake's place.
pub struct Place {
    /// The message under way.
    pub message: Box<[u8]>,
    /// How much of it has come.
    pub filled: usize,
    /// For the log line.
    pub notes: Notes,
    /// What the handshake began with.
    pub settings: Option<Rc<Settings>>,
}

/// A place that is lent.
#[derive(Debug)]
pub struct PlaceLease(usize);

/// All of them.
pub struct Handshakes {
    places: Vec<Place>,
    free: Vec<usize>,
}

impl Handshakes {
    /// `count` places for messages of at most `message_bytes`. Touched as they are first used.
    pub fn new(count: u32, message_bytes: usize) -> Self {
        let place = || Place {
            message: vec![0; message_bytes].into_boxed_slice(),
            filled: 0,
            notes: Notes::default(),
            settings: None,
        };
        Self {
            places: (0..count).map(|_| place()).collect(),
            free: (0..count as usize).rev().collect(),
        }
    }

    /// A place, or `None` when all are lent.
    pub fn lease(&mut self, settings: Rc<Settings>) -> Option<PlaceLease> {
        let index = self.free.pop()?;
        if let Some(place) = self.places.get_mut(index) {
            place.filled = 0;
            place.notes = Notes::default();
            place.settings = Some(settings);
        }
        Some(PlaceLease(index))
    }

    /// The place behind a lease.
    pub fn place(&mut self, lease: &PlaceLease) -> Option<&mut Place> {
        self.places.get_mut(lease.0)
    }

    /// Bytes of the message under way in a place.
    pub fn filled(&self, lease: &PlaceLease) -> usize {
        self.places.get(lease.0).map_or(0, |place| place.filled)
    }

    /// Gives a place back.
    pub fn release(&mut self, lease: PlaceLease) {
        if let Some(place) = self.places.get_mut(lease.0) {
            place.settings = None;
            self.free.push(lease.0);
        }
    }

    /// Places that are lent.
    pub fn leased(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Places in all.
    pub const fn count(&self) -> usize {
        self.places.len()
    }
}
