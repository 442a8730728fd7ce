//! The rules together, by certificates that are made for each.

use alloc::string::ToString;
use alloc::vec::Vec;
use std::{format, vec};

use sha2::{Digest as _, Sha256};
use skerry_core::time::Timestamp;

use super::certificate::{ExtendedKeyUsage, ids};
use super::der::tag;
use super::made::{Counted, DAY, Made, NOW, basic, constraints, extended, key_id, names, spki, usage};
use super::name::{COMMON_NAME, EMAIL_ADDRESS};
use super::path::{SIGNATURE_COUNT_MAX, STEP_COUNT_MAX};
use super::write::{bits, name, sequence, value};
use super::{Details, Policy, Profile, Revoked, TrustStore};
use crate::cause::{Cause, Rule};
use crate::certificate::{CHAIN_COUNT_MAX, Refused, Role, ServerName, Verified, Verifier};
use crate::crypto::KeyKind;

const ROLES: [Role; 2] = [Role::Server, Role::Client];

/// A question.
struct Ask<'a> {
    anchors: Vec<&'a Made>,
    chain: Vec<&'a Made>,
    role: Role,
    policy: Policy,
    now: Timestamp,
    name: Option<ServerName<'a>>,
}

impl<'a> Ask<'a> {
    fn new(anchors: &[&'a Made], chain: &[&'a Made]) -> Self {
        Self {
            anchors: anchors.into(),
            chain: chain.into(),
            role: Role::Client,
            policy: Policy::default(),
            now: NOW,
            name: None,
        }
    }

    fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    fn profile(mut self, profile: Profile) -> Self {
        self.policy.profile = profile;
        self
    }

    fn named(mut self, name: &'a str) -> Self {
        self.name = Some(ServerName::Dns(name));
        self.role(Role::Server)
    }

    fn revoked(mut self, revoked: &[Revoked]) -> Self {
        self.policy.revoked = revoked.into();
        self
    }

    fn at(mut self, now: i64) -> Self {
        self.now = Timestamp(now);
        self
    }

    /// The answer, and the signatures that it cost.
    fn answer(self) -> (Result<Verified, Refused>, usize) {
        let counted = Counted::default();
        let anchors: Vec<Vec<u8>> = self.anchors.iter().map(|made| made.der()).collect();
        let chain: Vec<Vec<u8>> = self.chain.iter().map(|made| made.der()).collect();
        let (store, _) = TrustStore::new(&slices(&anchors), self.policy, &counted);
        let answer = store.verify(&slices(&chain), self.role, self.name, self.now);
        (answer, counted.count.get())
    }

    #[track_caller]
    fn accepted(self) -> Verified {
        self.answer().0.unwrap()
    }

    #[track_caller]
    fn refused(self, cause: Cause, index: u8) {
        assert_eq!(self.answer().0, Err(Refused { cause, index }));
    }
}

fn slices(ders: &[Vec<u8>]) -> Vec<&[u8]> {
    ders.iter().map(Vec::as_slice).collect()
}

const PROFILE: Cause = Cause::CertificateChain(Rule::Profile);

#[test]
fn a_path_is_found_in_any_order_and_among_anything() {
    let root = Made::root("root", 1);
    let upper = Made::ca("upper", 2, &root);
    let lower = Made::ca("lower", 3, &upper);
    let leaf = Made::leaf(4, &lower);
    let direct = Made::leaf(5, &root);
    let stranger = Made::ca("stranger", 9, &Made::root("unknown", 8));
    for role in ROLES {
        for profile in [Profile::Strict, Profile::Private] {
            let accepted = |anchors: &[&Made], chain: &[&Made]| {
                Ask::new(anchors, chain).role(role).profile(profile).accepted();
            };
            accepted(&[&root], &[&direct]);
            accepted(&[&root], &[&leaf, &lower, &upper]);
            accepted(&[&root], &[&leaf, &lower, &upper, &root]);
            accepted(&[&root], &[&leaf, &upper, &root, &stranger, &lower]);
            accepted(&[&root], &[&leaf, &leaf, &lower, &lower, &upper, &upper]);
            accepted(&[&stranger, &upper], &[&leaf, &lower]);
            accepted(&[&root, &lower], &[&leaf]);
        }
    }
    Ask::new(&[&root], &[&leaf, &upper]).refused(Cause::UnknownCa, 0);
    Ask::new(&[&root], &[&leaf, &lower]).refused(Cause::UnknownCa, 1);
    Ask::new(&[&stranger], &[&leaf, &lower, &upper, &root]).refused(Cause::UnknownCa, 3);
    Ask::new(&[], &[&leaf, &lower, &upper, &root]).refused(Cause::UnknownCa, 3);
}

#[test]
fn signing_itself_is_no_trust_and_being_an_anchor_is() {
    let own = Made::new("device", 1);
    Ask::new(&[], &[&own]).refused(Cause::UnknownCa, 0);
    Ask::new(&[&Made::root("root", 2)], &[&own]).refused(Cause::UnknownCa, 0);
    // Another certificate of the same name and key is not the anchor: it would have to be issued by it, and the anchor is no CA.
    let other = own.clone().but(|made| made.serial = [1].into());
    Ask::new(&[&other], &[&own]).refused(Cause::CertificateChain(Rule::Issuer), 0);
    assert_eq!(Ask::new(&[&own], &[&own]).answer().1, 0);
    Ask::new(&[&own], &[&own]).accepted();
    // It is held to everything else that a leaf is held to.
    Ask::new(&[&own], &[&own])
        .at(own.not_after.0 + 1000)
        .refused(Cause::CertificateExpired, 0);
    let ca = Made::root("root", 1);
    Ask::new(&[&ca], &[&ca]).refused(Cause::CertificateUsage, 0);
}

