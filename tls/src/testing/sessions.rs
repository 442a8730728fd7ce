//! Any bytes as what a peer sends in a whole connection: what the fuzz targets `tls_server` and `tls_client` run, and tests without them.
//!
//! A session over the provider of constants meets a recorded conversation of an honest peer's, edited as the bytes say. MACs and signatures
//! hold whatever is edited, so that edits get as deep as they can.

use alloc::boxed::Box;
use alloc::vec::Vec;
use std::thread_local;

use super::{Keys, Kind, Room, Setting, Side, Stage, Toy, Whole};
use crate::cause::Cause;
use crate::config::Config;
use crate::crypto::TAG_BYTES;
use crate::suite::{CipherSuite, Version};

/// Who is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Our client, against an edited server.
    Client,
    /// Our server, against an edited client.
    Server,
}

/// How a record is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seal {
    None,
    Tls13,
    /// With the eight bytes of an explicit nonce.
    Tls12,
}

/// One record of the honest peer's: one handshake message, or something else.
#[derive(Clone, Debug)]
struct Unit {
    kind: u8,
    seal: Seal,
    content: Vec<u8>,
}

/// A shape of connection: its configurations, and what either side said in it.
struct Recording {
    stage: Stage<'static, 'static, Toy>,
    by_client: Vec<Unit>,
    by_server: Vec<Unit>,
}

const SEED: u64 = 9;

const ROOM: Room = Room {
    message: 1 << 14,
    scratch: 1 << 14,
    out: 1 << 16,
};

thread_local! {
    /// Made once: it lives as long as the program.
    static RECORDINGS: &'static [Recording] = record();
}

fn record() -> &'static [Recording] {
    let keys: &'static Keys<'static, Toy> = Box::leak(Box::new(Keys::new(&Toy)));
    let limited = |kind: Kind| Kind {
        record_size_limit: Some(64),
        ..kind
    };
    let shapes = Kind::SHAPES.iter().map(|(_, kind)| *kind);
    let shapes = shapes.chain([limited(Kind::TLS13.mutual()), limited(Kind::TLS12.mutual())]);
    let recordings = shapes.map(|kind| {
        let stage = Stage::new(keys, kind);
        let ended = stage.handshake(&mut Whole, SEED);
        assert!(ended.client.is_closed && ended.server.is_closed, "{}", ended.summary());
        let suite = ended.client.session.suite().expect("a suite");
        Recording {
            by_client: units(&ended.to_server, suite),
            by_server: units(&ended.to_client, suite),
            stage,
        }
    });
    Vec::leak(recordings.collect())
}

/// Takes a stream apart.
fn units(stream: &[u8], suite: CipherSuite) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut rest = stream;
    let mut is_on = false;
    // A message over several records is one unit; its length is claimed by its header.
    let mut wanted = 0_usize;
    while let [kind, _, _, a, b, after @ ..] = rest {
        let (body, after) = after.split_at(usize::from(u16::from_be_bytes([*a, *b])));
        rest = after;
        let (kind, seal, mut content) = match (suite.version(), *kind) {
            (Version::Tls13, 23) => {
                let (kind, content) = body[..body.len() - TAG_BYTES].split_last().expect("a type");
                (*kind, Seal::Tls13, content)
            }
            (Version::Tls12, kind) if is_on => (kind, Seal::Tls12, &body[8..body.len() - TAG_BYTES]),
            (_, kind) => (kind, Seal::None, body),
        };
        is_on |= kind == 20;
        if kind != 22 {
            units.push(Unit {
                kind,
                seal,
                content: content.to_vec(),
            });
            continue;
        }
        while !content.is_empty() {
            if wanted == 0 {
                let header: [u8; 4] = content[..4].try_into().expect("headers are not cut here");
                wanted = 4 + u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
                units.push(Unit {
                    kind,
                    seal,
                    content: Vec::new(),
                });
            }
            let (now, later) = content.split_at(wanted.min(content.len()));
            units.last_mut().expect("pushed above").content.extend_from_slice(now);
            wanted -= now.len();
            content = later;
        }
    }
    units
}

/// The fuzzer's bytes, read one after the other; zeros when they are used up.
struct Choices<'d>(&'d [u8]);

