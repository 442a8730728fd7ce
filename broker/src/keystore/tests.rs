//! Every store of `fixtures/make.sh` is read, and every mistake has its sentence.

use std::path::{Path, PathBuf};

use super::der::{self, Der, tag};
use super::*;

const STORE: &str = "störe-pässwörd→";
const KEY: &str = "kéy-pässwörd";
const STORE_ASCII: &str = "store pass";
const KEY_ASCII: &str = "key pass";

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/keystore/fixtures")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The DER of the one block in a fixture.
fn der_of(name: &str) -> Vec<u8> {
    pem::read(&fixture(name)).unwrap().loose.remove(0)
}

/// The private number of a PKCS#8 key over a curve.
fn scalar(pkcs8: &[u8]) -> Vec<u8> {
    let mut outer = Der::new(pkcs8).enter(tag::SEQUENCE).unwrap();
    outer.any().unwrap();
    outer.any().unwrap();
    let mut inner = outer.enter(tag::OCTET_STRING).unwrap().enter(tag::SEQUENCE).unwrap();
    inner.any().unwrap();
    inner.take(tag::OCTET_STRING).unwrap().to_vec()
}

fn the_scalar() -> Vec<u8> {
    scalar(
        &pem::read(&fixture("ec.key"))
            .unwrap()
            .keys
            .remove(0)
            .open(Format::Pem, None, None, &mut Effort::new())
            .unwrap(),
    )
}

fn chain() -> Vec<Vec<u8>> {
    ["ec.pem", "middle.pem", "root.pem"].map(der_of).into()
}

fn files(names: &[&str]) -> Vec<u8> {
    names.iter().flat_map(|name| fixture(name)).collect()
}

fn said<T: fmt::Debug>(result: Result<Found<T>, Mistake>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_keystore_of_every_kind_gives_the_same_identity() {
    let whole: &[(&str, Format, &str, Option<&str>)] = &[
        ("java.jks", Format::Jks, STORE, Some(KEY)),
        ("both.jks", Format::Jks, STORE, Some(KEY)),
        ("java.jceks", Format::Jceks, STORE, Some(KEY_ASCII)),
        ("java.p12", Format::Pkcs12, STORE_ASCII, Some(KEY_ASCII)),
        ("keytool.p12", Format::Pkcs12, STORE_ASCII, None),
        ("keytool-legacy.p12", Format::Pkcs12, STORE_ASCII, None),
        ("openssl.p12", Format::Pkcs12, STORE, None),
        ("openssl-legacy.p12", Format::Pkcs12, STORE, None),
        ("pbmac1-256.p12", Format::Pkcs12, STORE_ASCII, None),
        ("pbmac1-512.p12", Format::Pkcs12, STORE_ASCII, None),
    ];
    for (name, format, password, key_password) in whole {
        let found = identities(&fixture(name), Some(password), *key_password).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(found.format, *format, "{name}");
        assert_eq!(found.value.len(), 1, "{name}");
        assert!(found.value[0].chain == chain(), "{name}");
        assert_eq!(scalar(&found.value[0].key), the_scalar(), "{name}");
        assert_eq!(found.value[0].name.to_string(), "the private key server", "{name}");
        assert!(found.notices.is_empty(), "{name}: {:?}", found.notices);
    }
    let leaf_only: &[(&str, Option<&str>)] = &[
        ("openssl-rc2-128.p12", Some(STORE)),
        ("openssl-empty.p12", Some("")),
        ("openssl-plain.p12", None),
    ];
    for (name, password) in leaf_only {
        let found = identities(&fixture(name), *password, None).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(found.value[0].chain == chain()[..1], "{name}");
        assert_eq!(scalar(&found.value[0].key), the_scalar(), "{name}");
    }
}

#[test]
fn a_pem_key_of_every_kind_gives_the_same_identity() {
    for (name, password) in [
        ("ec.key", None),
        ("ec-sec1.key", None),
        ("ec-params.key", None),
        ("ec-pbes2.key", Some(KEY)),
        ("ec-pbes2-des3.key", Some(KEY)),
        ("ec-pbes1-3des.key", Some(KEY)),
        ("ec-pbes1-md5.key", Some(KEY)),
    ] {
        let text = files(&[name, "ec.pem", "middle.pem", "root.pem"]);
        let found = identities(&text, None, password).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(found.format, Format::Pem, "{name}");
        assert!(found.value[0].chain == chain(), "{name}");
        assert_eq!(scalar(&found.value[0].key), the_scalar(), "{name}");
    }
    for name in ["rsa.key", "rsa-pkcs1.key"] {
        let found = identities(&files(&[name, "rsa.pem"]), None, None).unwrap();
        let plain = pem::read(&fixture("rsa.key")).unwrap().keys.remove(0);
        let plain = plain.open(Format::Pem, None, None, &mut Effort::new()).unwrap();
        assert_eq!(found.value[0].key, plain, "{name}");
    }
}

#[test]
fn a_chain_is_put_in_order() {
    let text = files(&["root.pem", "rsa.pem", "ec.key", "middle.pem", "ec.pem"]);
    let found = identities(&text, None, None).unwrap();
    assert!(found.value[0].chain == chain());
    assert_eq!(found.notices, ["one certificate is of no key's chain and left aside"]);
    // The JDK's keys do not tell their public half: the leaf is then the one that issued none of the others.
    let java = identities(&fixture("java.jks"), Some(STORE), Some(KEY)).unwrap();
    let pem_key = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        base64(&java.value[0].key)
    );
    let text = [
        files(&["root.pem", "middle.pem"]),
        pem_key.into_bytes(),
        fixture("ec.pem"),
    ]
    .concat();
    assert_eq!(identities(&text, None, None).unwrap().value[0].chain, chain());
}

