//! The TLS engine allocates nothing: not in a handshake, not for data, not when it ends.
//!
//! A provider's allocations are its own: the provider of constants makes none, so that with it whole connections are counted; with the
//! others, data records, for which none may allocate, C libraries included. The counting is done by a preloaded C library, so this program
//! runs itself again under it.
#![forbid(unsafe_code)]

use std::process::Command;

use skerry_core::meter::Ticks;
use skerry_tests::preload::AllocationCount;
use skerry_tests::process::TempDir;
use skerry_tls::cause::Cause;
use skerry_tls::config::Config;
use skerry_tls::crypto::Provider;
use skerry_tls::crypto::fast::Fast;
use skerry_tls::notes::Notes;
use skerry_tls::saved::{Keep, SAVED_OVERHEAD_BYTES, SessionSlot};
use skerry_tls::session::{Context, Event, Out, Reassembly, Session};
use skerry_tls::testing::{Keys, Kind, NOW, PING, PONG, Seeded, Stage, Toy};

/// A session and its buffers, none of which ever grows.
struct End<P: Provider> {
    session: Session<P>,
    buffers: Buffers,
}

struct Buffers {
    message: Box<[u8]>,
    message_bytes: usize,
    scratch: Box<[u8]>,
    out: Box<[u8]>,
    out_bytes: usize,
    input: Box<[u8]>,
    input_bytes: usize,
    data: Box<[u8]>,
    data_bytes: usize,
    notes: Notes,
    random: Seeded,
}

impl Buffers {
    fn new(seed: u64) -> Self {
        let bytes = || vec![0; 1 << 16].into_boxed_slice();
        Self {
            message: bytes(),
            message_bytes: 0,
            scratch: bytes(),
            out: bytes(),
            out_bytes: 0,
            input: bytes(),
            input_bytes: 0,
            data: bytes(),
            data_bytes: 0,
            notes: Notes::default(),
            random: Seeded::new(seed),
        }
    }