/// *Goal*: each cause, for both roles, at leaf and intermediate. *Method*: root, intermediate and leaf, one of them changed.
#[test]
fn each_cause_is_told_of_the_certificate_at_fault() {
    let root = Made::root("root", 1);
    let middle = Made::ca("middle", 2, &root);
    let leaf = Made::leaf(3, &middle);
    let sha1 = sequence(&[&value(tag::OID, &[&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1]])]);
    let far = [0x2b, 6, 1, 4, 1, 0x84, 0x59, 1];
    for role in ROLES {
        let (other_purpose, own_purpose) = match role {
            Role::Server => (ExtendedKeyUsage::CLIENT_AUTH, ExtendedKeyUsage::SERVER_AUTH),
            Role::Client => (ExtendedKeyUsage::SERVER_AUTH, ExtendedKeyUsage::CLIENT_AUTH),
        };
        let ask = |root: &Made, middle: &Made, leaf: &Made| Ask::new(&[root], &[leaf, middle]).role(role).answer().0;
        let refused = |cause, index| Err(Refused { cause, index });
        let leaf_is = |change: fn(Made) -> Made| ask(&root, &middle, &change(leaf.clone()));
        let middle_is = |change: fn(Made) -> Made| ask(&root, &change(middle.clone()), &leaf);
        let root_is = |change: fn(Made) -> Made| ask(&change(root.clone()), &middle, &leaf);
        assert!(ask(&root, &middle, &leaf).is_ok());

        let expired = |made: Made| made.but(|made| made.not_after = Timestamp(NOW.0 - 1000));
        assert_eq!(leaf_is(expired), refused(Cause::CertificateExpired, 0));
        assert_eq!(middle_is(expired), refused(Cause::CertificateExpired, 1));
        assert_eq!(root_is(expired), refused(Cause::CertificateExpired, 1));
        let early = |made: Made| made.but(|made| made.not_before = Timestamp(NOW.0 + 1000));
        assert_eq!(leaf_is(early), refused(Cause::CertificateNotYetValid, 0));
        assert_eq!(middle_is(early), refused(Cause::CertificateNotYetValid, 1));
        assert_eq!(root_is(early), refused(Cause::CertificateNotYetValid, 1));
        let exact = |made: Made| made.but(|made| (made.not_before, made.not_after) = (NOW, NOW));
        assert!(leaf_is(exact).is_ok() && middle_is(exact).is_ok() && root_is(exact).is_ok());

        let no_usage = |made: Made| made.with(ids::KEY_USAGE, true, usage(0x2000));
        assert_eq!(leaf_is(no_usage), refused(Cause::CertificateUsage, 0));
        assert_eq!(middle_is(no_usage), refused(Cause::CertificateChain(Rule::Issuer), 1));
        assert_eq!(root_is(no_usage), refused(Cause::CertificateChain(Rule::Issuer), 1));
        let any_usage = |made: Made| made.without(ids::KEY_USAGE);
        assert!(leaf_is(any_usage).is_ok() && middle_is(any_usage).is_ok() && root_is(any_usage).is_ok());

        let purpose =
            |made: &Made, purposes: &[&[u8]]| made.clone().with(ids::EXTENDED_KEY_USAGE, false, extended(purposes));
        let other = [other_purpose, &far];
        assert_eq!(
            ask(&root, &middle, &purpose(&leaf, &other)),
            refused(Cause::CertificateUsage, 0)
        );
        assert_eq!(
            ask(&root, &purpose(&middle, &other), &leaf),
            refused(Cause::CertificateUsage, 1)
        );
        assert_eq!(
            ask(&purpose(&root, &other), &middle, &leaf),
            refused(Cause::CertificateUsage, 1)
        );
        for purposes in [[&far, own_purpose], [&far, ExtendedKeyUsage::ANY]] {
            assert!(
                ask(
                    &purpose(&root, &purposes),
                    &purpose(&middle, &purposes),
                    &purpose(&leaf, &purposes)
                )
                .is_ok()
            );
        }
        let no_purpose = |made: Made| made.without(ids::EXTENDED_KEY_USAGE);
        assert!(leaf_is(no_purpose).is_ok());

        let no_ca = |made: Made| made.with(ids::BASIC_CONSTRAINTS, true, basic(false, None));
        assert!(leaf_is(no_ca).is_ok());
        assert_eq!(middle_is(no_ca), refused(Cause::CertificateChain(Rule::Issuer), 1));
        assert_eq!(root_is(no_ca), refused(Cause::CertificateChain(Rule::Issuer), 1));
        let no_basic = |made: Made| made.without(ids::BASIC_CONSTRAINTS);
        assert_eq!(middle_is(no_basic), refused(Cause::CertificateChain(Rule::Issuer), 1));
        assert_eq!(root_is(no_basic), refused(Cause::CertificateChain(Rule::Issuer), 1));
        let version_1 = |made: Made| {
            made.but(|made| {
                made.version = 1;
                made.extensions.clear();
            })
        };
        assert_eq!(middle_is(version_1), refused(Cause::CertificateChain(Rule::Issuer), 1));
        assert!(leaf_is(version_1).is_ok() && root_is(version_1).is_ok());
        let version_1_of_another = version_1(Made::ca("root", 1, &Made::root("above", 9)));
        assert_eq!(
            ask(&version_1_of_another, &middle, &leaf),
            refused(Cause::CertificateChain(Rule::Issuer), 1)
        );

        let critical = |made: Made| made.with(&[0x2b, 6, 1, 4, 1, 0x84, 0x59, 1], true, [5, 0].into());
        assert_eq!(leaf_is(critical), refused(Cause::CertificateChain(Rule::Critical), 0));
        assert_eq!(middle_is(critical), refused(Cause::CertificateChain(Rule::Critical), 1));
        assert_eq!(root_is(critical), refused(Cause::CertificateChain(Rule::Critical), 1));
        let uncritical = |made: Made| made.with(&[0x2b, 6, 1, 4, 1, 0x84, 0x59, 1], false, [9].into());
        assert!(leaf_is(uncritical).is_ok() && middle_is(uncritical).is_ok() && root_is(uncritical).is_ok());

        let no_issuer = |made: Made| made.but(|made| made.issuer = sequence(&[]));
        assert_eq!(leaf_is(no_issuer), refused(PROFILE, 0));
        let constrains = |made: Made| {
            made.with(
                ids::NAME_CONSTRAINTS,
                true,
                constraints(&[(0x82, b"leaf.example")], &[]),
            )
        };
        assert_eq!(leaf_is(constrains), refused(PROFILE, 0));
        assert!(middle_is(constrains).is_ok());

        let other_algorithm = |made: &Made| made.clone().but(|made| made.algorithm = sha1.clone());
        assert_eq!(
            ask(&root, &middle, &other_algorithm(&leaf)),
            refused(Cause::CertificateUnsupported, 0)
        );
        assert_eq!(
            ask(&root, &other_algorithm(&middle), &leaf),
            refused(Cause::CertificateUnsupported, 1)
        );
        // An anchor is trusted by being one, however it signed itself.
        assert!(ask(&other_algorithm(&root), &middle, &leaf).is_ok());

        let wrong_signer = |made: Made| made.but(|made| made.by = spki(77));
        assert_eq!(leaf_is(wrong_signer), refused(Cause::CertificateSignature, 0));
        assert_eq!(middle_is(wrong_signer), refused(Cause::CertificateSignature, 1));
        assert!(root_is(wrong_signer).is_ok());

        // An algorithm that is not the issuer's key's is not even tried.
        let root_key = |spki: Vec<u8>| root.clone().but(|made| made.spki = spki);
        let rsa = root_key(rsa(&[0xab; 256], 3));
        let (answer, signatures) = Ask::new(&[&rsa], &[&Made::leaf(3, &rsa)]).role(role).answer();
        assert_eq!((answer, signatures), (refused(Cause::CertificateSignature, 0), 0));

        let unread = |made: Made| made.with(ids::SUBJECT_ALT_NAME, false, [0x30, 1].into());
        assert_eq!(leaf_is(unread), refused(Cause::CertificateUnreadable, 0));
        assert_eq!(middle_is(unread), refused(Cause::CertificateUnreadable, 1));
        assert_eq!(root_is(unread), refused(Cause::UnknownCa, 1));

        let ed25519 = |made: Made| {
            let id = sequence(&[&value(tag::OID, &[&[0x2b, 0x65, 0x70]])]);
            made.but(|made| made.spki = sequence(&[&id, &bits(&[7; 32])]))
        };
        assert_eq!(leaf_is(ed25519), refused(Cause::CertificateUnsupported, 0));
        assert_eq!(middle_is(ed25519), refused(Cause::CertificateUnsupported, 1));
    }
    let long = [&leaf; CHAIN_COUNT_MAX + 1];
    Ask::new(&[&root], &long).refused(Cause::ChainTooLong, 0);
    Ask::new(&[&root], &[]).refused(Cause::CertificateUnreadable, 0);
}