impl<'d> Choices<'d> {
    fn byte(&mut self) -> usize {
        match self.0.split_first() {
            Some((byte, rest)) => {
                self.0 = rest;
                usize::from(*byte)
            }
            None => 0,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        let choice = if bound > 256 {
            self.byte() << 8 | self.byte()
        } else {
            self.byte()
        };
        choice % bound.max(1)
    }

    fn bytes(&mut self) -> &'d [u8] {
        let count = self.byte().min(self.0.len());
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes
    }
}

/// Changes what the peer says, as long as there are bytes that say how.
fn edit(units: &mut Vec<Unit>, choices: &mut Choices<'_>) {
    for _ in 0..1 + choices.below(8) {
        if units.is_empty() || choices.0.is_empty() {
            return;
        }
        let (at, what) = (choices.below(units.len()), choices.byte());
        let unit = &mut units[at];
        let place = choices.below(unit.content.len().max(1));
        match what % 12 {
            0 => unit
                .content
                .iter_mut()
                .skip(place)
                .take(1)
                .for_each(|byte| *byte = choices.byte() as u8),
            1 => {
                let bytes = choices.bytes();
                let place = place.min(unit.content.len());
                unit.content.splice(place..place, bytes.iter().copied());
            }
            2 => {
                let end = (place + 1 + choices.below(16)).min(unit.content.len());
                unit.content.drain(place.min(end)..end);
            }
            3 => {
                let bytes = choices.bytes();
                let end = (place + bytes.len()).min(unit.content.len());
                unit.content[place.min(end)..end].copy_from_slice(&bytes[..end - place.min(end)]);
            }
            4 => {
                let again = unit.clone();
                units.insert(at, again);
            }
            5 => drop(units.remove(at)),
            6 => {
                let other = choices.below(units.len());
                units.swap(at, other);
            }
            7 => unit.content = choices.bytes().to_vec(),
            8 => unit.kind = choices.byte() as u8,
            9 => {
                unit.seal = match choices.below(3) {
                    0 => Seal::None,
                    1 => Seal::Tls13,
                    _ => Seal::Tls12,
                }
            }
            10 => {
                let mut next = unit.clone();
                next.content = unit.content.split_off(place.min(unit.content.len()));
                units.insert(at + 1, next);
            }
            _ => {
                if at + 1 < units.len() {
                    let next = units.remove(at + 1);
                    units[at].content.extend(next.content);
                }
            }
        }
        // A message's length and its extensions' follow what was done to it, unless the length is to be wrong.
        if what & 0x80 == 0
            && let Some(unit) = units.get_mut(at)
            && unit.kind == 22
            && let Some((header, body)) = unit.content.split_first_chunk_mut::<4>()
        {
            let bytes = (body.len() as u32).to_be_bytes();
            header[1..].copy_from_slice(&bytes[1..]);
        }
    }
}

/// A unit as records: one, or as many as the sides agreed to need for it.
fn write(unit: &Unit, kind: Kind, stream: &mut Vec<u8>) {
    let most = match (unit.seal, kind.record_size_limit) {
        (Seal::None, _) | (_, None) => usize::MAX,
        (_, Some(limit)) => usize::from(limit) - 1,
    };
    let (first, mut rest) = unit.content.split_at(most.min(unit.content.len()));
    write_record(unit, first, stream);
    while !rest.is_empty() {
        let (next, later) = rest.split_at(most.min(rest.len()));
        write_record(unit, next, stream);
        rest = later;
    }
}

fn write_record(unit: &Unit, content: &[u8], stream: &mut Vec<u8>) {
    let mut body = Vec::new();
    if unit.seal == Seal::Tls12 {
        body.extend([0; 8]);
    }
    body.extend_from_slice(content);
    if unit.seal == Seal::Tls13 {
        body.push(unit.kind);
    }
    if unit.seal != Seal::None {
        body.extend([super::toy::BYTE; TAG_BYTES]);
    }
    let outside = if unit.seal == Seal::Tls13 { 23 } else { unit.kind };
    let bytes = (body.len() as u16).to_be_bytes();
    stream.extend([outside, 3, 3, bytes[0], bytes[1]]);
    stream.append(&mut body);
}