    fn lend<P: Provider, T>(
        &mut self,
        provider: &P,
        config: Config<'_, P>,
        keep: Option<&mut dyn Keep>,
        call: impl FnOnce(&mut Context<'_, P>, &mut [u8], &mut usize) -> T,
    ) -> T {
        let mut cx = Context {
            provider,
            random: &mut self.random,
            now: NOW,
            ticks: &|| Ticks(0),
            config,
            message: Reassembly::new(&mut self.message, &mut self.message_bytes),
            scratch: &mut self.scratch,
            out: Out::new(&mut self.out, &mut self.out_bytes),
            notes: &mut self.notes,
            keep: match keep {
                Some(keep) => Some(keep),
                None => None,
            },
        };
        let input = &mut self.input[..self.input_bytes];
        call(&mut cx, input, &mut self.data_bytes)
    }
}

impl<P: Provider> End<P> {
    /// Takes every whole record that came. Data goes to `data`.
    fn take(&mut self, provider: &P, config: Config<'_, P>, mut keep: Option<&mut dyn Keep>) -> Result<(), Cause> {
        let (session, buffers) = (&mut self.session, &mut self.buffers);
        loop {
            let mut data = std::mem::take(&mut buffers.data);
            let keep = keep.as_mut().map(|keep| &mut **keep as &mut dyn Keep);
            let consumed = buffers.lend(provider, config, keep, |cx, input, data_bytes| {
                let received = session.receive(cx, input)?;
                if let Event::Data(bytes) = received.event {
                    data[*data_bytes..][..bytes.len()].copy_from_slice(bytes);
                    *data_bytes += bytes.len();
                }
                Ok::<_, Cause>(received.consumed)
            });
            buffers.data = data;
            match consumed? {
                0 => return Ok(()),
                bytes => {
                    buffers.input.copy_within(bytes..buffers.input_bytes, 0);
                    buffers.input_bytes -= bytes;
                }
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Cause> {
        let (before, _) = self.session.overhead();
        let slot = &mut self.buffers.out[self.buffers.out_bytes..];
        slot[before..before + bytes.len()].copy_from_slice(bytes);
        self.buffers.out_bytes += self.session.seal(slot, bytes.len())?;
        Ok(())
    }
}

/// What one side sent is before the other.
fn pass(from: &mut Buffers, to: &mut Buffers) -> bool {
    let bytes = std::mem::take(&mut from.out_bytes);
    to.input[to.input_bytes..][..bytes].copy_from_slice(&from.out[..bytes]);
    to.input_bytes += bytes;
    bytes > 0
}

/// Allocations of a handshake, and of the data and the closes after it.
fn counted<P: Provider>(stage: &Stage<'_, '_, P>, provider: &P, count: &AllocationCount) -> (u64, u64) {
    let allocations = || count.allocations().expect("a count");
    let (client_config, server_config) = (stage.client(), stage.server());
    let (client_config, server_config) = (Config::Client(&client_config), Config::Server(&server_config));
    let mut bytes = vec![0; SAVED_OVERHEAD_BYTES + 2048];
    let mut slot = SessionSlot::new(&mut bytes);
    let (mut client_buffers, server_buffers) = (Buffers::new(1), Buffers::new(2));

    let start = allocations();
    let session = client_buffers.lend(provider, client_config, None, |cx, _, _| Session::client(cx));
    let mut client = End {
        session: session.expect("a hello"),
        buffers: client_buffers,
    };
    let mut server = End {
        session: Session::server(),
        buffers: server_buffers,
    };
    let mut run = |client: &mut End<P>, server: &mut End<P>| {
        while pass(&mut client.buffers, &mut server.buffers) | pass(&mut server.buffers, &mut client.buffers) {
            server.take(provider, server_config, None).expect("the server goes on");
            client
                .take(provider, client_config, Some(&mut slot))
                .expect("the client goes on");
        }
    };
    run(&mut client, &mut server);
    let connected = allocations();
    for _ in 0..10 {
        client.send(PING).expect("room");
        run(&mut client, &mut server);
        server.send(PONG).expect("room");
        run(&mut client, &mut server);
    }
    client
        .session
        .close(&mut Out::new(&mut client.buffers.out, &mut client.buffers.out_bytes));
    run(&mut client, &mut server);
    server
        .session
        .close(&mut Out::new(&mut server.buffers.out, &mut server.buffers.out_bytes));
    run(&mut client, &mut server);
    let done = allocations();

    assert_eq!(server.buffers.data[..server.buffers.data_bytes], PING.repeat(10));
    assert_eq!(client.buffers.data[..client.buffers.data_bytes], PONG.repeat(10));
    (connected - start, done - connected)
}

/// Where the child finds its count.
const DIRECTORY: &str = "SKERRY_COUNT_DIRECTORY";

/// Goal: no allocation of our own, ever; and none of anybody's for data. Method: every shape of handshake, ten requests and answers, and both
/// closes, in a process of its own that does nothing else.
#[test]
fn connections_allocate_nothing() {
    let directory = TempDir::new();
    let count = AllocationCount::build(directory.path()).expect("the counter is built");
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"]);
    child.env(DIRECTORY, directory.path());
    let output = count.watch(&mut child).output().expect("this program runs again");
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "the child did its part");
    assert!(count.allocations().expect("a count") > 0, "the counter counts");
}

/// What runs under the counter.
#[test]
#[ignore = "runs as the child of the test above"]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let count = AllocationCount::join(directory.as_ref()).expect("a count");
    let keys = Keys::new(&Toy);
    for (name, kind) in Kind::SHAPES {
        let stage = Stage::new(&keys, *kind);
        assert_eq!(counted(&stage, &Toy, &count), (0, 0), "{name}");
    }
    let keys = Keys::new(&Fast);
    for (name, kind) in Kind::SHAPES {
        let stage = Stage::new(&keys, *kind);
        let (handshake, data) = counted(&stage, &Fast, &count);
        println!("{name}: {handshake} allocations of the fast provider's in a handshake");
        assert_eq!(data, 0, "{name}");
    }
}