fn base64(bytes: &[u8]) -> String {
    let mut out = vec![0; bytes.len() * 2];
    <base64ct::Base64 as base64ct::Encoding>::encode(bytes, &mut out)
        .unwrap()
        .to_owned()
}

#[test]
fn two_keys_are_two_identities() {
    let found = identities(&fixture("two.p12"), Some(STORE_ASCII), None).unwrap();
    let names: Vec<String> = found.value.iter().map(|one| one.name.to_string()).collect();
    assert_eq!(names, ["the private key server", "the private key rsa"]);
    assert!(found.value[0].chain == chain());
    assert!(found.value[1].chain[0] == der_of("rsa.pem"));
    assert!(found.value[1].chain[1..] == chain()[1..]);
}

#[test]
fn a_truststore_of_every_kind() {
    let mut wanted = vec![der_of("middle.pem"), der_of("root.pem")];
    wanted.sort();
    for (name, password) in [
        ("java-trust.jks", Some(STORE)),
        ("java-trust.jks", None),
        ("java-trust.jceks", Some(STORE)),
        ("java-trust.p12", Some(STORE_ASCII)),
    ] {
        let mut found = anchors(&fixture(name), password).unwrap_or_else(|e| panic!("{name}: {e}"));
        found.value.0.sort();
        assert!(found.value.0 == wanted, "{name}");
        assert!(found.notices.is_empty(), "{name}");
    }
    for password in [None, Some(""), Some(STORE_ASCII), Some("any")] {
        let found = anchors(&fixture("keytool-open-trust.p12"), password).unwrap();
        assert!(found.value.0 == [der_of("root.pem")]);
    }
    let found = anchors(&files(&["root.pem", "middle.pem", "root.pem"]), None).unwrap();
    assert!(found.value.0 == [der_of("root.pem"), der_of("middle.pem")]);
    let found = anchors(&fixture("both.jks"), Some(STORE)).unwrap();
    assert!(found.value.0 == [der_of("root.pem")]);
    assert_eq!(
        found.notices,
        ["it also holds a private key, which a truststore has no use for"]
    );
    let found = anchors(&files(&["ec.key", "ec.pem", "middle.pem", "root.pem"]), None).unwrap();
    assert!(found.value.0 == [der_of("root.pem")]);
    let found = anchors(&fixture("openssl-certificates.p12"), Some(STORE)).unwrap();
    assert!(found.value.0 == [der_of("root.pem")]);
    assert!(
        found.notices[0].starts_with("its certificates lack the mark"),
        "{:?}",
        found.notices
    );
}

