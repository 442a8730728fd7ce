//! What the runner expects of a connection beside that it succeeds.

use skerry_tls::saved::SessionSlot;

use super::Wrong;
use super::common::connection::Connection;
use super::flags::Setting;

/// Right after the handshake.
pub fn of_handshake(
    setting: &Setting,
    is_server: bool,
    is_resumption: bool,
    connection: &Connection<'_>,
) -> Result<(), Wrong> {
    let expects = &setting.expects;
    let agreed = connection.session.agreed();
    let is = |what: &str, holds: bool| {
        if holds {
            Ok(())
        } else {
            Err(Wrong::Other(format!("unexpected {what}")))
        }
    };
    let number = |what: &str, wanted: Option<u16>, got: Option<u16>| is(what, wanted.is_none() || wanted == got);
    // What a resumed session was agreed on in its first handshake is not kept.
    let kept = |wanted: Option<u16>, got: Option<u16>| wanted.filter(|_| !agreed.resumed || got.is_some());

    is("resumption", agreed.resumed == (is_resumption && !expects.session_miss))?;
    number("version", expects.version, agreed.version.map(|version| version.wire()))?;
    number("suite", expects.suite, agreed.suite.map(|suite| suite as u16))?;
    let group = agreed.group.map(|group| group as u16);
    number("group", kept(expects.group, group), group)?;
    let scheme = agreed.peer_scheme.map(|scheme| scheme as u16);
    number("scheme", kept(expects.peer_scheme, scheme), scheme)?;
    is("retry", expects.retry.is_none_or(|retry| retry == agreed.retried))?;
    is(
        "master secret",
        !expects.extended_master_secret || agreed.extended_master_secret,
    )?;
    is("certificate", !expects.no_peer || agreed.peer.is_none())?;
    if is_server {
        let name = connection.session.server_name();
        is(
            "server name",
            expects.server_name.is_none() || expects.server_name.as_deref() == name,
        )?;
        is("server name", !expects.no_server_name || name.is_none())?;
        let offered = &connection.notes.offered.schemes;
        let wanted = &expects.offered_schemes;
        is("schemes", wanted.is_empty() || offered.as_slice() == wanted.as_slice())?;
    }
    Ok(())
}

/// When a client's connection is over.
pub fn of_sessions(setting: &Setting, slot: &SessionSlot<'_>) -> Result<(), Wrong> {
    let has_session = !slot.bytes().is_empty();
    if setting.expects.no_session && has_session {
        return Err("an unexpected session".to_owned().into());
    }
    if setting.expects.ticket_renewal && !has_session {
        return Err("no new ticket".to_owned().into());
    }
    Ok(())
}
