//! What a server makes of a ClientHello: version, suite, group, identity and scheme, by our order of preference.

use super::{Input, State, Turn, server12, server13};
use crate::cause::Cause;
use crate::config::{Identity, ServerConfig};
use crate::crypto::{KeyKind, Provider, SigningKey};
use crate::handshake::proof;
use crate::message::{ClientHello, ExtensionType, KeyShares, U16List};
use crate::meter::Phase;
use crate::notes::Offered;
use crate::state::StateId;
use crate::suite::{Authentication, CipherSuite, Group, SignatureScheme, Version};

/// Server: nothing has come yet.
#[derive(Debug)]
pub struct AwaitClientHello;

impl AwaitClientHello {
    /// The hello decides which machine goes on.
    pub fn on<P: Provider>(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let message = input.expect(ClientHello::KIND.wire(), StateId::AwaitClientHello)?;
        let hello = ClientHello::decode(message.body)?;
        note(turn.offered, &hello);
        turn.agreed.server_name = hello.server_name.and_then(legal_name);
        let version = version(turn.server()?, &hello)?;
        turn.agreed.version = Some(version);
        turn.meter.charge(Phase::Parse);
        match version {
            Version::Tls13 => server13::begin(turn, &hello, message),
            Version::Tls12 => server12::begin(turn, &hello, message),
        }
    }
}

/// Keeps what was offered for the log.
fn note(offered: &mut Offered, hello: &ClientHello<'_>) {
    fn fill<const N: usize>(kept: &mut heapless::Vec<u16, N>, list: Option<U16List<'_>>) {
        kept.clear();
        kept.extend(list.iter().flat_map(U16List::iter).take(N));
    }
    fill(&mut offered.suites, Some(hello.suites));
    fill(&mut offered.groups, hello.supported_groups);
    fill(&mut offered.schemes, hello.signature_algorithms);
    fill(&mut offered.versions, hello.supported_versions);
    if hello.supported_versions.is_none() {
        let _ = offered.versions.push(hello.legacy_version);
    }
    let has_ticket = hello.session_ticket.is_some_and(|ticket| !ticket.is_empty());
    offered.resumption = has_ticket || hello.pre_shared_key.is_some();
}

/// A name that may be one: letters, digits, hyphens, dots, and the underscores of container set-ups. Anything else is no error and no name.
fn legal_name<const N: usize>(name: &[u8]) -> Option<heapless::String<N>> {
    let is_legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    let name = core::str::from_utf8(name)
        .ok()
        .filter(|name| name.as_bytes().iter().all(is_legal))?;
    heapless::String::try_from(name).ok()
}

/// The best version of both sides.
///
/// Errors: [`Cause::NoCommonVersion`]; [`Cause::InappropriateFallback`] for a client that came back with less than our best, even less
/// than is spoken here (RFC 7507 §3).
fn version<P: Provider>(config: &ServerConfig<'_, P>, hello: &ClientHello<'_>) -> Result<Version, Cause> {
    const SSL_30: u16 = 0x0300;
    let has = |version: Version| config.versions.contains(&version);
    let none = Cause::NoCommonVersion(
        hello
            .supported_versions
            .and_then(|versions| versions.iter().filter(|version| !is_grease(*version)).max())
            .unwrap_or(hello.legacy_version),
    );
    // RFC 8446 §D.5: whoever names SSL 3.0 there is refused, whatever else is said.
    if hello.legacy_version <= SSL_30 {
        return Err(none);
    }
    let ours = [Version::Tls13, Version::Tls12]
        .into_iter()
        .filter(|version| has(*version));
    let offered = |version: &Version| hello.offers_version(version.wire());
    if hello.is_fallback() && !ours.clone().take(1).all(|best| offered(&best)) {
        return Err(Cause::InappropriateFallback);
    }
    ours.into_iter().find(offered).ok_or(none)
}