#[test]
fn pem_is_read_however_it_is_written() {
    let text = String::from_utf8(files(&["ec.key", "ec.pem"])).unwrap();
    let forms = [
        text.replace('\n', "\r\n"),
        text.replace('\n', "\r"),
        text.replace('\n', " "),
        text.replace('\n', "  \t\n\n"),
        text.replace('=', ""),
        format!("\u{feff}Bag Attributes\n    friendlyName: server\n# a comment\n{text}trailing words"),
        text.replace(
            "-----BEGIN CERTIFICATE-----",
            "subject=CN = x\n-----BEGIN X509 CERTIFICATE-----",
        )
        .replace("-----END CERTIFICATE-----", "-----END X509 CERTIFICATE-----"),
        text.replace(
            "-----BEGIN PRIVATE KEY-----\n",
            "-----BEGIN PRIVATE KEY-----\nComment: mine\nOther: x\n\n",
        ),
    ];
    for form in forms {
        let found = identities(form.as_bytes(), None, None).unwrap_or_else(|e| panic!("{e}: {form}"));
        assert_eq!(scalar(&found.value[0].key), the_scalar(), "{form}");
        assert!(found.value[0].chain == chain()[..1], "{form}");
    }
}

/// The same elements with indefinite lengths, and strings in pieces: as Bouncy Castle and Windows write.
fn ber(der: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = Der::new(der);
    while !rest.is_empty() {
        let element = rest.any().unwrap();
        if element.tag & 0x20 != 0 {
            out.extend([element.tag, 0x80]);
            out.extend(ber(element.content));
            out.extend([0, 0]);
        } else if element.tag == tag::OCTET_STRING && element.content.len() > 40 {
            let (first, second) = element.content.split_at(33);
            out.extend([0x24, 0x80]);
            out.extend(der::write(tag::OCTET_STRING, &[first]));
            out.extend(der::write(tag::OCTET_STRING, &[second]));
            out.extend([0, 0]);
        } else if element.tag == tag::context_primitive(0) {
            out.extend([tag::context(0), 0x80]);
            out.extend(der::write(tag::OCTET_STRING, &[element.content]));
            out.extend([0, 0]);
        } else {
            out.extend(element.whole);
        }
    }
    out
}

#[test]
fn pkcs12_may_be_ber() {
    for name in ["openssl.p12", "openssl-legacy.p12"] {
        let bytes = ber(&fixture(name));
        let found = identities(&bytes, Some(STORE), None).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(found.value[0].chain == chain());
        assert_eq!(scalar(&found.value[0].key), the_scalar());
    }
}

#[test]
fn passwords_have_their_sentences() {
    let wrong = "ssl.keystore.password is wrong";
    for name in [
        "java.jks",
        "java.jceks",
        "java.p12",
        "keytool.p12",
        "keytool-legacy.p12",
        "openssl.p12",
        "openssl-legacy.p12",
    ] {
        assert_eq!(
            said(identities(&fixture(name), Some("pässword"), None)),
            wrong,
            "{name}"
        );
        assert_eq!(said(identities(&fixture(name), Some(""), None)), wrong, "{name}");
        assert_eq!(
            said(identities(&fixture(name), None, None)),
            "it is encrypted: set ssl.keystore.password",
            "{name}"
        );
    }
    for name in ["java-trust.jks", "java-trust.p12"] {
        assert_eq!(
            said(anchors(&fixture(name), Some("x"))),
            "ssl.truststore.password is wrong",
            "{name}"
        );
    }
    assert_eq!(
        said(anchors(&fixture("java-trust.p12"), None)),
        "it is encrypted: set ssl.truststore.password"
    );
    for (name, password) in [("java.jks", STORE), ("java.jceks", STORE), ("java.p12", STORE_ASCII)] {
        let own = "the private key server does not open with the store's password; it has one of its own: set ssl.key.password";
        assert_eq!(said(identities(&fixture(name), Some(password), None)), own, "{name}");
        assert_eq!(
            said(identities(&fixture(name), Some(password), Some("x"))),
            "ssl.key.password is wrong: it does not open the private key server",
            "{name}"
        );
    }
    assert_eq!(
        said(identities(&fixture("java.jceks"), Some(STORE), Some(KEY))),
        "a key in JCEKS has a password of ASCII characters only, which ssl.key.password is not"
    );
    let encrypted = files(&["ec-pbes2.key", "ec.pem"]);
    assert_eq!(
        said(identities(&encrypted, None, None)),
        "the private key is encrypted: set ssl.key.password"
    );
    assert_eq!(
        said(identities(&encrypted, None, Some("kéy"))),
        "ssl.key.password is wrong: it does not open the private key"
    );
    assert_eq!(
        said(identities(&files(&["ec-traditional.key", "ec.pem"]), None, Some(KEY))),
        "the private key is encrypted in OpenSSL's old format (Proc-Type, DEK-Info), which Kafka does not read either; \
         make it PKCS#8: openssl pkcs8 -topk8 -in FILE -out FILE.p8"
    );
    assert_eq!(
        said(identities(&files(&["ec-scrypt.key", "ec.pem"]), None, Some(KEY))),
        "it is protected by the algorithm 1.3.6.1.4.1.11591.4.11, which is not read here; write it anew: \
         keytool -importkeystore, or openssl pkcs12"
    );
}

