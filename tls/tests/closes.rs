//! Ends at every point of a conversation: whoever stops, and however, both sides come to rest, and say why.

use skerry_tls::alert::Alert;
use skerry_tls::cause::Cause;
use skerry_tls::config::Config;
use skerry_tls::crypto::Provider;
use skerry_tls::state::StateId;
use skerry_tls::testing::{Direction, Keys, Kind, Pair, Setting, Side, Stage, Toy};

/// How a side stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// A close_notify, in its place or not.
    CloseNotify,
    /// A user_canceled, and the close_notify that belongs to it (RFC 8446 §6.1): its deadline passed.
    Timeout,
    /// A fatal alert.
    Fails,
    /// Nothing at all: its connection is gone.
    Gone,
}

/// Passes single records until `left` of them have. Gives what each side has sent that has not passed, or `None` when the conversation was
/// over before.
fn run<P: Provider>(pair: &mut Pair<'_, P>, mut left: usize) -> Option<[Vec<u8>; 2]> {
    let mut waiting: [Vec<u8>; 2] = [Vec::new(), Vec::new()];
    loop {
        waiting[0].extend(pair.client.take_out());
        waiting[1].extend(pair.server.take_out());
        let way = (0..2).find(|way| !waiting[*way].is_empty())?;
        if left == 0 {
            return Some(waiting);
        }
        left -= 1;
        let bytes = 5 + usize::from(u16::from_be_bytes([waiting[way][3], waiting[way][4]]));
        let record: Vec<u8> = waiting[way].drain(..bytes).collect();
        match way {
            0 => pair.server.receive(&pair.server_setting, &record),
            _ => pair.client.receive(&pair.client_setting, &record),
        }
    }
}

/// Whether a side has come to rest, and stays there whatever comes.
fn rests<P: Provider>(side: &mut Side<P>, setting: &Setting<'_, P>, what: &str) {
    let cause = side.session.cause();
    assert!(cause.is_some() || side.is_closed, "goes on: {what}");
    side.take_out();
    side.cause = None;
    side.input.clear();
    side.receive(setting, &[22, 3, 3, 0, 4, 1, 0, 0, 0]);
    assert_eq!(side.session.cause(), cause, "{what}");
    assert!(side.take_out().is_empty(), "still talks: {what}");
}

/// Goal: no way of stopping leaves a side that waits for ever, or that says more than one alert. Method: every shape of handshake, stopped
/// after each record by either side in each way; the other side gets what that says, then the end of the stream.
#[test]
fn every_end_at_every_point() {
    let keys = Keys::new(&Toy);
    let mut count = 0;
    for (name, kind) in Kind::SHAPES {
        let stage = Stage::new(&keys, *kind);
        let (client, server) = (stage.client(), stage.server());
        for stop in [Stop::CloseNotify, Stop::Timeout, Stop::Fails, Stop::Gone] {
            for stops in [Direction::ToServer, Direction::ToClient] {
                for records in 0.. {
                    let setting = |config| Setting::new(&Toy, config);
                    let mut pair = Pair::new(setting(Config::Client(&client)), setting(Config::Server(&server)), 5);
                    let waiting = run(&mut pair, records);
                    let is_over = waiting.is_none();
                    let [by_client, by_server] = waiting.unwrap_or_default();
                    let (one, other, other_setting, before) = match stops {
                        Direction::ToServer => (&mut pair.client, &mut pair.server, &pair.server_setting, by_client),
                        Direction::ToClient => (&mut pair.server, &mut pair.client, &pair.client_setting, by_server),
                    };
                    let what = format!("{name}, {stops:?} {stop:?} after {records}");
                    assert_eq!(one.cause, None, "{what}");
                    // What it had sent comes before its last word.
                    other.receive(other_setting, &before);
                    assert_eq!(other.cause, None, "{what}");
                    let was = other.session.state_id();
                    match stop {
                        Stop::CloseNotify => one.close(),
                        Stop::Timeout => {
                            let state = one.session.state_id();
                            one.fail(Cause::Timeout(state));
                        }
                        Stop::Fails => one.fail(Cause::UnknownCa),
                        Stop::Gone => {}
                    }
                    let is_connected = one.is_connected;
                    let last = one.take_out();
                    assert!(last.len() <= 64, "one alert at most: {what}");
                    assert!(
                        last.is_empty() || last[1..3] == [3, 3],
                        "only a first hello has another version: {what}"
                    );
                    other.receive(other_setting, &last);
                    let heard = (other.session.cause(), other.is_closed);
                    match stop {
                        Stop::Gone => assert_eq!(heard, (None, false), "{what}"),
                        Stop::CloseNotify if was == StateId::Connected && is_connected => {
                            assert_eq!(heard, (None, true), "{what}");
                        }
                        // A TLS 1.3 server may speak to a connected client before it has heard its Finished.
                        _ if heard == (None, true) => assert_eq!(was, StateId::Connected, "{what}"),
                        Stop::Fails if was == StateId::Connected && is_connected => {
                            assert_eq!(heard, (Some(Cause::PeerAlert(Alert::UnknownCa)), false), "{what}");
                        }
                        _ => assert!(heard.0.is_some_and(is_an_end), "{heard:?} {what}"),
                    }
                    if heard == (None, false) {
                        other.take_out();
                        other.fail(Cause::Closed(was));
                        assert!(other.take_out().is_empty(), "nobody is there to be told: {what}");
                    }
                    rests(other, other_setting, &what);
                    count += 1;
                    if is_over {
                        break;
                    }
                }
            }
        }
    }
    println!("{count} ends");
}

/// What a side says of a peer that stopped within the handshake: that it did, or that its word came with keys that are not on yet.
fn is_an_end(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::PeerAlert(Alert::CloseNotify | Alert::UserCanceled | Alert::UnknownCa)
            | Cause::Closed(_)
            | Cause::Unprotected
            | Cause::BadRecordMac
    )
}