/// Numbers that are there to be passed over (RFC 8701).
const fn is_grease(value: u16) -> bool {
    let [high, low] = value.to_be_bytes();
    high == low && low & 0x0f == 0x0a
}

/// What TLS 1.3 is agreed on, signatures aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms13<'m> {
    /// The suite.
    pub suite: CipherSuite,
    /// The group.
    pub group: Group,
    /// The client's share of it; without one the client must be asked.
    pub share: Option<&'m [u8]>,
}

/// Shares that are compared with the client's groups; nobody sends as many. Later ones are not used.
const SHARES_MAX: usize = 16;

impl<'m> Terms13<'m> {
    /// Chooses. A group that needs no second hello comes before one that we like better.
    ///
    /// Errors, as RFC 8446 §4.1.1, §4.1.2 and §9.2 have them: [`Cause::IllegalParameter`] for compression, and for a share of a group that is
    /// not offered; [`Cause::MissingExtension`]; [`Cause::NoCommonSuite`]; [`Cause::NoCommonGroup`].
    pub fn choose<P: Provider>(config: &ServerConfig<'_, P>, hello: &ClientHello<'m>) -> Result<Self, Cause> {
        let illegal = Cause::IllegalParameter(ClientHello::KIND.wire());
        if hello.compression != [0] {
            return Err(illegal);
        }
        if hello.pre_shared_key.is_some() && hello.psk_key_exchange_modes.is_none() {
            return Err(missing(ExtensionType::PskKeyExchangeModes));
        }
        // A client that wants a PSK without a key exchange is not served either: it gets no further than this.
        let groups = hello.supported_groups.ok_or(missing(ExtensionType::SupportedGroups))?;
        let shares: KeyShares<'m> = hello.key_share.ok_or(missing(ExtensionType::KeyShare))?;
        if hello.signature_algorithms.is_none() && hello.pre_shared_key.is_none() {
            return Err(missing(ExtensionType::SignatureAlgorithms));
        }
        let suite = config
            .suites
            .iter()
            .copied()
            .find(|suite| suite.version() == Version::Tls13 && hello.suites.contains(*suite as u16))
            .ok_or(Cause::NoCommonSuite)?;
        if !shares.iter().take(SHARES_MAX).all(|share| groups.contains(share.group)) {
            return Err(illegal);
        }
        let common = || {
            config
                .groups
                .iter()
                .copied()
                .filter(|group| groups.contains(*group as u16))
        };
        let share_of = |group: Group| {
            let shares = shares.iter().take(SHARES_MAX);
            shares
                .into_iter()
                .find(|share| share.group == group as u16)
                .map(|share| share.share)
        };
        let (group, share) = common()
            .find_map(|group| Some((group, Some(share_of(group)?))))
            .or_else(|| Some((common().next()?, None)))
            .ok_or(Cause::NoCommonGroup)?;
        Ok(Self { suite, group, share })
    }
}

pub(super) const fn missing(extension: ExtensionType) -> Cause {
    Cause::MissingExtension(extension.wire())
}

/// Who signs for us, and how: the first identity that the client can use.
///
/// Errors: [`Cause::NoCommonScheme`].
pub(super) fn signer_13<'a, P: Provider>(
    config: &ServerConfig<'a, P>,
    schemes: U16List<'_>,
) -> Result<(&'a Identity<'a, P>, SignatureScheme), Cause> {
    config
        .identities
        .iter()
        .find_map(|identity| {
            let scheme = proof::choose(config.schemes, identity.key.kind(), Version::Tls13, schemes)?;
            Some((identity, scheme))
        })
        .ok_or(Cause::NoCommonScheme)
}

/// What TLS 1.2 is agreed on.
pub struct Terms12<'a, P: Provider> {
    /// The suite.
    pub suite: CipherSuite,
    /// The group.
    pub group: Group,
    /// Who signs.
    pub identity: &'a Identity<'a, P>,
    /// How.
    pub scheme: SignatureScheme,
}