#[test]
fn names_are_asked_last_and_of_alternative_names_only() {
    let root = Made::root("root", 1);
    let leaf = Made::leaf(2, &root);
    Ask::new(&[&root], &[&leaf]).named("leaf.example").accepted();
    Ask::new(&[&root], &[&leaf])
        .named("leaf")
        .refused(Cause::CertificateName, 0);
    let nameless = leaf.clone().without(ids::SUBJECT_ALT_NAME);
    Ask::new(&[&root], &[&nameless]).role(Role::Server).accepted();
    Ask::new(&[&root], &[&nameless])
        .named("leaf")
        .refused(Cause::CertificateName, 0);
    Ask::new(&[], &[&leaf]).named("leaf").refused(Cause::UnknownCa, 0);
}

#[test]
fn what_is_said_of_a_verified_peer() {
    let root = Made::root("root", 1).but(|made| made.not_after = Timestamp(NOW.0 + 7 * DAY));
    let middle = Made::ca("middle", 2, &root).but(|made| made.not_after = Timestamp(NOW.0 + 6 * DAY));
    let leaf = Made::leaf(3, &middle);
    let verified = Ask::new(&[&root], &[&leaf, &middle]).accepted();
    assert_eq!((&*verified.subject, verified.cut), ("CN=leaf", false));
    assert_eq!(verified.not_after, middle.not_after);
    assert_eq!(verified.fingerprint, <[u8; 32]>::from(Sha256::digest(leaf.der())));
    assert_eq!(Ask::new(&[&middle], &[&leaf]).accepted().not_after, middle.not_after);
    let early = Made::leaf(3, &root).but(|made| made.not_after = Timestamp(NOW.0 + DAY));
    assert_eq!(Ask::new(&[&root], &[&early]).accepted().not_after, early.not_after);
    let late = Made::leaf(3, &root);
    assert_eq!(Ask::new(&[&root], &[&late]).accepted().not_after, root.not_after);

    let long = Made::leaf(3, &root).but(|made| made.subject = name(&[(COMMON_NAME, &"x".repeat(600))]));
    let verified = Ask::new(&[&root], &[&long]).accepted();
    assert!(verified.cut && verified.subject.len() == 512);

    let details = Details::of(&middle.der()).unwrap();
    assert_eq!(
        details.to_string(),
        "subject \"CN=middle\" issuer \"CN=root\" valid 2023-08-06T22:13:20Z to 2023-11-20T22:13:20Z"
    );
    let noisy = Made::new("a\nb\x1b[2J", 1);
    assert_eq!(Details::of(&noisy.der()).unwrap().subject, "CN=a\u{fffd}b\u{fffd}[2J");
    assert_eq!(Details::of(&[0x30]), None);
}

/// *Goal*: the strict profile refuses each of these, the other one none. *Method*: a root, a leaf and one between, one of them changed.
#[test]
fn the_strict_profile_asks_more() {
    type Change = fn(Made) -> Made;
    let root = Made::root("root", 1);
    let middle = Made::ca("middle", 2, &root);
    let leaf = Made::leaf(3, &middle);
    let ask = |root: &Made, middle: &Made, leaf: &Made, profile| {
        Ask::new(&[root], &[leaf, middle])
            .role(Role::Server)
            .profile(profile)
            .answer()
            .0
            .map(drop)
    };
    let both = |root: &Made, middle: &Made, leaf: &Made, index| {
        assert_eq!(ask(root, middle, leaf, Profile::Private), Ok(()));
        let refused = Refused { cause: PROFILE, index };
        assert_eq!(ask(root, middle, leaf, Profile::Strict), Err(refused));
    };
    let serial_0: Change = |made| made.but(|made| made.serial = [0].into());
    let leaves: &[Change] = &[
        |made| {
            made.but(|made| {
                made.version = 1;
                made.extensions.clear();
            })
        },
        serial_0,
        |made| made.but(|made| made.serial = [0xff].into()),
        |made| made.but(|made| made.serial = [1; 21].into()),
        |made| made.without(ids::AUTHORITY_KEY),
        |made| made.with(ids::AUTHORITY_KEY, false, sequence(&[])),
        |made| made.but(|made| made.subject = sequence(&[])),
        |made| {
            made.but(|made| made.subject = sequence(&[]))
                .without(ids::SUBJECT_ALT_NAME)
        },
        |made| made.with(ids::SUBJECT_ALT_NAME, true, names(&[(0x82, b"leaf.example")])),
        |made| made.with(ids::SUBJECT_ALT_NAME, false, names(&[(0x82, b"my_leaf.example")])),
        |made| {
            made.with(
                ids::SUBJECT_ALT_NAME,
                false,
                names(&[(0x82, b"leaf.example"), (0x82, b".example")]),
            )
        },
        |made| {
            made.with(
                ids::SUBJECT_ALT_NAME,
                false,
                names(&[(0x87, &[10, 0, 0, 0, 255, 0, 0, 0])]),
            )
        },
        |made| made.with(ids::BASIC_CONSTRAINTS, true, basic(true, None)),
        |made| made.with(ids::BASIC_CONSTRAINTS, true, basic(false, Some(0))),
        |made| made.with(ids::KEY_USAGE, true, usage(0x8400)),
        |made| made.with(ids::EXTENDED_KEY_USAGE, false, extended(&[ExtendedKeyUsage::ANY])),
        |made| {
            made.with(
                ids::EXTENDED_KEY_USAGE,
                true,
                extended(&[ExtendedKeyUsage::SERVER_AUTH]),
            )
        },
        |made| made.with(ids::POLICY_CONSTRAINTS, false, sequence(&[&[0x80, 1, 0]])),
    ];
    for change in leaves {
        both(&root, &middle, &change(leaf.clone()), 0);
    }
    let nameless = leaf.clone().but(|made| made.subject = sequence(&[]));
    let nameless = nameless.with(ids::SUBJECT_ALT_NAME, true, names(&[(0x82, b"leaf.example")]));
    assert_eq!(ask(&root, &middle, &nameless, Profile::Strict), Ok(()));

    let cas: &[Change] = &[
        |made| made.with(ids::BASIC_CONSTRAINTS, false, basic(true, None)),
        |made| made.without(ids::SUBJECT_KEY),
        |made| made.with(ids::NAME_CONSTRAINTS, true, constraints(&[(0x82, b".example")], &[])),
    ];
    for change in cas {
        both(&root, &change(middle.clone()), &leaf, 1);
        both(&change(root.clone()), &middle, &leaf, 1);
    }
    both(&root, &serial_0(middle.clone()), &leaf, 1);
    both(&root, &middle.clone().without(ids::AUTHORITY_KEY), &leaf, 1);
    assert_eq!(ask(&serial_0(root.clone()), &middle, &leaf, Profile::Strict), Ok(()));
    let names_itself = |id: &[u8]| value(tag::context(0), &[id]);
    let root_key = |key: &[u8]| root.clone().with(ids::AUTHORITY_KEY, false, sequence(&[key]));
    assert_eq!(
        ask(&root_key(&names_itself(&key_id(1))), &middle, &leaf, Profile::Strict),
        Ok(())
    );
    both(&root_key(&names_itself(&key_id(9))), &middle, &leaf, 1);
    both(&root_key(&[]), &middle, &leaf, 1);
    both(
        &root_key(&[&*names_itself(&key_id(1)), &[0x82, 1, 7]].concat()),
        &middle,
        &leaf,
        1,
    );
    let purposed = root.clone().with(
        ids::EXTENDED_KEY_USAGE,
        false,
        extended(&[ExtendedKeyUsage::SERVER_AUTH]),
    );
    both(&purposed, &middle, &leaf, 1);
    let version_1 = root.clone().but(|made| {
        made.version = 1;
        made.extensions.clear();
    });
    assert_eq!(ask(&version_1, &middle, &leaf, Profile::Private), Ok(()));
    assert!(ask(&version_1, &middle, &leaf, Profile::Strict).is_err());
    // A CA without a name is nobody's issuer by name but that of one without an issuer.
    let nobody = middle.clone().but(|made| made.subject = sequence(&[]));
    assert!(ask(&root, &nobody, &Made::leaf(3, &nobody), Profile::Private).is_err());
}