#[test]
fn what_is_missing_has_its_sentence() {
    let keystore = "it holds a private key and its certificate, and no trusted certificate: it is a keystore. \
                    A truststore holds the certificates of the CAs that sign the other side's certificates";
    for (name, password) in [("java.jks", STORE), ("java.p12", STORE_ASCII), ("openssl.p12", STORE)] {
        assert_eq!(said(anchors(&fixture(name), Some(password))), keystore, "{name}");
    }
    assert_eq!(said(anchors(&files(&["ec.key", "ec.pem"]), None)), keystore);
    for (name, password) in [
        ("java-trust.jks", STORE),
        ("java-trust.jceks", STORE),
        ("java-trust.p12", STORE_ASCII),
    ] {
        assert_eq!(
            said(identities(&fixture(name), Some(password), None)),
            "it holds 2 certificates and no private key: it is a truststore, not a keystore",
            "{name}"
        );
    }
    assert_eq!(
        said(identities(&fixture("ec.pem"), None, None)),
        "it holds a certificate and no private key: it is a truststore, not a keystore"
    );
    for (name, password) in [("java-empty.jks", STORE), ("java-empty.p12", STORE_ASCII)] {
        assert_eq!(
            said(anchors(&fixture(name), Some(password))),
            "it holds no certificate: nobody's certificate could be trusted",
            "{name}"
        );
        assert_eq!(
            said(identities(&fixture(name), Some(password), None)),
            "it holds neither a private key nor a certificate",
            "{name}"
        );
    }
    assert_eq!(
        said(identities(&fixture("openssl-key-only.p12"), Some(STORE), None)),
        "the private key alone has no certificate beside it: a keystore needs the key and its certificate chain"
    );
    assert_eq!(
        said(identities(&fixture("ec.key"), None, None)),
        "the private key has no certificate beside it: a keystore needs the key and its certificate chain"
    );
    for certificate in ["rsa.pem", "p521.pem"] {
        assert_eq!(
            said(identities(&files(&["ec.key", certificate]), None, None)),
            "the private key belongs to none of its certificates: key and certificate are of two different pairs"
        );
    }
    let request = "it is a certificate request: use the certificate that the CA made of it";
    assert_eq!(said(identities(&fixture("request.pem"), None, None)), request);
    assert_eq!(said(anchors(&fixture("request.pem"), None)), request);
}

#[test]
fn keys_that_do_not_sign_here_have_their_sentence() {
    for (key, certificate, kind) in [
        ("ed25519.key", "ec.pem", "Ed25519"),
        ("p521.key", "p521.pem", "ECDSA over P-521"),
        ("rsa1024.key", "rsa.pem", "RSA of 1024 bits"),
    ] {
        assert_eq!(
            said(identities(&files(&[key, certificate]), None, None)),
            format!(
                "its private key is {kind}; TLS here signs with ECDSA over P-256 or P-384, or with RSA of 2048 to 4096 bits"
            )
        );
    }
}

