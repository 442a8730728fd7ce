//! The shim of BoringSSL's test runner (`ssl/test/runner`, see its `PORTING.md`) over this engine.
//!
//! A TCP client in either role: it connects to `-port`, sends `-shim-id` as eight bytes, little endian, and plays the role that the flags give it.
//! Application data goes back with each byte XOR 0xff. Exit status: 0 when all went as expected, 89 for a flag, version, group or scheme that is
//! not implemented here (known before it connects), otherwise 1 with the cause on standard error, in the runner's words where one fits.

mod common;

#[path = "tls-shim/expect.rs"]
mod expect;
#[path = "tls-shim/flags.rs"]
mod flags;
#[path = "tls-shim/verify.rs"]
mod verify;
#[path = "tls-shim/words.rs"]
mod words;

use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use common::connection::{Connection, Got};
use common::{Chosen, pem};
use flags::{Flags, Setting};
use skerry_core::time::Timestamp;
use skerry_tls::alert::Alert;
use skerry_tls::cause::Cause;
use skerry_tls::certificate::ServerName;
use skerry_tls::config::{ClientAuth, ClientConfig, Config, Identity, ServerConfig};
use skerry_tls::crypto::Provider;
use skerry_tls::handshake::TicketKeys;
use skerry_tls::saved::SessionSlot;
use verify::Judge;

/// Longer than this it never runs.
const LIFE: Duration = Duration::from_millis(4800);
/// The status for what is not implemented.
const UNIMPLEMENTED: u8 = 89;
/// The largest ticket that a client keeps.
const TICKET_BYTES_MAX: usize = 1 << 16;

/// Why a connection did not go as expected.
pub enum Wrong {
    /// The engine ended it.
    Tls(Cause),
    /// Something that is asked for is not implemented. Nothing was connected.
    Unimplemented(String),
    /// The flags, the socket, a file, or an expectation of the runner's; in the runner's words where there are some.
    Other(String),
}

impl From<Cause> for Wrong {
    fn from(cause: Cause) -> Self {
        Self::Tls(cause)
    }
}

impl From<String> for Wrong {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|flag| flag == "-is-handshaker-supported") {
        println!("No");
        return ExitCode::SUCCESS;
    }
    std::thread::spawn(|| {
        std::thread::sleep(LIFE);
        eprintln!("out of time");
        std::process::exit(1);
    });
    let why = match run(&arguments) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Wrong::Unimplemented(what)) => {
            eprintln!("not implemented: {what}");
            return ExitCode::from(UNIMPLEMENTED);
        }
        Err(Wrong::Tls(cause)) => words::of(cause),
        Err(Wrong::Other(why)) => why,
    };
    eprintln!("{why}");
    ExitCode::FAILURE
}

fn run(arguments: &[String]) -> Result<(), Wrong> {
    let flags = &Flags::parse(arguments)?;
    let provider = common::provider(flags.provider)?;
    let settings = [&flags.initial, &flags.resume].map(|setting| Ready::new(&provider, setting, flags.is_server));
    let [initial, resumed] = settings;
    let (initial, resumed) = (initial?, resumed?);
    let tickets = common::tickets(&provider)?;
    let mut slots = [vec![0; TICKET_BYTES_MAX], vec![0; TICKET_BYTES_MAX]];
    let (mut resume, mut clock) = (Vec::new(), common::now());
    for number in 0..=flags.resume_count {
        let ready = if number == 0 { &initial } else { &resumed };
        let side = Side {
            flags,
            ready,
            setting: ready.setting,
            is_resumption: number > 0,
            provider: &provider,
            tickets: &tickets,
            resume: if ready.setting.tickets { &resume } else { &[] },
            clock,
        };
        if flags.is_server {
            side.serve()?;
        } else {
            if number > 0 && resume.is_empty() {
                return Err("no session to offer".to_owned().into());
            }
            let mut slot = SessionSlot::new(&mut slots[number % 2]);
            side.connect(&mut slot)?;
            resume = slot.bytes().to_vec();
        }
        clock.0 += ready.setting.resumption_delay.as_millis() as i64;
    }
    Ok(())
}

/// Certificates and key of one credential.
struct Credential {
    chain: Vec<Vec<u8>>,
    key: <Chosen as Provider>::SigningKey,
}

/// A setting whose files are read.
struct Ready<'a> {
    setting: &'a Setting,
    credentials: Vec<Credential>,
    judge: Judge,
}

impl<'a> Ready<'a> {
    fn new(provider: &Chosen, setting: &'a Setting, is_server: bool) -> Result<Self, Wrong> {
        let mut credentials = Vec::new();
        for files in &setting.credentials {
            if files.certificates.is_empty() || files.key.is_empty() {
                continue;
            }
            let key = provider.signing_key(&pem::private_key(&files.key)?);
            credentials.push(Credential {
                chain: pem::certificates(&files.certificates)?,
                key: key.map_err(|_| Wrong::Unimplemented(format!("the kind of {}", files.key)))?,
            });
        }
        Ok(Self {
            setting,
            credentials,
            judge: Judge::new(setting, is_server)?,
        })
    }
}

/// One connection to be.
struct Side<'a> {
    flags: &'a Flags,
    ready: &'a Ready<'a>,
    setting: &'a Setting,
    is_resumption: bool,
    provider: &'a Chosen,
    tickets: &'a TicketKeys<Chosen>,
    /// The session that a client offers.
    resume: &'a [u8],
    /// What the clock shows as long as it lasts.
    clock: Timestamp,
}