#[test]
fn what_cannot_be_read_is_refused_whole() {
    let root = Made::root("root", 1);
    let leaf = Made::leaf(2, &root);
    let change = |change: fn(&mut Made)| leaf.clone().but(change).der();
    let with = |id: &[u8], is_critical, value: &[u8]| leaf.clone().with(id, is_critical, value.into()).der();
    let der = leaf.der();
    let (counted, anchors) = (Counted::default(), [root.der()]);
    let (store, _) = TrustStore::new(&slices(&anchors), Policy::default(), &counted);
    let ask = |der: &[u8]| store.verify(&[der], Role::Client, None, NOW).map(drop);
    assert_eq!(ask(&der), Ok(()));
    let broken = [
        Vec::new(),
        [der.as_slice(), &[0]].concat(),
        der[..der.len() - 1].into(),
        // Version 4, version 1 and 2 with extensions, no extensions in version 3's list.
        change(|made| made.version = 4),
        change(|made| made.version = 1),
        change(|made| made.version = 2),
        change(|made| made.serial = [].into()),
        change(|made| made.serial = [0, 1].into()),
        // The same extension twice.
        change(|made| made.extensions.push((ids::KEY_USAGE.into(), true, usage(0x8000)))),
        change(|made| {
            made.extensions
                .extend((0..40).map(|number| (Vec::from([0x2b, number]), false, Vec::new())))
        }),
        change(|made| made.algorithm = [5, 0].into()),
        change(|made| made.subject = [5, 0].into()),
        change(|made| made.subject = sequence(&[&value(tag::SET, &[])])),
        change(|made| made.subject = name(&[(COMMON_NAME, "x"); 65])),
        change(|made| made.issuer = sequence(&[&[5, 0]])),
        change(|made| made.spki = [5, 0].into()),
        with(ids::SUBJECT_KEY, true, &[4, 1, 1]),
        with(ids::SUBJECT_KEY, false, &[5, 0]),
        with(ids::AUTHORITY_KEY, true, &[0x30, 0]),
        with(ids::AUTHORITY_KEY, false, &[0x30, 2, 5, 0]),
        with(ids::KEY_USAGE, true, &[3, 2, 3, 0x84]),
        with(ids::EXTENDED_KEY_USAGE, false, &[0x30, 0]),
        with(ids::SUBJECT_ALT_NAME, false, &[0x30, 0]),
        with(
            ids::SUBJECT_ALT_NAME,
            false,
            &names(&[(0x82, "m\u{fc}ller.example".as_bytes())]),
        ),
        with(ids::SUBJECT_ALT_NAME, false, &names(&[(0x89, b"x")])),
        with(ids::SUBJECT_ALT_NAME, false, &[&*names(&[(0x82, b"x")]), &[0]].concat()),
        with(ids::BASIC_CONSTRAINTS, true, &[0x30, 3, 1, 1, 1]),
        with(ids::BASIC_CONSTRAINTS, true, &[0x30, 3, 2, 1, 0xff]),
        with(ids::NAME_CONSTRAINTS, true, &[0x30, 0]),
        with(ids::NAME_CONSTRAINTS, true, &[0x30, 2, 0xa0, 0]),
        with(ids::POLICIES, false, &[0x30, 0]),
        with(ids::AUTHORITY_INFORMATION, true, &[0x30, 0]),
        with(ids::AUTHORITY_INFORMATION, false, &[0x30, 0]),
    ];
    for (index, der) in broken.iter().enumerate() {
        let refused = Refused {
            cause: Cause::CertificateUnreadable,
            index: 0,
        };
        assert_eq!(ask(der), Err(refused), "number {index}");
        assert!(TrustStore::new(&[der], Policy::default(), &counted).0.anchor_count() == 0);
    }
    assert_eq!(counted.count.get(), 1);
}

#[test]
fn policies_are_read_as_far_as_they_can_matter() {
    let root = Made::root("root", 1);
    let leaf = Made::leaf(2, &root);
    let policy = value(tag::OID, &[&[0x2a, 3]]);
    let plain = sequence(&[&sequence(&[&policy])]);
    let qualified = sequence(&[&sequence(&[&policy, &sequence(&[&sequence(&[&policy])])])]);
    let ask = |id: &[u8], is_critical, value: &[u8]| {
        let leaf = leaf.clone().with(id, is_critical, value.into());
        Ask::new(&[&root], &[&leaf]).answer().0.map(drop)
    };
    let refused = Err(Refused {
        cause: Cause::CertificateChain(Rule::Critical),
        index: 0,
    });
    assert_eq!(ask(ids::POLICIES, true, &plain), Ok(()));
    assert_eq!(ask(ids::POLICIES, false, &qualified), Ok(()));
    assert_eq!(ask(ids::POLICIES, true, &qualified), refused);
    assert_eq!(ask(ids::INHIBIT_ANY_POLICY, true, &[2, 1, 0]), Ok(()));
    assert_eq!(ask(ids::POLICY_CONSTRAINTS, true, &[0x30, 3, 0x80, 1, 0]), refused);
}