impl<'a, P: Provider> Terms12<'a, P> {
    /// Chooses a suite together with what it needs: an identity of its kind that has a scheme in common with the client and, for ECDSA, a
    /// curve that the client lists (RFC 8422 §5.1). A client that lists no groups takes any (§4): it gets P-256.
    ///
    /// Errors: [`Cause::IllegalParameter`] for a list of point formats without the uncompressed one (RFC 8422 §5.1.2); of
    /// [`Cause::NoCommonGroup`], [`Cause::NoCommonSuite`] and [`Cause::NoCommonScheme`] the first that is true. A client that lists no
    /// schemes means SHA-1 (RFC 5246 §7.4.1.4.1), which nobody signs with here.
    pub fn choose(config: &ServerConfig<'a, P>, hello: &ClientHello<'_>) -> Result<Self, Cause> {
        const UNCOMPRESSED: u8 = 0;
        if hello
            .ec_point_formats
            .is_some_and(|formats| !formats.contains(&UNCOMPRESSED))
        {
            return Err(Cause::IllegalParameter(ClientHello::KIND.wire()));
        }
        let offers = |group: Group| match hello.supported_groups {
            Some(groups) => groups.contains(group as u16),
            None => group == Group::Secp256r1,
        };
        let group = config
            .groups
            .iter()
            .copied()
            .find(|group| offers(*group))
            .ok_or(Cause::NoCommonGroup)?;
        let mut suites = config
            .suites
            .iter()
            .copied()
            .filter(|suite| suite.version() == Version::Tls12 && hello.suites.contains(*suite as u16))
            .peekable();
        suites.peek().ok_or(Cause::NoCommonSuite)?;
        let schemes = hello.signature_algorithms.ok_or(Cause::NoCommonScheme)?;
        let mut lacks = Cause::NoCommonSuite;
        for suite in suites {
            for identity in config.identities {
                let kind = identity.key.kind();
                if !suits(suite.authentication(), kind) || !lists_curve(hello, kind) {
                    continue;
                }
                match proof::choose(config.schemes, kind, Version::Tls12, schemes) {
                    Some(scheme) => {
                        return Ok(Self {
                            suite,
                            group,
                            identity,
                            scheme,
                        });
                    }
                    None => lacks = Cause::NoCommonScheme,
                }
            }
        }
        Err(lacks)
    }
}

const fn suits(authentication: Authentication, kind: KeyKind) -> bool {
    matches!(
        (authentication, kind),
        (Authentication::Ecdsa, KeyKind::P256 | KeyKind::P384) | (Authentication::Rsa, KeyKind::Rsa(_))
    )
}

