//! One member of a group: what it said about itself, and what it waits for.

use super::Waiter;
use crate::blob::{Blob, Blobs, StoreError};
use crate::memory::Memory;
use crate::table::Key;
use crate::time::{Instant, Millis};

/// Protocols that one member may name. Kafka has no bound; clients name one to four.
pub const PROTOCOLS_MAX: usize = 16;

/// Bytes of a protocol's or protocol type's name. Kafka has no bound; the longest in use have about twenty.
pub const PROTOCOL_NAME_BYTES_MAX: usize = 64;

/// Bytes of a client's own name that go into the member id made for it.
const ID_PREFIX_BYTES_MAX: usize = 255;

/// What a member's connection waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Waiting {
    #[default]
    Nothing,
    /// The end of the rebalance.
    Join(Waiter),
    /// Its assignment.
    Sync(Waiter),
}

/// One member, or one that was told to join again with the id made for it (pending).
#[derive(Debug)]
pub(super) struct Member {
    pub(super) group: Key,
    /// Neighbours in the group's list of members, or of pending members.
    pub(super) before: Key,
    pub(super) after: Key,
    pub(super) pending: bool,
    pub(super) who: Who,
    /// Its protocols in its own order of preference; see [`protocols`].
    pub(super) protocols: Blob,
    pub(super) assignment: Blob,
    pub(super) session_timeout: Millis,
    pub(super) rebalance_timeout: Millis,
    /// When it is removed unless it is heard of or waits.
    pub(super) deadline: Instant,
    pub(super) waiting: Waiting,
    /// Has not yet been answered: it does not know its id and cannot send heartbeats, so waiting does not keep it alive.
    pub(super) fresh: bool,
    /// Has joined this generation and not yet asked for its assignment.
    pub(super) owes_sync: bool,
}

impl Member {
    pub(super) const fn waits_for_join(&self) -> bool {
        matches!(self.waiting, Waiting::Join(_))
    }

    /// Bytes of its ids and protocols: no less than it takes in a JoinGroup reply.
    pub(super) const fn bytes(&self) -> u32 {
        (self.who.blob.len() + self.protocols.len()) as u32
    }

    /// When it expires, as things are: never while it waits for us, unless it is fresh.
    pub(super) const fn expires_at(&self) -> Instant {
        match self.waiting {
            Waiting::Join(_) | Waiting::Sync(_) if !self.fresh => Instant::NEVER,
            _ => self.deadline,
        }
    }
}

/// Member id, instance id, client id and host, one after the other in one blob.
#[derive(Debug)]
pub(super) struct Who {
    blob: Blob,
    id: u32,
    instance: Option<u32>,
    client: u32,
}

/// A member id as the coordinator makes it: the instance's or client's name, a dash and a UUID.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewId<'a> {
    prefix: &'a str,
    uuid: [u8; 36],
}

impl<'a> NewId<'a> {
    pub(super) fn new(name: &'a str, random: [u8; 16]) -> Self {
        let mut cut = name.len().min(ID_PREFIX_BYTES_MAX);
        while !name.is_char_boundary(cut) {
            cut -= 1;
        }
        Self {
            prefix: name.get(..cut).unwrap_or(""),
            uuid: uuid_text(random),
        }
    }
}

impl Who {
    pub(super) fn store<M: Memory>(
        blobs: &mut Blobs<M>,
        id: &NewId<'_>,
        instance: Option<&str>,
        client: &str,
        host: &str,
    ) -> Result<Self, StoreError> {
        let blob = blobs.put(&[
            id.prefix.as_bytes(),
            b"-",
            &id.uuid,
            instance.unwrap_or("").as_bytes(),
            client.as_bytes(),
            host.as_bytes(),
        ])?;
        Ok(Self {
            blob,
            id: (id.prefix.len() + 1 + id.uuid.len()) as u32,
            instance: instance.map(|i| i.len() as u32),
            client: client.len() as u32,
        })
    }

    pub(super) fn free<M: Memory>(self, blobs: &mut Blobs<M>) {
        blobs.free(self.blob);
    }

    fn part<'a, M: Memory>(&self, blobs: &'a Blobs<M>, start: u32, len: u32) -> &'a str {
        let text = blobs.text(&self.blob);
        text.get(start as usize..(start + len) as usize).unwrap_or("")
    }

    pub(super) const fn is_static(&self) -> bool {
        self.instance.is_some()
    }

    pub(super) fn id<'a, M: Memory>(&self, blobs: &'a Blobs<M>) -> &'a str {
        self.part(blobs, 0, self.id)
    }

    /// The same as bytes, for comparing.
    pub(super) fn id_bytes<'a, M: Memory>(&self, blobs: &'a Blobs<M>) -> &'a [u8] {
        blobs.bytes(&self.blob).get(..self.id as usize).unwrap_or(&[])
    }

    pub(super) fn instance<'a, M: Memory>(&self, blobs: &'a Blobs<M>) -> Option<&'a str> {
        self.instance.map(|len| self.part(blobs, self.id, len))
    }

    pub(super) fn client<'a, M: Memory>(&self, blobs: &'a Blobs<M>) -> &'a str {
        self.part(blobs, self.id + self.instance.unwrap_or(0), self.client)
    }

    pub(super) fn host<'a, M: Memory>(&self, blobs: &'a Blobs<M>) -> &'a str {
        let start = self.id + self.instance.unwrap_or(0) + self.client;
        let text = blobs.text(&self.blob);
        text.get(start as usize..).unwrap_or("")
    }
}