#[test]
fn a_path_is_as_long_as_every_issuer_of_it_allows() {
    let length = |made: Made, length| made.with(ids::BASIC_CONSTRAINTS, true, basic(true, Some(length)));
    let too_long = Cause::CertificateChain(Rule::PathLength);
    for allowed in 0..3 {
        let root = length(Made::root("root", 1), allowed);
        let first = Made::ca("first", 2, &root);
        let second = Made::ca("second", 3, &first);
        // The same name again, by another key: it issued itself and is not counted.
        let again = Made::ca("second", 4, &second);
        for (count, chain) in [
            (0, Vec::from([Made::leaf(9, &root)])),
            (1, Vec::from([Made::leaf(9, &first), first.clone()])),
            (2, Vec::from([Made::leaf(9, &second), second.clone(), first.clone()])),
            (
                2,
                Vec::from([Made::leaf(9, &again), again.clone(), second.clone(), first.clone()]),
            ),
        ] {
            let ask = Ask::new(&[&root], &chain.iter().collect::<Vec<_>>());
            if count <= allowed {
                ask.accepted();
            } else {
                ask.refused(too_long, chain.len() as u8 - 1);
            }
        }
    }
    let root = Made::root("root", 1);
    let first = Made::ca("first", 2, &root);
    let second = Made::ca("second", 3, &first);
    let leaf = Made::leaf(9, &second);
    let mut shallow = Ask::new(&[&root], &[&leaf, &second, &first]);
    shallow.policy.depth_max = 1;
    shallow.refused(too_long, 2);
}

#[test]
fn revoked_is_revoked_by_number_or_fingerprint() {
    let root = Made::root("root", 1);
    let middle = Made::ca("middle", 2, &root);
    let other = Made::ca("middle", 2, &root).but(|made| made.serial = [9].into());
    let leaf = Made::leaf(3, &middle).but(|made| made.serial = [0, 0x80, 3].into());
    let print = |made: &Made| Revoked::Fingerprint(Sha256::digest(made.der()).into());
    let ask = |revoked: Revoked| Ask::new(&[&root], &[&leaf, &middle]).revoked(&[revoked]);
    ask(Revoked::Serial([0x80, 3].into())).refused(Cause::CertificateRevoked, 0);
    ask(Revoked::Serial([0, 0, 0x80, 3].into())).refused(Cause::CertificateRevoked, 0);
    ask(print(&leaf)).refused(Cause::CertificateRevoked, 0);
    ask(print(&middle)).refused(Cause::CertificateRevoked, 1);
    ask(print(&root)).refused(Cause::CertificateRevoked, 1);
    ask(print(&other)).accepted();
    ask(Revoked::Serial([3].into())).accepted();
    // Another certificate of the same CA will do.
    Ask::new(&[&root], &[&leaf, &middle, &other])
        .revoked(&[print(&middle)])
        .accepted();
}

#[test]
fn another_way_is_found_where_one_is_closed() {
    let root = Made::root("root", 1);
    let old = Made::root("old", 2);
    let cross = Made::ca("root", 1, &old).but(|made| made.not_after = Timestamp(NOW.0 - DAY));
    let middle = Made::ca("middle", 3, &root);
    let leaf = Made::leaf(4, &middle);
    // The cross certificate of an expired root does no harm, wherever it stands.
    Ask::new(&[&root], &[&leaf, &cross, &middle]).accepted();
    Ask::new(&[&root, &old], &[&leaf, &middle, &cross]).accepted();
    Ask::new(&[&old], &[&leaf, &middle, &cross]).refused(Cause::CertificateExpired, 2);

    // Anchors of one name: the key decides.
    let twin = Made::root("root", 7);
    let third = Made::root("root", 8).without(ids::SUBJECT_KEY);
    let (answer, signatures) = Ask::new(&[&twin, &third, &root], &[&leaf, &middle]).answer();
    assert!(answer.is_ok());
    assert_eq!(signatures, 3);
    Ask::new(&[&twin], &[&leaf, &middle]).refused(Cause::UnknownCa, 1);
    Ask::new(&[&third], &[&leaf, &middle]).refused(Cause::CertificateSignature, 1);

    // Two certificates of one CA: a usage, a length, a constraint that closes one leaves the other.
    let closed = [
        middle.clone().with(ids::KEY_USAGE, true, usage(0x0200)),
        middle.clone().with(
            ids::NAME_CONSTRAINTS,
            true,
            constraints(&[(0x82, b"other.example")], &[]),
        ),
        middle.clone().with(
            ids::EXTENDED_KEY_USAGE,
            false,
            extended(&[ExtendedKeyUsage::SERVER_AUTH]),
        ),
        middle.clone().but(|made| made.by = spki(99)),
    ];
    for closed in &closed {
        assert!(Ask::new(&[&root], &[&leaf, closed]).answer().0.is_err());
        Ask::new(&[&root], &[&leaf, closed, &middle]).accepted();
    }

    // Nobody issued one end of the search; the farthest end is told of.
    let upper = Made::ca("upper", 5, &Made::root("nowhere", 31));
    let (long, short) = (
        Made::ca("middle", 3, &upper),
        Made::ca("middle", 3, &Made::root("nobody", 32)),
    );
    Ask::new(&[&root], &[&leaf, &long, &short, &upper]).refused(Cause::UnknownCa, 3);

    // Certificates that have nothing to do with it do not crowd out the anchor, however many name others.
    let extra: Vec<Made> = (0..8).map(|key| Made::ca("extra", 40 + key, &twin)).collect();
    let (last, third) = (
        Made::root("last", 50),
        third.but(|made| made.subject = twin.subject.clone()),
    );
    let middle = Made::ca("middle", 51, &last);
    let leaf = Made::leaf(4, &middle);
    let chain: Vec<&Made> = [&leaf].into_iter().chain(&extra).chain([&middle]).collect();
    Ask::new(&[&twin, &third, &last], &chain).accepted();

    // CAs that sign each other and nobody that is trusted.
    let (one, two) = (Made::root("one", 21), Made::root("two", 22));
    let (one, two) = (Made::ca("one", 21, &two), Made::ca("two", 22, &one));
    Ask::new(&[&root], &[&Made::leaf(4, &one), &one, &two]).refused(Cause::UnknownCa, 2);
}