#[test]
fn bytes_that_are_no_store_have_their_sentence() {
    let both = |bytes: &[u8], sentence: &str| {
        assert_eq!(said(identities(bytes, Some(STORE), None)), sentence);
        assert_eq!(said(anchors(bytes, Some(STORE))), sentence);
    };
    both(b"", "it is empty");
    both(b"listeners=SSL://:9093\n", "it is none of JKS, JCEKS, PKCS#12 and PEM");
    both(&[0x7f; 4096], "it is none of JKS, JCEKS, PKCS#12 and PEM");
    let bare = "it is a single DER certificate; make it PEM: openssl x509 -inform der -in FILE -out FILE.pem";
    both(&der_of("ec.pem"), bare);
    let key = pem::read(&fixture("ec.key")).unwrap().keys.remove(0);
    let Sealed::Plain(key) = key.sealed else { panic!() };
    both(
        &key,
        "it is a single DER key; make it PEM, with its certificates beside it: openssl pkey -inform der -in FILE -out FILE.pem",
    );
    both(
        b"-----BEGIN PKCS7-----\nMA==\n-----END PKCS7-----\n",
        "it is PKCS#7, which only carries certificates; make it PEM: openssl pkcs7 -print_certs -in FILE -out FILE.pem",
    );
    both(
        b"-----BEGIN OPENSSH PRIVATE KEY-----\nMA==\n-----END OPENSSH PRIVATE KEY-----\n",
        "the key is in OpenSSH's format; make it PKCS#8: ssh-keygen -p -m PKCS8 -f FILE",
    );
    both(
        b"-----BEGIN CERTIFICATE-----\nM*==\n-----END CERTIFICATE-----\n",
        "this PEM store is damaged: its certificate cannot be read",
    );
    both(
        b"-----BEGIN CERTIFICATE-----\nMA==\n-----END PRIVATE KEY-----\n",
        "this PEM store is damaged: its END line cannot be read",
    );
}

#[test]
fn a_store_that_was_cut_says_so_wherever_it_was_cut() {
    for (name, password) in [
        ("java.jks", STORE),
        ("java-trust.jceks", STORE),
        ("openssl.p12", STORE),
        ("keytool.p12", STORE_ASCII),
    ] {
        let bytes = fixture(name);
        for end in 12..bytes.len() {
            let mistake = identities(&bytes[..end], Some(password), Some(KEY)).unwrap_err();
            assert!(
                matches!(mistake, Mistake::Truncated(_)),
                "{name} cut at {end}: {mistake}"
            );
        }
    }
    let text = files(&["ec.key", "ec.pem"]);
    for end in 12..text.len() - 6 {
        let mistake = identities(&text[..end], None, None).unwrap_err();
        let whole_key = matches!(mistake, Mistake::KeyWithoutCertificate(_)) && end >= 236;
        assert!(
            whole_key || matches!(mistake, Mistake::Truncated(_)),
            "cut at {end}: {mistake}"
        );
    }
}

/// Goal: no damage is taken for health. Method: each byte of each store is changed; what is read afterwards is a mistake, or the same as
/// before. (JKS and PKCS#12 have a check over everything.)
#[test]
fn a_store_that_was_changed_is_not_believed() {
    for (name, password, key_password, step) in [
        ("java.jks", STORE, Some(KEY), 1),
        ("openssl-plain.p12", "", None, 1),
        ("openssl-legacy.p12", STORE, None, 211),
        ("keytool.p12", STORE_ASCII, None, 499),
    ] {
        let bytes = fixture(name);
        let before = identities(&bytes, Some(password), key_password).unwrap().value;
        for at in (0..bytes.len()).step_by(step) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            let Ok(after) = identities(&changed, Some(password), key_password) else {
                continue;
            };
            if name != "openssl-plain.p12" {
                assert!(after.value[0].chain == before[0].chain, "{name} at {at}");
                assert_eq!(scalar(&after.value[0].key), scalar(&before[0].key), "{name} at {at}");
            }
        }
    }
}