/// Whether the client can check a signature of that curve.
fn lists_curve(hello: &ClientHello<'_>, kind: KeyKind) -> bool {
    const SECP384R1: u16 = 0x0018;
    let curve = match kind {
        KeyKind::P256 => Group::Secp256r1 as u16,
        KeyKind::P384 => SECP384R1,
        KeyKind::Rsa(_) => return true,
    };
    hello.supported_groups.is_none_or(|groups| groups.contains(curve))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::testing::{Toy, ToyKey};

    #[test]
    fn names_are_names_or_nothing() {
        let name = |bytes: &[u8]| legal_name::<255>(bytes);
        for legal in ["broker.example", "kafka_1", "a-b.C", "127.0.0.1"] {
            assert_eq!(name(legal.as_bytes()).as_deref(), Some(legal));
        }
        for not in [&b"a b"[..], b"a\0", b"\xff\xfe", b"a\n", "ä".as_bytes(), &[b'a'; 256]] {
            assert_eq!(name(not), None);
        }
    }

    fn wire(list: &[u16]) -> Vec<[u8; 2]> {
        list.iter().map(|value| value.to_be_bytes()).collect()
    }

    /// What TLS 1.2 is agreed on with a client that lists this: suite, the signing key, scheme.
    fn choose_12(
        suites: &[u16],
        groups: Option<&[u16]>,
        schemes: Option<&[u16]>,
        formats: Option<&[u8]>,
    ) -> Result<(u16, KeyKind, u16), Cause> {
        let keys = [KeyKind::P384, KeyKind::P256, KeyKind::Rsa(2048)].map(ToyKey);
        let identities = keys.each_ref().map(|key| Identity { chain: &[], key });
        let config = ServerConfig::<Toy>::new(&identities);
        let (suites, groups, schemes) = (wire(suites), groups.map(wire), schemes.map(wire));
        let hello = ClientHello {
            supported_groups: groups.as_deref().map(U16List::new),
            signature_algorithms: schemes.as_deref().map(U16List::new),
            ec_point_formats: formats,
            ..ClientHello::bare(0x0303, &[0; 32], &[], U16List::new(&suites))
        };
        Terms12::choose(&config, &hello)
            .map(|terms| (terms.suite as u16, terms.identity.key.kind(), terms.scheme as u16))
    }

    const ECDSA: u16 = 0xc02b;
    const RSA: u16 = 0xc02f;
    const X25519: u16 = 0x001d;
    const P256: u16 = 0x0017;
    const P384: u16 = 0x0018;

    #[test]
    fn a_suite_of_tls_12_comes_with_a_key_a_curve_and_a_scheme() {
        let all = Some(&[0x0403, 0x0503, 0x0804, 0x0401][..]);
        let (both, groups) = (&[RSA, ECDSA][..], Some(&[X25519, P256, P384][..]));
        assert_eq!(choose_12(both, groups, all, None), Ok((ECDSA, KeyKind::P384, 0x0403)));
        let without_384 = Some(&[X25519, P256][..]);
        assert_eq!(
            choose_12(both, without_384, all, None),
            Ok((ECDSA, KeyKind::P256, 0x0403))
        );
        let without_either = Some(&[X25519][..]);
        let rsa = Ok((RSA, KeyKind::Rsa(2048), 0x0804));
        assert_eq!(choose_12(both, without_either, all, None), rsa, "no curve of ours");
        assert_eq!(choose_12(&[RSA], groups, all, None), rsa);
        assert_eq!(
            choose_12(both, groups, Some(&[0x0401]), None),
            Ok((RSA, KeyKind::Rsa(2048), 0x0401)),
            "PKCS#1 alone"
        );
        assert_eq!(
            choose_12(both, None, all, None),
            Ok((ECDSA, KeyKind::P384, 0x0403)),
            "no groups: any"
        );
    }

    #[test]
    fn what_is_missing_for_tls_12_is_told() {
        let all = Some(&[0x0403, 0x0804][..]);
        let groups = Some(&[X25519, P256][..]);
        let told = |suites: &[u16], groups, schemes, formats| choose_12(suites, groups, schemes, formats).unwrap_err();
        assert_eq!(told(&[0x1301, 0x002f], groups, all, None), Cause::NoCommonSuite);
        assert_eq!(told(&[ECDSA], Some(&[0x0019]), all, None), Cause::NoCommonGroup);
        assert_eq!(
            told(&[ECDSA], Some(&[X25519]), all, None),
            Cause::NoCommonSuite,
            "no curve"
        );
        assert_eq!(told(&[ECDSA], groups, None, None), Cause::NoCommonScheme, "SHA-1 it is");
        assert_eq!(told(&[ECDSA], groups, Some(&[0x0804]), None), Cause::NoCommonScheme);
        let illegal = Cause::IllegalParameter(1);
        assert_eq!(
            told(&[ECDSA], groups, all, Some(&[1, 2])),
            illegal,
            "no uncompressed points"
        );
        assert!(choose_12(&[ECDSA], groups, all, Some(&[1, 0])).is_ok());
    }
}