#[test]
fn a_hostile_chain_costs_a_bounded_amount() {
    let root = Made::root("root", 1);
    // A stranger's chain, however good in itself, costs one signature: the anchor's.
    let fake = Made::root("root", 66).without(ids::SUBJECT_KEY);
    let middle = Made::ca("middle", 2, &fake);
    let leaf = Made::leaf(3, &middle);
    let (answer, signatures) = Ask::new(&[&root], &[&leaf, &middle]).answer();
    assert_eq!(answer.unwrap_err().cause, Cause::CertificateSignature);
    assert_eq!(signatures, 1);

    // Anchors and CAs of one name without key identifiers: every pair may be issuer and issued.
    let same = |key| Made::root("same", key).without(ids::SUBJECT_KEY);
    let anchors: Vec<Made> = (0..30).map(|key| same(100 + key)).collect();
    let mesh: Vec<Made> = (0..9).map(|key| same(10 + key)).collect();
    let leaf = Made::leaf(3, &same(200));
    let anchors: Vec<&Made> = anchors.iter().collect();
    let chain: Vec<&Made> = [&leaf].into_iter().chain(&mesh).collect();
    let (answer, signatures) = Ask::new(&anchors, &chain).answer();
    assert_eq!(answer.unwrap_err().cause, Cause::CertificateChain(Rule::Search));
    assert_eq!(signatures, SIGNATURE_COUNT_MAX);
    // Without an anchor no signature is checked, and the steps end it.
    let (answer, signatures) = Ask::new(&[], &chain).answer();
    assert_eq!(answer.unwrap_err().cause, Cause::CertificateChain(Rule::Search));
    assert_eq!(signatures, 0);
    const { assert!(STEP_COUNT_MAX < 10 * 9 * 8 * 7 * 6) }

    // Names against constraints: a thousand of each, no two related.
    let hosts: Vec<alloc::string::String> = (0..1000).map(|index| format!("h{index}.example")).collect();
    let entries: Vec<(u8, &[u8])> = hosts.iter().map(|host| (0x82, host.as_bytes())).collect();
    let strict = root
        .clone()
        .with(ids::NAME_CONSTRAINTS, true, constraints(&[], &entries));
    let many: Vec<(u8, &[u8])> = (0..1000).map(|_| (0x82, b"other.test".as_slice())).collect();
    let leaf = Made::leaf(3, &root).with(ids::SUBJECT_ALT_NAME, false, names(&many));
    Ask::new(&[&strict], &[&leaf]).refused(Cause::CertificateChain(Rule::Search), 0);
    // A refusal by a constraint costs what it compared, too.
    let excluding = |key| {
        let entries: Vec<(u8, &[u8])> = (0..20_000)
            .map(|_| (0x82, b"a.test".as_slice()))
            .chain([(0x82, b"leaf.example".as_slice())])
            .collect();
        same(key).with(ids::NAME_CONSTRAINTS, true, constraints(&[], &entries))
    };
    let anchors: Vec<Made> = (0..8).map(excluding).collect();
    let leaf = Made::leaf(3, &same(1));
    let one = Ask::new(&[&anchors[0]], &[&leaf]);
    one.refused(Cause::CertificateChain(Rule::NameConstraint), 0);
    let all = Ask::new(&anchors.iter().collect::<Vec<_>>(), &[&leaf]);
    all.refused(Cause::CertificateChain(Rule::Search), 0);
}

const DNS: u8 = 0x82;
const IP: u8 = 0x87;
const EMAIL: u8 = 0x81;
const URI: u8 = 0x86;
const DIRECTORY: u8 = 0xa4;
const OTHER: u8 = 0xa0;

/// Whether a leaf with that subject and those names may be under a CA with those constraints.
fn allows(permitted: &[(u8, &[u8])], excluded: &[(u8, &[u8])], subject: &[u8], entries: &[(u8, &[u8])]) -> bool {
    let root = Made::root("root", 1).with(ids::NAME_CONSTRAINTS, true, constraints(permitted, excluded));
    let mut leaf = Made::leaf(2, &root).without(ids::SUBJECT_ALT_NAME);
    leaf.subject = subject.into();
    if !entries.is_empty() {
        leaf = leaf.with(ids::SUBJECT_ALT_NAME, false, names(entries));
    }
    match Ask::new(&[&root], &[&leaf]).answer().0 {
        Ok(_) => true,
        Err(refused) => {
            assert_eq!(refused.cause, Cause::CertificateChain(Rule::NameConstraint));
            false
        }
    }
}

#[test]
fn constraints_permit_and_exclude_by_kind() {
    let empty = sequence(&[]);
    let other_name = value(tag::OID, &[&[0x2a, 3]]);
    // Kind, constraint, name, whether the name falls under it when permitted, and when excluded.
    /// A tag, two texts, and whether each is taken.
    type Row<'a> = (u8, &'a [u8], &'a [u8], bool, bool);
    let table: &[Row<'_>] = &[
        (DNS, b"example.com", b"example.com", true, true),
        (DNS, b"example.com", b"a.b.EXAMPLE.com", true, true),
        (DNS, b"example.com", b"notexample.com", false, false),
        (DNS, b"example.com", b"com", false, false),
        (DNS, b"", b"anything.example", true, true),
        (DNS, b".example.com", b"a.example.com", true, true),
        (DNS, b".example.com", b"example.com", false, false),
        (DNS, b"example.com", b"*.example.com", true, true),
        (DNS, b"a.example.com", b"*.example.com", false, true),
        (DNS, b"b.a.example.com", b"*.example.com", false, false),
        (DNS, b"example.com", b"*.com", false, true),
        (DNS, b"example.com", b".example.com", false, true),
        (DNS, b"example.com", b"a..example.com", false, true),
        (DNS, b"example.com", b"x.example.com.", false, true),
        (IP, &[10, 0, 0, 0, 255, 0, 0, 0], &[10, 1, 2, 3], true, true),
        (IP, &[10, 0, 0, 0, 255, 0, 0, 0], &[11, 1, 2, 3], false, false),
        (IP, &[10, 1, 0, 0, 255, 254, 0, 0], &[10, 0, 9, 9], true, true),
        (IP, &[0; 8], &[11, 1, 2, 3], true, true),
        (IP, &[0; 8], &[0; 16], false, false),
        (IP, &[0; 32], &[7; 16], true, true),
        (IP, &[0; 32], &[7; 4], false, false),
        (
            IP,
            &[10, 0, 0, 0, 255, 0, 0, 0],
            &[10, 0, 0, 0, 255, 0, 0, 0],
            false,
            true,
        ),
        (EMAIL, b"a@example.com", b"a@EXAMPLE.com", true, true),
        (EMAIL, b"a@example.com", b"A@example.com", false, false),
        (EMAIL, b"example.com", b"a@example.com", true, true),
        (EMAIL, b"example.com", b"a@x.example.com", false, false),
        (EMAIL, b".example.com", b"a@x.example.com", true, true),
        (EMAIL, b".example.com", b"a@example.com", false, false),
        (EMAIL, b"*@example.com", b"a@example.com", false, false),
        (EMAIL, b"example.com", b"a@b@example.com", false, true),
        (EMAIL, b"example.com", b"example.com", false, true),
        (EMAIL, b"example.com", b"\"a b\"@example.com", false, true),
        (URI, b"example.com", b"https://u:p@example.com:8080/x?y#z", true, true),
        (URI, b"example.com", b"https://a.example.com/", false, false),
        (URI, b".example.com", b"spiffe://a.example.com/x", true, true),
        (URI, b".example.com", b"spiffe://example.com/x", false, false),
        (URI, b"example.com", b"https://10.0.0.1/", false, true),
        (URI, b"example.com", b"https://[::1]/", false, true),
        (URI, b"example.com", b"urn:example.com", false, true),
        (URI, b"example.com", b"https://evil.test/@example.com", false, false),
        (OTHER, &other_name, &other_name, false, true),
    ];
    for &(kind, base, entry, permitted, excluded) in table {
        let text = format!("{} in {}", entry.escape_ascii(), base.escape_ascii());
        assert_eq!(
            allows(&[(kind, base)], &[], &empty, &[(kind, entry)]),
            permitted,
            "{text}"
        );
        assert_eq!(
            allows(&[], &[(kind, base)], &empty, &[(kind, entry)]),
            !excluded,
            "not {text}"
        );
        // One that is permitted is enough, and one that is excluded; what is both is excluded.
        if permitted && excluded {
            let none: &[u8] = match kind {
                IP => &[1, 2, 3, 4, 255, 255, 255, 255],
                _ => b"none.test",
            };
            assert!(allows(&[(kind, none), (kind, base)], &[], &empty, &[(kind, entry)]));
            assert!(!allows(
                &[(kind, base)],
                &[(kind, none), (kind, base)],
                &empty,
                &[(kind, entry)]
            ));
        }
        // Names of another kind do not concern it.
        let (other, unrelated) = if kind == DNS {
            (EMAIL, b"a@b.test".as_slice())
        } else {
            (DNS, b"b.test".as_slice())
        };
        assert!(allows(&[(kind, base)], &[(kind, base)], &empty, &[(other, unrelated)]));
    }
}