/// Read without its password, as Java allows, a JKS store is not checked as a whole; each key still is.
#[test]
fn a_changed_key_does_not_open() {
    let bytes = fixture("java.jks");
    let mut contents = jks::read(&bytes, Format::Jks, None, Purpose::Keystore).unwrap();
    let mut entry = contents.keys.remove(0);
    assert!(entry.open(Format::Jks, None, Some(KEY), &mut Effort::new()).is_ok());
    let Sealed::Jks(data) = &mut entry.sealed else { panic!() };
    // Among the last bytes of the key, which are its private number's.
    let at = data.len() - 25;
    data[at] ^= 1;
    assert_eq!(
        entry.open(Format::Jks, None, Some(KEY), &mut Effort::new()),
        Err(Mistake::WrongKeyPassword(KeyName(Some("server".into()))))
    );
}

#[test]
fn rounds_are_bounded() {
    let mut costly = String::from_utf8(fixture("ec-pbes2.key")).unwrap();
    let Sealed::Pkcs8(der) = pem::read(costly.as_bytes()).unwrap().keys.remove(0).sealed else {
        panic!()
    };
    // 2048 rounds, become 2^27 by a change of the INTEGER's bytes: `02 02 08 00` is not long enough, so the structure is written anew.
    let at = der.windows(4).position(|w| w == [2, 2, 8, 0]).unwrap();
    let mut longer = der.to_vec();
    longer.splice(at..at + 4, [2, 4, 8, 0, 0, 0]);
    // Each of the five structures around it grew by two: PBKDF2-params, kdf, PBES2-params, algorithm, and the whole.
    for (tag_at, _) in der.iter().enumerate().filter(|(i, byte)| **byte == 0x30 && *i < at) {
        let length_at = if der[tag_at + 1] == 0x81 {
            tag_at + 2
        } else {
            tag_at + 1
        };
        longer[length_at] += 2;
    }
    costly = format!(
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\n{}\n-----END ENCRYPTED PRIVATE KEY-----\n",
        base64(&longer)
    );
    costly.push_str(&String::from_utf8(fixture("ec.pem")).unwrap());
    assert_eq!(
        said(identities(costly.as_bytes(), None, Some(KEY))),
        "its encryption asks for more rounds or memory than any tool writes: the file is damaged, or meant to stall its reader"
    );
}

#[test]
fn files_have_their_sentences() {
    let directory = std::env::temp_dir().join(format!("skerry-keystore-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = |name: &str| -> PathBuf { directory.join(name) };
    assert_eq!(file(&path("none")).unwrap_err().to_string(), "there is no such file");
    assert_eq!(file(&directory).unwrap_err().to_string(), "it is no regular file");
    assert_eq!(
        file(Path::new("/dev/zero")).unwrap_err().to_string(),
        "it is no regular file"
    );
    std::fs::write(path("large"), vec![0; STORE_BYTES_MAX + 1]).unwrap();
    assert_eq!(
        file(&path("large")).unwrap_err().to_string(),
        "it is larger than 2 MiB, which no store needs"
    );
    std::fs::write(path("full"), vec![0; STORE_BYTES_MAX]).unwrap();
    assert_eq!(file(&path("full")).unwrap().len(), STORE_BYTES_MAX);
    assert_eq!(
        file(&path("full").join("below")).unwrap_err().to_string(),
        "it cannot be read: Not a directory (os error 20)"
    );
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_format_other_than_told_is_told() {
    let path = |name: &'static str| Some(Path::new(name));
    let said = |found, told, name| mismatch(found, told, path(name));
    assert_eq!(said(Format::Pkcs12, Some("pkcs12"), "a.jks"), None);
    assert_eq!(said(Format::Jks, Some("JKS"), "a"), None);
    assert_eq!(
        said(Format::Pkcs12, Some("JKS"), "a.p12").as_deref(),
        Some("it is PKCS#12, not JKS, and read as what it is")
    );
    assert_eq!(
        said(Format::Pkcs12, None, "server.JKS").as_deref(),
        Some("it is PKCS#12, not JKS as it is called, and read as what it is")
    );
    assert_eq!(said(Format::Pem, None, "server.crt"), None);
    assert_eq!(said(Format::Pem, None, "server"), None);
    assert_eq!(mismatch(Format::Pem, None, None), None);
}