/// Runs a session of that role against what `data` makes of its peer. Nothing may panic, nor ever be our own fault; a session that has failed
/// stays failed, and says nothing more than its one alert.
///
/// Shape: the first byte chooses the conversation, the second how many bytes come at once, the third whether it is edited; then edits, and what is
/// left over is sent after everything else, as it is.
pub fn check(role: Role, data: &[u8]) -> Option<Cause> {
    let recordings = RECORDINGS.with(|recordings| *recordings);
    let mut choices = Choices(data);
    let recording = &recordings[choices.below(recordings.len())];
    let segment = 1 + choices.below(256) * 8;
    let mut units = match role {
        Role::Client => recording.by_server.clone(),
        Role::Server => recording.by_client.clone(),
    };
    if choices.byte() % 8 == 0 {
        units.truncate(choices.below(4));
    } else {
        edit(&mut units, &mut choices);
    }
    let mut stream = Vec::new();
    for unit in &units {
        write(unit, recording.stage.kind, &mut stream);
    }
    stream.extend_from_slice(choices.0);

    let (client, server) = (recording.stage.client(), recording.stage.server());
    let (mut side, setting) = match role {
        Role::Client => {
            let setting = Setting::new(&Toy, Config::Client(&client));
            (Side::client(&setting, SEED, ROOM).expect("a hello"), setting)
        }
        Role::Server => (
            Side::server(SEED ^ 0x5eed, ROOM),
            Setting::new(&Toy, Config::Server(&server)),
        ),
    };
    let mut sent = side.take_out().len();
    for bytes in stream.chunks(segment) {
        side.receive(&setting, bytes);
        sent += side.take_out().len();
        // Every answer is to something that came; nothing makes it grow without end.
        assert!(sent <= 4096 + 64 * stream.len(), "{sent} bytes for {}", stream.len());
        if side.cause.is_some() || side.is_closed {
            break;
        }
    }
    if let Some(cause) = side.cause {
        assert_ne!(cause, Cause::Internal, "a peer's bytes are never our fault");
        assert_eq!(side.session.cause(), Some(cause));
        side.input.clear();
        side.cause = None;
        side.receive(&setting, &[22, 3, 3, 0, 1, 0]);
        assert_eq!(side.cause, Some(cause), "failed is failed");
        assert!(side.take_out().is_empty(), "one alert is all");
    } else if side.is_connected {
        side.send(b"still at work").expect("what is connected can send");
        side.close();
        assert!(!side.take_out().is_empty());
    }
    side.cause
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StateId;
    use crate::testing::Seeded;

    /// Goal: what was recorded is understood when it is written again, so that edits start from something that works.
    #[test]
    fn unedited_conversations_come_to_their_end() {
        for recording in RECORDINGS.with(|recordings| *recordings) {
            let (client, server) = (recording.stage.client(), recording.stage.server());
            let client_setting = Setting::new(&Toy, Config::Client(&client));
            let server_setting = Setting::new(&Toy, Config::Server(&server));
            let sides = [
                (
                    Side::client(&client_setting, SEED, ROOM).unwrap(),
                    client_setting,
                    &recording.by_server,
                ),
                (Side::server(SEED ^ 0x5eed, ROOM), server_setting, &recording.by_client),
            ];
            for (mut side, setting, units) in sides {
                for unit in units {
                    let mut record = Vec::new();
                    write(unit, recording.stage.kind, &mut record);
                    side.receive(&setting, &record);
                }
                assert_eq!(side.cause, None, "{:?}", recording.stage.kind);
                assert_eq!(side.session.state_id(), StateId::Connected);
                assert!(side.is_closed && !side.data.is_empty());
            }
        }
    }

    /// Goal: the target itself works, and edits reach many ends. Method: random bytes, as many as take a second.
    #[test]
    fn random_edits() {
        for role in [Role::Client, Role::Server] {
            let mut random = Seeded::new(role as u64);
            let mut causes = std::collections::BTreeSet::new();
            for _ in 0..3000 {
                let mut data = [0; 48];
                crate::crypto::Random::fill(&mut random, &mut data).unwrap();
                let bytes = random.below(data.len());
                causes.extend(check(role, &data[..bytes]).map(Cause::id));
            }
            std::println!("{role:?}: {causes:?}");
            assert!(causes.len() > 8, "{role:?}: {causes:?}");
        }
    }
}