#[test]
fn subjects_and_their_mailboxes_are_names_too() {
    let (organization, unit): (&[u8], &[u8]) = (&[0x55, 4, 10], &[0x55, 4, 11]);
    let base = name(&[(organization, "Example  Corp")]);
    let inside = name(&[(organization, "example corp "), (unit, "Devices"), (COMMON_NAME, "x")]);
    let outside = name(&[(organization, "Other"), (COMMON_NAME, "x")]);
    let empty = sequence(&[]);
    let only =
        |base: &[u8], subject: &[u8], entries: &[(u8, &[u8])]| allows(&[(DIRECTORY, base)], &[], subject, entries);
    let never =
        |base: &[u8], subject: &[u8], entries: &[(u8, &[u8])]| allows(&[], &[(DIRECTORY, base)], subject, entries);
    assert!(only(&base, &inside, &[]) && !never(&base, &inside, &[]));
    assert!(!only(&base, &outside, &[]) && never(&base, &outside, &[]));
    assert!(!only(&inside, &base, &[]) && never(&inside, &base, &[]));
    assert!(only(&empty, &outside, &[]) && !never(&empty, &outside, &[]));
    // An empty subject is none; names in subjectAltName count as well.
    assert!(only(&base, &empty, &[(DNS, b"x.test")]));
    assert!(only(&base, &empty, &[(DIRECTORY, &inside)]) && !only(&base, &empty, &[(DIRECTORY, &outside)]));
    assert!(!only(&base, &inside, &[(DIRECTORY, &outside)]) && !never(&base, &outside, &[(DIRECTORY, &inside)]));

    let mailbox = name(&[(EMAIL_ADDRESS, "a@example.com"), (COMMON_NAME, "x")]);
    assert!(allows(&[(EMAIL, b"example.com")], &[], &mailbox, &[]));
    assert!(!allows(&[(EMAIL, b"other.test")], &[], &mailbox, &[]));
    assert!(!allows(&[(EMAIL, b"other.test")], &[], &mailbox, &[(DNS, b"x.test")]));
    assert!(allows(
        &[(EMAIL, b"other.test")],
        &[],
        &mailbox,
        &[(EMAIL, b"a@other.test")]
    ));
    assert!(!allows(&[], &[(EMAIL, b"example.com")], &mailbox, &[]));
    // A common name is no host.
    assert!(allows(
        &[(DNS, b"example.com")],
        &[],
        &name(&[(COMMON_NAME, "other.test")]),
        &[]
    ));
}

#[test]
fn constraints_hold_for_all_that_is_below() {
    let root = Made::root("root", 1);
    let refused = Cause::CertificateChain(Rule::NameConstraint);
    let only = |made: Made, host: &[u8]| made.with(ids::NAME_CONSTRAINTS, true, constraints(&[(DNS, host)], &[]));
    let upper = only(Made::ca("upper", 2, &root), b"example");
    let lower = Made::ca("lower", 3, &upper).with(ids::SUBJECT_ALT_NAME, false, names(&[(DNS, b"ca.example")]));
    let leaf = Made::leaf(4, &lower);
    Ask::new(&[&root], &[&leaf, &lower, &upper]).accepted();
    // An intermediate's own name is below too, unless it issued itself.
    let alien = lower
        .clone()
        .with(ids::SUBJECT_ALT_NAME, false, names(&[(DNS, b"ca.test")]));
    Ask::new(&[&root], &[&Made::leaf(4, &alien), &alien, &upper]).refused(refused, 1);
    let itself = Made::ca("upper", 3, &upper).with(ids::SUBJECT_ALT_NAME, false, names(&[(DNS, b"ca.test")]));
    Ask::new(&[&root], &[&Made::leaf(4, &itself), &itself, &upper]).accepted();
    // A leaf that issued itself is no exception.
    let leaf = Made::leaf(4, &upper).but(|made| made.subject = upper.subject.clone());
    let alien = leaf
        .clone()
        .with(ids::SUBJECT_ALT_NAME, false, names(&[(DNS, b"leaf.test")]));
    Ask::new(&[&root], &[&leaf, &upper]).accepted();
    Ask::new(&[&root], &[&alien, &upper]).refused(refused, 0);
    // Those below narrow what those above permit, and never widen it.
    for (above, below) in [
        (b"example".as_slice(), b"other.test".as_slice()),
        (b"other.test", b"example"),
    ] {
        let upper = only(Made::ca("upper", 2, &root), above);
        let lower = only(Made::ca("lower", 3, &upper), below);
        assert!(
            Ask::new(&[&root], &[&Made::leaf(4, &lower), &lower, &upper])
                .answer()
                .0
                .is_err()
        );
    }
}

fn rsa(modulus: &[u8], exponent: u8) -> Vec<u8> {
    let modulus = value(
        tag::INTEGER,
        &[if modulus[0] & 0x80 == 0 { &[] } else { &[0] }, modulus],
    );
    let key = sequence(&[&modulus, &[tag::INTEGER, 1, exponent]]);
    let algorithm = sequence(&[
        &value(tag::OID, &[&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1]]),
        &[5, 0],
    ]);
    sequence(&[&algorithm, &bits(&key)])
}