/// The hyphenated form of a random (version 4) UUID.
fn uuid_text(mut random: [u8; 16]) -> [u8; 36] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut random;
    *version = *version & 0x0f | 0x40;
    *variant = *variant & 0x3f | 0x80;
    let mut text = [b'-'; 36];
    let places = (0..36usize).filter(|i| !matches!(i, 8 | 13 | 18 | 23));
    let nibbles = random.into_iter().flat_map(|byte| [byte >> 4, byte & 0x0f]);
    for (place, nibble) in places.zip(nibbles) {
        if let (Some(to), Some(digit)) = (text.get_mut(place), DIGITS.get(usize::from(nibble))) {
            *to = *digit;
        }
    }
    text
}

/// Bytes before each stored protocol: the lengths of its name and metadata.
const PROTOCOL_HEAD: usize = 8;

/// Stores a member's protocols: for each the length of the name and of the metadata (4 bytes each), then both.
pub(super) fn store_protocols<'a, M: Memory>(
    blobs: &mut Blobs<M>,
    list: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
) -> Result<Blob, StoreError> {
    let bytes = list.clone().fold(0usize, |sum, (name, metadata)| {
        sum.saturating_add(PROTOCOL_HEAD)
            .saturating_add(name.len())
            .saturating_add(metadata.len())
    });
    let blob = blobs.alloc(bytes)?;
    let mut rest = blobs.bytes_mut(&blob).iter_mut();
    let mut put = |bytes: &[u8]| bytes.iter().zip(rest.by_ref()).for_each(|(from, to)| *to = *from);
    for (name, metadata) in list {
        put(&(name.len() as u32).to_le_bytes());
        put(&(metadata.len() as u32).to_le_bytes());
        put(name.as_bytes());
        put(metadata);
    }
    Ok(blob)
}

/// The stored protocols: names and metadata, in the member's order of preference.
pub(super) fn protocols(mut stored: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    core::iter::from_fn(move || {
        let (name_len, rest) = stored.split_first_chunk::<4>()?;
        let (metadata_len, rest) = rest.split_first_chunk::<4>()?;
        let (name, rest) = rest.split_at_checked(u32::from_le_bytes(*name_len) as usize)?;
        let (metadata, rest) = rest.split_at_checked(u32::from_le_bytes(*metadata_len) as usize)?;
        stored = rest;
        Some((name, metadata))
    })
}

/// Whether a consumer's metadata names `topic` among its subscriptions; `None` when it cannot be read.
///
/// Shape (ConsumerProtocolSubscription, of which version 0 is a prefix of all later ones): version i16, count i32, topics as i16 length
/// and bytes.
pub(super) fn subscribes(metadata: &[u8], topic: &str) -> Option<bool> {
    let (_version, rest) = metadata.split_first_chunk::<2>()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    for _ in 0..i32::from_be_bytes(*count) {
        let (len, after) = rest.split_first_chunk::<2>()?;
        let (name, after) = after.split_at_checked(usize::try_from(i16::from_be_bytes(*len)).ok()?)?;
        if name == topic.as_bytes() {
            return Some(true);
        }
        rest = after;
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::heap::{Heap, HeapRows};

    fn store() -> Blobs<Heap> {
        Blobs::new(HeapRows::filled(0, 4096), HeapRows::filled(0, 256), 4096)
    }

    #[test]
    fn a_member_id_is_a_name_and_a_uuid() {
        let mut blobs = store();
        let id = NewId::new("app", [0xff; 16]);
        let who = Who::store(&mut blobs, &id, Some("left"), "rdkafka", "127.0.0.1").unwrap();
        assert_eq!(who.id(&blobs), "app-ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(who.instance(&blobs), Some("left"));
        assert_eq!(who.client(&blobs), "rdkafka");
        assert_eq!(who.host(&blobs), "127.0.0.1");
        who.free(&mut blobs);
        assert_eq!(blobs.live(), 0);
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let name = "ü".repeat(200);
        let mut blobs = store();
        let who = Who::store(&mut blobs, &NewId::new(&name, [0; 16]), None, "c", "h").unwrap();
        assert_eq!(who.id(&blobs).len(), 254 + 37);
        assert_eq!(who.instance(&blobs), None);
    }

    #[test]
    fn protocols_come_back_in_order() {
        let mut blobs = store();
        let list = [("range", &b"abc"[..]), ("roundrobin", &[]), ("", b"x")];
        let blob = store_protocols(&mut blobs, list.into_iter()).unwrap();
        let read: std::vec::Vec<_> = protocols(blobs.bytes(&blob)).collect();
        assert_eq!(read, [(&b"range"[..], &b"abc"[..]), (b"roundrobin", b""), (b"", b"x")]);
    }

    #[test]
    fn a_cut_subscription_is_not_readable() {
        let whole = b"\x00\x01\x00\x00\x00\x02\x00\x01a\x00\x02bc\xff\xff\xff\xff";
        assert_eq!(subscribes(whole, "bc"), Some(true));
        assert_eq!(subscribes(whole, "d"), Some(false));
        for cut in 0..13 {
            assert_eq!(subscribes(&whole[..cut], "d"), None, "cut at {cut}");
        }
        assert_eq!(subscribes(b"\x00\x00\xff\xff\xff\xff", "a"), Some(false));
        assert_eq!(subscribes(b"\x00\x00\x00\x00\x00\x01\xff\xff", "a"), None);
    }
}