impl Side<'_> {
    fn serve(&self) -> Result<(), Wrong> {
        let setting = self.setting;
        let chains = chains(&self.ready.credentials);
        let identities = identities(&self.ready.credentials, &chains);
        let client_auth = match (setting.requires_client, setting.verifies_peer) {
            (true, _) => ClientAuth::Required,
            (false, true) => ClientAuth::Requested,
            (false, false) => ClientAuth::None,
        };
        let config = ServerConfig {
            versions: &setting.versions,
            groups: &setting.groups,
            schemes: &setting.signing,
            client_auth,
            client_schemes: &setting.verifying,
            verifier: Some(&self.ready.judge),
            tickets: setting.tickets.then_some(self.tickets),
            ..ServerConfig::new(&identities)
        };
        let mut connection = self.start(Config::Server(&config), None)?;
        let done = self.exchange(&mut connection);
        self.finish(connection, done)
    }

    fn connect(&self, slot: &mut SessionSlot<'_>) -> Result<(), Wrong> {
        let setting = self.setting;
        let chains = chains(&self.ready.credentials);
        let identities = identities(&self.ready.credentials, &chains);
        let config = ClientConfig {
            versions: &setting.versions,
            groups: &setting.groups,
            shares: &setting.shares,
            schemes: &setting.verifying,
            own_schemes: &setting.signing,
            identity: identities.first(),
            resume: self.resume,
            tickets: setting.tickets,
            ..ClientConfig::new(&self.ready.judge, setting.host_name.as_deref().map(ServerName::Dns))
        };
        let mut connection = self.start(Config::Client(&config), Some(slot))?;
        let done = self.exchange(&mut connection);
        self.finish(connection, done)?;
        expect::of_sessions(setting, slot)
    }

    fn start<'c>(
        &self,
        config: Config<'c, Chosen>,
        slot: Option<&'c mut SessionSlot<'_>>,
    ) -> Result<Connection<'c>, Wrong>
    where
        Self: 'c,
    {
        let port = self.flags.port;
        let address = match self.flags.is_ipv6 {
            true => SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
            false => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        };
        let stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
        let ready = stream.set_nodelay(true);
        let ready = ready.and_then(|()| (&stream).write_all(&self.flags.shim_id.to_le_bytes()));
        ready.map_err(|error| error.to_string())?;
        let keep = slot.map(|slot| slot as &mut dyn skerry_tls::saved::Keep);
        let mut connection = Connection::new(self.provider, config, keep, Some(self.clock), stream)?;
        if self.setting.is_async {
            connection.step_bytes(1);
        }
        Ok(connection)
    }

    /// The handshake and what follows, until either side has enough.
    fn exchange(&self, connection: &mut Connection<'_>) -> Result<(), Wrong> {
        let setting = self.setting;
        while connection.step()? != Got::Connected {}
        expect::of_handshake(setting, self.flags.is_server, self.is_resumption, connection)?;
        if self.is_resumption && setting.reverifies && setting.fails_verification {
            return Err(connection.fail(setting.verdict()).into());
        }
        if setting.sends_alert {
            let cause = connection.fail(Cause::RefusedHere(Alert::DecompressionFailure));
            return Err(cause.into());
        }
        for write in setting.first_writes() {
            connection.send(&write)?;
            connection.flush();
        }
        if !setting.shuts_down {
            self.echo(connection)?;
        }
        connection.close();
        connection.flush();
        match setting.checks_close_notify && setting.shuts_down {
            true => until_close_notify(connection),
            false => Ok(()),
        }
    }

    /// Sends back what comes, until the peer has enough.
    fn echo(&self, connection: &mut Connection<'_>) -> Result<(), Wrong> {
        let setting = self.setting;
        let mut is_reading = false;
        loop {
            if setting.updates_keys_before_reading && !is_reading {
                connection.update_keys()?;
            }
            is_reading = true;
            match connection.step()? {
                Got::Wait | Got::Progress | Got::Connected => {}
                Got::Data(mut data) => {
                    if setting.updates_keys {
                        connection.update_keys()?;
                    }
                    data.iter_mut().for_each(|byte| *byte ^= 0xff);
                    connection.send(&data)?;
                    is_reading = false;
                }
                Got::CloseNotify => return Ok(()),
                Got::End if setting.checks_close_notify => {
                    return Err("the stream ended without close_notify".to_owned().into());
                }
                Got::End => return Ok(()),
            }
        }
    }

    /// Says the last word, takes what the peer still sends, and lets the socket go.
    fn finish(&self, mut connection: Connection<'_>, done: Result<(), Wrong>) -> Result<(), Wrong> {
        connection.flush();
        connection.half_close();
        while connection.drain().is_some() {}
        done
    }
}

fn until_close_notify(connection: &mut Connection<'_>) -> Result<(), Wrong> {
    loop {
        match connection.step()? {
            Got::Wait | Got::Progress | Got::Connected => {}
            Got::CloseNotify => return Ok(()),
            Got::Data(_) => return Err(":APPLICATION_DATA_ON_SHUTDOWN:".to_owned().into()),
            Got::End => return Err("the stream ended without close_notify".to_owned().into()),
        }
    }
}

fn chains(credentials: &[Credential]) -> Vec<Vec<&[u8]>> {
    credentials
        .iter()
        .map(|credential| credential.chain.iter().map(Vec::as_slice).collect())
        .collect()
}

fn identities<'a>(credentials: &'a [Credential], chains: &'a [Vec<&'a [u8]>]) -> Vec<Identity<'a, Chosen>> {
    let identity = |(credential, chain): (&'a Credential, &'a Vec<&'a [u8]>)| Identity {
        chain,
        key: &credential.key,
    };
    credentials.iter().zip(chains).map(identity).collect()
}