#[test]
fn keys_are_of_the_kinds_and_sizes_that_are_taken() {
    let root = Made::root("root", 1);
    let counted = Counted::default();
    let kind = |spki: Vec<u8>| {
        let leaf = Made::leaf(2, &root).but(|made| made.spki = spki).der();
        let anchors = [root.der()];
        let (store, _) = TrustStore::new(&slices(&anchors), Policy::default(), &counted);
        let kind = store.public_key(&leaf).map(|key| key.kind);
        let verified = store
            .verify(&[&leaf], Role::Client, None, NOW)
            .map(drop)
            .map_err(|refused| refused.cause);
        assert_eq!(kind.map(drop), verified);
        kind
    };
    let mut odd = [0xab; 256];
    assert_eq!(kind(rsa(&odd, 3)), Ok(KeyKind::Rsa(2048)));
    assert_eq!(kind(rsa(&[0xab; 512], 17)), Ok(KeyKind::Rsa(4096)));
    let unsupported = Err(Cause::CertificateUnsupported);
    assert_eq!(kind(rsa(&odd, 1)), unsupported);
    assert_eq!(kind(rsa(&odd, 4)), unsupported);
    assert_eq!(kind(rsa(&[0xab; 255], 3)), unsupported);
    assert_eq!(kind(rsa(&[0xab; 513], 3)), unsupported);
    odd[255] = 0xaa;
    assert_eq!(kind(rsa(&odd, 3)), unsupported);
    let mut uneven = [0xab; 257];
    uneven[0] = 1;
    assert_eq!(kind(rsa(&uneven, 3)), unsupported);

    let point = |curve: &[u8], first: u8, bytes: usize| {
        let algorithm = sequence(&[
            &value(tag::OID, &[&[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1]]),
            &value(tag::OID, &[curve]),
        ]);
        sequence(&[&algorithm, &bits(&[&[first], vec![7; bytes].as_slice()].concat())])
    };
    let p256 = [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    assert_eq!(kind(point(&p256, 4, 64)), Ok(KeyKind::P256));
    assert_eq!(kind(point(&p256, 2, 32)), unsupported);
    assert_eq!(kind(point(&p256, 4, 63)), Err(Cause::CertificateUnreadable));
    assert_eq!(kind(point(&p256, 5, 64)), Err(Cause::CertificateUnreadable));
    assert_eq!(kind(point(&[0x2b, 0x81, 4, 0, 34], 4, 96)), Ok(KeyKind::P384));
    // P-521 signs certificates, not handshakes.
    assert_eq!(kind(point(&[0x2b, 0x81, 4, 0, 35], 4, 132)), unsupported);
    let p521 = Made::root("root", 1).but(|made| made.spki = point(&[0x2b, 0x81, 4, 0, 35], 4, 132));
    Ask::new(&[&p521], &[&Made::leaf(2, &p521)]).accepted();
}

#[test]
fn anchors_that_cannot_be_used_are_told() {
    let good = Made::root("good", 1);
    let algorithm = sequence(&[&value(tag::OID, &[&[0x2b, 0x65, 0x70]])]);
    let ed25519 = Made::root("ed25519", 2).but(|made| made.spki = sequence(&[&algorithm, &bits(&[7; 32])]));
    let weak = Made::root("weak", 2).but(|made| {
        let key = sequence(&[&value(tag::INTEGER, &[&[0], &[0xab; 128]]), &[tag::INTEGER, 1, 3]]);
        let algorithm = sequence(&[
            &value(tag::OID, &[&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1]]),
            &[5, 0],
        ]);
        made.spki = sequence(&[&algorithm, &bits(&key)]);
    });
    let counted = Counted::default();
    let anchors = [good.der(), ed25519.der(), Vec::from([1, 2]), weak.der(), good.der()];
    let (store, warnings) = TrustStore::new(&slices(&anchors), Policy::default(), &counted);
    assert_eq!(store.anchor_count(), 1);
    let warnings: Vec<(usize, Cause)> = warnings.iter().map(|warning| (warning.index, warning.cause)).collect();
    let unsupported = Cause::CertificateUnsupported;
    assert_eq!(
        warnings,
        [(1, unsupported), (2, Cause::CertificateUnreadable), (3, unsupported)]
    );
}

#[test]
fn a_store_tells_whom_it_trusts() {
    let counted = Counted::default();
    let store = |anchors: &[Made], policy: Policy| {
        let anchors: Vec<Vec<u8>> = anchors.iter().map(Made::der).collect();
        TrustStore::new(&slices(&anchors), policy, &counted).0
    };
    let (one, two) = (Made::root("one", 1), Made::root("two", 2));
    let both = store(&[one.clone(), two.clone()], Policy::default());
    let entry = |made: &Made| [&(made.subject.len() as u16).to_be_bytes(), &*made.subject].concat();
    assert_eq!(both.authorities(), [entry(&one), entry(&two)].concat());
    let many: Vec<Made> = (0..200).map(|key| Made::root(&"x".repeat(100), key)).collect();
    assert!(store(&many, Policy::default()).authorities().is_empty());

    // Whatever a verdict depends on makes another identity.
    let strict = Policy {
        profile: Profile::Strict,
        ..Policy::default()
    };
    let revoking = Policy {
        revoked: [Revoked::Serial([1].into())].into(),
        ..Policy::default()
    };
    let shallow = Policy {
        depth_max: 1,
        ..Policy::default()
    };
    let stores = [
        both,
        store(&[], Policy::default()),
        store(core::slice::from_ref(&one), Policy::default()),
        store(core::slice::from_ref(&one), strict),
        store(core::slice::from_ref(&one), revoking),
        store(&[one], shallow),
    ];
    let ids: std::collections::BTreeSet<_> = stores.iter().map(|store| store.trust_id()).collect();
    assert_eq!(ids.len(), stores.len());
}

/// *Goal*: no bit of a chain can be changed unseen, and none makes a panic. *Method*: each bit of leaf, intermediate and anchor flipped.
#[test]
fn no_bit_of_a_chain_goes_unseen() {
    let root = Made::root("root", 1).with(ids::NAME_CONSTRAINTS, true, constraints(&[(DNS, b"example")], &[]));
    let middle = Made::ca("middle", 2, &root);
    let leaf = Made::leaf(3, &middle);
    let whole = [leaf.der(), middle.der(), root.der()];
    let ask = |[leaf, middle, root]: &[Vec<u8>; 3]| {
        let counted = Counted::default();
        let (store, _) = TrustStore::new(&[root], Policy::default(), &counted);
        let answer = store.verify(
            &[leaf, middle],
            Role::Server,
            Some(ServerName::Dns("leaf.example")),
            NOW,
        );
        let _ = (Details::of(leaf), store.public_key(leaf));
        answer.map(drop)
    };
    assert_eq!(ask(&whole), Ok(()));
    for index in 0..3 {
        for bit in 0..whole[index].len() * 8 {
            let mut changed = whole.clone();
            changed[index][bit / 8] ^= 1 << (bit % 8);
            let answer = ask(&changed);
            assert!(index == 2 || answer.is_err(), "bit {bit} of {index}");
        }
        for length in 0..whole[index].len() {
            let mut changed = whole.clone();
            changed[index].truncate(length);
            assert!(ask(&changed).is_err());
        }
    }
}
