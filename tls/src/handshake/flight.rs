//! What a transition sends: handshake messages gathered in plaintext, cut into records and sealed when keys change or the turn ends.

use crate::alert::Alert;
use crate::cause::Cause;
use crate::crypto::Provider;
use crate::record::{CONTENT_BYTES_MAX, ContentType, TrafficKeys, WriteHalf};
use crate::session::Out;

/// The way out of a transition.
pub struct Flight<'a, P: Provider> {
    write: &'a mut WriteHalf<P>,
    pending: &'a mut [u8],
    pending_bytes: usize,
    out: Out<'a>,
    content_max: usize,
}

impl<'a, P: Provider> Flight<'a, P> {
    /// Nothing gathered yet. `pending` holds messages in plaintext until they are sealed into `out`.
    pub fn new(write: &'a mut WriteHalf<P>, pending: &'a mut [u8], out: Out<'a>) -> Self {
        Self {
            write,
            pending,
            pending_bytes: 0,
            out,
            content_max: CONTENT_BYTES_MAX,
        }
    }

    /// Records from here on carry at most that much content, because the peer takes no more.
    pub fn limit(&mut self, content_max: u16) {
        self.content_max = usize::from(content_max);
    }

    /// Client: the first hello was answered, so that records from here are of version 0x0303.
    pub fn answered(&mut self) {
        self.write.answered();
    }

    /// Gathers one handshake message: `encode` writes it whole, header included, to the start of the slice and gives its length. What comes
    /// back is the message as written, for the transcript.
    ///
    /// When full: [`Cause::Internal`]; nothing is gathered.
    pub fn add(&mut self, encode: impl FnOnce(&mut [u8]) -> Result<usize, Cause>) -> Result<&[u8], Cause> {
        let spare = self.pending.get_mut(self.pending_bytes..).ok_or(Cause::Internal)?;
        let bytes = encode(spare)?;
        let end = self.pending_bytes.checked_add(bytes).ok_or(Cause::Internal)?;
        let raw = self.pending.get(self.pending_bytes..end).ok_or(Cause::Internal)?;
        self.pending_bytes = end;
        Ok(raw)
    }

    /// Seals what was gathered, and everything after it under `keys`.
    pub fn install(&mut self, keys: TrafficKeys<P>) -> Result<(), Cause> {
        self.seal()?;
        self.write.install(keys);
        Ok(())
    }

    /// Seals what was gathered, then a change_cipher_spec.
    pub fn change_cipher_spec(&mut self) -> Result<(), Cause> {
        self.seal()?;
        self.record(ContentType::ChangeCipherSpec, &[1])
    }

    /// Seals what was gathered, then an alert.
    pub fn alert(&mut self, alert: Alert) -> Result<(), Cause> {
        self.seal()?;
        self.record(ContentType::Alert, &[alert.level(), alert as u8])
    }

    /// Seals what was gathered: as few records as its bytes and the peer's limit allow.
    pub fn seal(&mut self) -> Result<(), Cause> {
        let gathered = self.pending.get(..self.pending_bytes).ok_or(Cause::Internal)?;
        for content in gathered.chunks(self.content_max) {
            seal_into(self.write, &mut self.out, ContentType::Handshake, content)?;
        }
        self.pending_bytes = 0;
        Ok(())
    }

    fn record(&mut self, kind: ContentType, content: &[u8]) -> Result<(), Cause> {
        seal_into(self.write, &mut self.out, kind, content)
    }
}

/// Seals one record of `content` into `out`.
///
/// When full: [`Cause::Internal`], `out` is as it was.
pub(crate) fn seal_into<P: Provider>(
    write: &mut WriteHalf<P>,
    out: &mut Out<'_>,
    kind: ContentType,
    content: &[u8],
) -> Result<(), Cause> {
    let before = write.overhead().0;
    let slot = out.spare();
    slot.get_mut(before..)
        .and_then(|room| room.get_mut(..content.len()))
        .ok_or(Cause::Internal)?
        .copy_from_slice(content);
    let bytes = write.seal(kind, slot, content.len())?;
    out.commit(bytes);
    Ok(())
}
