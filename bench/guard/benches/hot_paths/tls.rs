//! The engine's own work: records, and either side of a handshake, over primitives that do nothing.

use std::hint::black_box;

use gungraun::prelude::*;
use skerry_tls::config::Config;
use skerry_tls::crypto::AeadAlgorithm;
use skerry_tls::record::{ContentType, ReadHalf, TrafficKeys, WriteHalf};
use skerry_tls::testing::{Keys, Kind, Room, Setting, Side, Stage, Toy};

use crate::held::held;

const KIB16: usize = 16 << 10;
const CONTENT: ContentType = ContentType::ApplicationData;

/// A record being sealed, and opened.
pub struct Record {
    write: WriteHalf<Toy>,
    read: ReadHalf<Toy>,
    /// With room before and after `bytes` of content.
    slot: Vec<u8>,
    bytes: usize,
    out: Vec<u8>,
}

fn keys() -> TrafficKeys<Toy> {
    TrafficKeys::tls13(&Toy, AeadAlgorithm::Aes128Gcm, &[7; 16], [7; 12]).expect("keys")
}

fn plain(bytes: usize) -> Record {
    let mut record = Record {
        write: WriteHalf::plain(),
        read: ReadHalf::plain(),
        slot: Vec::new(),
        bytes,
        out: vec![0; bytes + 64],
    };
    record.write.install(keys());
    record.read.install(keys());
    let (before, after) = record.write.overhead();
    record.slot = vec![7; before + bytes + after];
    record
}

fn sealed(bytes: usize) -> Record {
    let mut record = plain(bytes);
    record.write.seal(CONTENT, &mut record.slot, bytes).expect("a record");
    record
}

#[library_benchmark]
#[bench::b64(args = (64), setup = plain, config = held("seal/b64"))]
#[bench::kib16(args = (KIB16), setup = plain, config = held("seal/kib16"))]
fn seal(mut record: Record) -> Record {
    let sealed = record.write.seal(CONTENT, black_box(&mut record.slot), record.bytes);
    black_box(sealed).expect("a record");
    record
}

#[library_benchmark]
#[bench::b64(args = (64), setup = sealed, config = held("open/b64"))]
#[bench::kib16(args = (KIB16), setup = sealed, config = held("open/kib16"))]
fn open(mut record: Record) -> Record {
    black_box(record.read.peek(&record.slot)).expect("a record");
    let opened = record.read.open(black_box(&mut record.slot)).expect("a record");
    black_box(opened.content);
    record
}

#[library_benchmark]
#[bench::b64(args = (64), setup = sealed, config = held("open_into/b64"))]
#[bench::kib16(args = (KIB16), setup = sealed, config = held("open_into/kib16"))]
fn open_into(mut record: Record) -> Record {
    black_box(record.read.peek(&record.slot)).expect("a record");
    let opened = record.read.open_into(black_box(&record.slot), &mut record.out);
    black_box(opened.expect("a record").content);
    record
}

/// One side of a handshake whose other side was recorded.
pub struct Replay {
    side: Side<Toy>,
    setting: Setting<'static, Toy>,
    /// What the other side sends, a flight after the other.
    flights: Vec<Vec<u8>>,
}

const SEED: u64 = 9;
const ROOM: Room = Room {
    message: 16 << 10,
    scratch: 20 << 10,
    out: 64 << 10,
};

/// Both sides of a handshake of that kind, each to be done again.
fn both(kind: Kind) -> [Replay; 2] {
    let keys: &'static Keys<'static, Toy> = Box::leak(Box::new(Keys::new(&Toy)));
    let stage: &'static Stage<'static, 'static, Toy> = Box::leak(Box::new(Stage::new(keys, kind)));
    let client_setting = || Setting::new(&Toy, Config::Client(Box::leak(Box::new(stage.client()))));
    let server_setting = || Setting::new(&Toy, Config::Server(Box::leak(Box::new(stage.server()))));
    let begin = || Side::client(&client_setting(), SEED, ROOM).expect("a hello");
    let (mut client, mut server) = (begin(), Side::server(SEED, ROOM));
    let (mut by_client, mut by_server) = (Vec::new(), Vec::new());
    loop {
        let flight = client.take_out();
        if flight.is_empty() {
            break;
        }
        server.receive(&server_setting(), &flight);
        by_client.push(flight);
        let flight = server.take_out();
        client.receive(&client_setting(), &flight);
        by_server.push(flight);
    }
    assert!(
        client.is_connected && server.is_connected,
        "{kind:?}: {:?}",
        server.cause
    );
    let mut again = begin();
    again.take_out();
    [
        Replay {
            side: again,
            setting: client_setting(),
            flights: by_server,
        },
        Replay {
            side: Side::server(SEED, ROOM),
            setting: server_setting(),
            flights: by_client,
        },
    ]
}

fn as_client(kind: Kind) -> Replay {
    let [client, _] = both(kind);
    client
}

fn as_server(kind: Kind) -> Replay {
    let [_, server] = both(kind);
    server
}

impl Replay {
    fn run(mut self) -> Self {
        for flight in &self.flights {
            self.side.receive(&self.setting, flight);
            black_box(self.side.take_out());
        }
        assert!(self.side.is_connected);
        self
    }
}

#[library_benchmark]
#[bench::tls13_full(args = (Kind::TLS13), setup = as_server, config = held("server/tls13_full"))]
#[bench::tls13_resumed(args = (Kind::TLS13.resumed()), setup = as_server, config = held("server/tls13_resumed"))]
#[bench::tls13_mutual(args = (Kind::TLS13.mutual()), setup = as_server, config = held("server/tls13_mutual"))]
#[bench::tls12_full(args = (Kind::TLS12), setup = as_server, config = held("server/tls12_full"))]
#[bench::tls12_resumed(args = (Kind::TLS12.resumed()), setup = as_server, config = held("server/tls12_resumed"))]
fn server(replay: Replay) -> Replay {
    black_box(replay).run()
}

#[library_benchmark]
#[bench::tls13_full(args = (Kind::TLS13), setup = as_client, config = held("client/tls13_full"))]
#[bench::tls12_full(args = (Kind::TLS12), setup = as_client, config = held("client/tls12_full"))]
fn client(replay: Replay) -> Replay {
    black_box(replay).run()
}
