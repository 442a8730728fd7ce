//! Loading, warning and reloading over the stores in `keystore/fixtures`, and the certificates for development.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use skerry_core::time::Millis;
use skerry_tls::certificate::{Role, ServerName, Verified, Verifier};
use skerry_tls::crypto::Provider;
use skerry_tls::crypto::system::SystemRandom;
use skerry_tls::x509::{ByMbedtls, Policy, TrustStore};

use super::*;

/// 2027-01-01, within the dates of every fixture.
const NOW: Timestamp = Timestamp(1_798_761_600_000);
const DAY_MS: i64 = 86_400_000;
const STORE: &str = "störe-pässwörd→";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/keystore/fixtures")
        .join(name)
}

/// A directory of its own for each test, gone when the test ends.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("skerry-tls-setup-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    fn put(&self, file: &str, fixtures: &[&str]) -> PathBuf {
        let bytes: Vec<u8> = fixtures
            .iter()
            .flat_map(|name| fs::read(fixture(name)).unwrap())
            .collect();
        fs::write(self.path(file), bytes).unwrap();
        self.path(file)
    }

    fn config(&self, settings: &str) -> Config {
        let pairs: Vec<(&str, &str)> = settings.lines().filter_map(|line| line.split_once('=')).collect();
        Config::with(&self.0, &pairs).unwrap()
    }

    fn load(&self, settings: &str) -> Result<(TlsSetup, Vec<String>), Vec<Problem>> {
        TlsSetup::load(&self.config(settings), NOW, &mut SystemRandom)
    }

    fn setup(&self, settings: &str) -> TlsSetup {
        self.load(settings).unwrap_or_else(|problems| panic!("{problems:?}")).0
    }

    fn problems(&self, settings: &str) -> Vec<String> {
        let problems = self.load(settings).err().unwrap();
        problems.into_iter().map(|problem| problem.0).collect()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn ssl(keystore: &Path, more: &str) -> String {
    format!(
        "listeners=SSL://127.0.0.1:0\nssl.keystore.location={}\n{more}",
        keystore.display()
    )
}

#[test]
fn a_listener_has_keys_that_sign_on_both_providers() {
    let directory = Directory::new("providers");
    for provider in ["fast", "mbedtls"] {
        for (store, password) in [("two.p12", "store pass"), ("openssl.p12", STORE)] {
            let more = format!(
                "ssl.keystore.password={password}\nskerry.tls.provider={provider}\nssl.truststore.location={}\nssl.client.auth=required\n",
                fixture("root.pem").display()
            );
            let (setup, notices) = directory
                .load(&ssl(&fixture(store), &more))
                .unwrap_or_else(|p| panic!("{p:?}"));
            assert_eq!(notices, Vec::<String>::new());
            let loaded = setup.listener(0).unwrap();
            assert_eq!(setup.provider.name(), provider);
            assert_eq!(loaded.settings.identities.len(), if store == "two.p12" { 2 } else { 1 });
            assert_eq!(loaded.settings.identities[0].chain.len(), 3);
            assert_eq!(loaded.facts[0].details.subject.as_str(), "CN=Skerry Test Server");
            assert_eq!(loaded.loaded_at, NOW);
            assert!(loaded.settings.verifier.is_some());
        }
    }
}

#[test]
fn every_store_s_mistake_names_its_setting_and_file() {
    let directory = Directory::new("mistakes");
    let p12 = fixture("openssl.p12");
    assert_eq!(
        directory.problems(&ssl(&p12, "ssl.keystore.password=wrong\n")),
        [format!(
            "--override ssl.keystore.location={}: ssl.keystore.password is wrong",
            p12.display()
        )]
    );
    assert_eq!(
        directory.problems(&ssl(
            Path::new("/none/server.p12"),
            "ssl.truststore.location=/none/ca.pem\n"
        )),
        ["--override ssl.keystore.location=/none/server.p12: there is no such file"]
    );
    let trust = format!(
        "ssl.keystore.password={STORE}\nssl.client.auth=required\nssl.truststore.location={}\n",
        p12.display()
    );
    let problems = directory.problems(&ssl(&p12, &format!("{trust}ssl.truststore.password={STORE}\n")));
    assert!(
        problems[0].contains("ssl.truststore.location")
            && problems[0].ends_with("that sign the other side's certificates"),
        "{problems:?}"
    );
    let key = fs::read_to_string(fixture("ec.key")).unwrap().replace('\n', " ");
    let other = fs::read_to_string(fixture("rsa.pem")).unwrap().replace('\n', " ");
    let inline =
        format!("listeners=SSL://127.0.0.1:0\nssl.keystore.key={key}\nssl.keystore.certificate.chain={other}\n");
    assert_eq!(
        directory.problems(&inline),
        [
            "--override ssl.keystore.key: the private key belongs to none of its certificates: key and certificate are of two different pairs"
        ]
    );
}

/// A key over a curve that does not tell its public half, as the JDK writes them: that it is not the certificate's is seen when it signs.
#[test]
fn a_key_that_hides_its_public_half_is_tried() {
    let directory = Directory::new("hidden");
    // PKCS#8 { ECPrivateKey { 1, another private number } }, without the public half.
    let hidden = "MEECAQAwEwYHKoZIzj0CAQYIKoZIzj0DAQcEJzAlAgEBBCABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fIA==";
    let ours = fs::read_to_string(fixture("ec.pem")).unwrap();
    let path = directory.path("hidden.pem");
    fs::write(
        &path,
        format!("-----BEGIN PRIVATE KEY-----\n{hidden}\n-----END PRIVATE KEY-----\n{ours}"),
    )
    .unwrap();
    for provider in ["fast", "mbedtls"] {
        assert_eq!(
            directory.problems(&ssl(&path, &format!("skerry.tls.provider={provider}\n"))),
            [format!(
                "--override ssl.keystore.location={}: the private key belongs to none of its certificates: key and certificate are of two \
                 different pairs",
                path.display()
            )]
        );
    }
}

#[test]
fn warnings_tell_of_formats_dates_and_names() {
    let directory = Directory::new("warnings");
    let path = directory.put("server.jks", &["ec.key", "ec.pem", "middle.pem"]);
    let settings = format!(
        "listeners=SSL://0.0.0.0:0\nadvertised.listeners=SSL://edge.local:9093\nssl.keystore.type=PKCS12\nssl.keystore.location={}\n",
        path.display()
    );
    let (setup, notices) = directory.load(&settings).unwrap();
    let place = format!("--override ssl.keystore.location={}", path.display());
    assert_eq!(
        notices,
        [
            format!("{place}: it is PEM, not PKCS12, and read as what it is"),
            format!(
                "{place}: The certificate's subjectAltName lacks \"edge.local\", which is advertised: clients that check names refuse it."
            ),
        ]
    );
    let end = setup.listener(0).unwrap().facts[0].not_after;
    let late = |days: i64| setup.warnings(Timestamp(end.0 - days * DAY_MS + 1)).join("\n");
    assert!(!late(31).contains("expire"), "{}", late(31));
    assert!(late(30).contains("expires within 30 days"), "{}", late(30));
    assert!(late(7).contains("expires within 7 days"), "{}", late(7));
    assert!(late(1).contains("expires within a day"), "{}", late(1));
    assert!(late(0).contains("expired at"), "{}", late(0));
    assert!(setup.warnings(Timestamp(0)).join("\n").contains("is not valid before"));
}

#[test]
fn a_reload_takes_what_is_good_and_keeps_what_it_has_otherwise() {
    let directory = Directory::new("reload");
    let keystore = directory.put("server.pem", &["ec.key", "ec.pem", "middle.pem"]);
    let truststore = directory.put("ca.pem", &["root.pem"]);
    let more = format!("ssl.truststore.location={}\n", truststore.display());
    let mut setup = directory.setup(&ssl(&keystore, &more));
    let first = Rc::clone(&setup.listener(0).unwrap().settings);
    assert_eq!(setup.reload(NOW, &mut SystemRandom), Ok(Changes::default()));

    // Each of these keeps what was.
    let place = format!("--override ssl.keystore.location={}", keystore.display());
    let trust_place = format!("--override ssl.truststore.location={}", truststore.display());
    let before = Rc::clone(&setup.listener(0).unwrap().settings);
    let stays = |setup: &mut TlsSetup, wanted: &str| {
        let problems = setup.reload(Timestamp(NOW.0 + 1), &mut SystemRandom).unwrap_err();
        assert_eq!(problems, [Problem(wanted.into())]);
        assert!(Rc::ptr_eq(&setup.listener(0).unwrap().settings, &before));
        assert_eq!(setup.listener(0).unwrap().loaded_at, NOW);
    };
    fs::write(&keystore, "garbage").unwrap();
    stays(
        &mut setup,
        &format!("{place}: it is none of JKS, JCEKS, PKCS#12 and PEM"),
    );
    fs::remove_file(&keystore).unwrap();
    stays(&mut setup, &format!("{place}: there is no such file"));
    directory.put("server.pem", &["ec.key", "rsa.pem", "middle.pem"]);
    stays(
        &mut setup,
        &format!(
            "{place}: the private key belongs to none of its certificates: key and certificate are of two different pairs"
        ),
    );
    let whole = fs::read(fixture("ec.key")).unwrap();
    fs::write(&keystore, &whole[..whole.len() / 2]).unwrap();
    stays(
        &mut setup,
        &format!("{place}: this PEM store ends too early: the file was cut; copy it again"),
    );
    // A good keystore with a bad truststore is not taken either.
    directory.put("server.pem", &["rsa.key", "rsa.pem", "middle.pem"]);
    fs::write(&truststore, "").unwrap();
    stays(&mut setup, &format!("{trust_place}: it is empty"));

    directory.put("ca.pem", &["root.pem"]);
    let changes = setup.reload(Timestamp(NOW.0 + 2), &mut SystemRandom).unwrap();
    assert_eq!(changes.listeners, [0]);
    assert!(
        changes
            .notices
            .last()
            .unwrap()
            .starts_with("TLS of listener SSL was loaded anew: subject \"CN=Skerry Test RSA\""),
        "{changes:?}"
    );
    assert!(!Rc::ptr_eq(&setup.listener(0).unwrap().settings, &first));
    // Whom it trusts is looked at too.
    directory.put("ca.pem", &["root.pem", "middle.pem"]);
    assert_eq!(setup.reload(NOW, &mut SystemRandom).unwrap().listeners, [0]);
}

#[test]
fn a_changed_file_is_seen_once_it_stands_still() {
    let directory = Directory::new("watch");
    let keystore = directory.put("server.pem", &["ec.key", "ec.pem"]);
    let mut setup = directory.setup(&ssl(&keystore, ""));
    let at = |seconds: u64| Instant::from_micros(1_000_000 * (seconds + 100));
    assert!(!setup.have_files_changed(at(0)));
    directory.put("server.pem", &["rsa.key", "rsa.pem"]);
    assert!(!setup.have_files_changed(at(1)), "it is too early to look again");
    assert!(!setup.have_files_changed(at(5)), "it has only just changed");
    assert!(!setup.have_files_changed(at(6)));
    assert!(setup.have_files_changed(at(10)));
    // Another file in its place, of the same size and date, is another all the same.
    setup.reload(NOW, &mut SystemRandom).unwrap();
    assert!(!setup.have_files_changed(at(15)));
    let times = fs::File::open(&keystore)
        .unwrap()
        .metadata()
        .unwrap()
        .modified()
        .unwrap();
    let other = directory.put("other.pem", &["rsa.key", "rsa.pem"]);
    fs::File::options()
        .write(true)
        .open(&other)
        .unwrap()
        .set_modified(times)
        .unwrap();
    fs::rename(&other, &keystore).unwrap();
    assert!(!setup.have_files_changed(at(20)));
    assert!(setup.have_files_changed(at(25)));
    // And so is one that was written in place, its size and date as before.
    setup.reload(NOW, &mut SystemRandom).unwrap();
    let bytes = fs::read(&keystore).unwrap();
    fs::write(&keystore, &bytes).unwrap();
    let file = fs::File::options().write(true).open(&keystore).unwrap();
    file.set_modified(times).unwrap();
    assert!(!setup.have_files_changed(at(30)));
    assert!(setup.have_files_changed(at(35)));
    // After a failure it is not tried again until the file changes again.
    fs::write(&keystore, "garbage").unwrap();
    assert!(!setup.have_files_changed(at(40)));
    assert!(setup.have_files_changed(at(45)));
    assert!(setup.reload(NOW, &mut SystemRandom).is_err());
    assert!(!setup.have_files_changed(at(50)));
    assert!(!setup.have_files_changed(at(55)));
    fs::remove_file(&keystore).unwrap();
    assert!(!setup.have_files_changed(at(60)));
    assert!(setup.have_files_changed(at(65)));
    assert_eq!(watch::EVERY, Millis(5_000));
}

#[test]
fn principals_are_made_by_the_listener_s_rules() {
    let directory = Directory::new("principals");
    let keystore = directory.put("server.pem", &["ec.key", "ec.pem"]);
    let setup = directory.setup(&ssl(&keystore, "ssl.principal.mapping.rules=RULE:^CN=(.*?),.*$/$1/L\n"));
    let settings = &setup.listener(0).unwrap().settings;
    let peer = |subject: &str, cut| Verified {
        subject: subject.try_into().unwrap(),
        cut,
        not_after: NOW,
        fingerprint: [0; 32],
    };
    assert_eq!(settings.principal(None).as_deref(), Some("User:ANONYMOUS"));
    assert_eq!(
        settings.principal(Some(&peer("CN=Duke,O=Sun", false))).as_deref(),
        Some("User:duke")
    );
    assert_eq!(settings.principal(Some(&peer("O=Sun", false))), None);
    assert_eq!(settings.principal(Some(&peer("CN=Duke,O=Sun", true))), None);
}

#[test]
fn development_certificates_are_made_once_and_kept() {
    let directory = Directory::new("develop");
    let settings = "listeners=SSL://127.0.0.1:0\n";
    let (setup, notices) = directory.load(settings).unwrap_or_else(|p| panic!("{p:?}"));
    let ca = Development::ca(&directory.0);
    assert_eq!(notices, [format!("a development CA was made: {}", ca.display())]);
    let first = setup.listener(0).unwrap().settings.identities[0].chain.clone();

    let read = |file: &Path| fs::read(file).unwrap();
    let anchors = crate::keystore::anchors(&read(&ca), None).unwrap().value.0;
    let anchors: Vec<&[u8]> = anchors.iter().map(Vec::as_slice).collect();
    let (trust, _) = TrustStore::new(&anchors, Policy::default(), ByMbedtls);
    let chain: Vec<&[u8]> = first.iter().map(Vec::as_slice).collect();
    for name in [
        ServerName::Dns("localhost"),
        ServerName::Ip("127.0.0.1".parse().unwrap()),
        ServerName::Ip("::1".parse().unwrap()),
    ] {
        trust.verify(&chain, Role::Server, Some(name), NOW).unwrap();
    }
    let client = crate::keystore::identities(&read(&directory.path("tls/client.pem")), None, None)
        .unwrap()
        .value
        .remove(0);
    let chain: Vec<&[u8]> = client.chain.iter().map(Vec::as_slice).collect();
    assert_eq!(
        trust.verify(&chain, Role::Client, None, NOW).unwrap().subject,
        "CN=skerry-client"
    );
    for (file, mode) in [
        ("ca.key", 0o600),
        ("server.pem", 0o600),
        ("client.pem", 0o600),
        ("ca.pem", 0o644),
        ("client.properties", 0o644),
    ] {
        let permissions = fs::metadata(directory.path("tls").join(file)).unwrap().permissions();
        assert_eq!(permissions.mode() & 0o777, mode, "{file}");
    }

    let properties = Development::properties(&directory.0);
    let (config, notices) = crate::config::client_from_file(&properties).unwrap();
    assert!(config.tls.is_some_and(|tls| tls.keystore.is_some()) && notices.is_empty());
    fs::write(&properties, "mine").unwrap();

    let later = |days: i64| {
        let config = directory.config(settings);
        let (setup, notices) = TlsSetup::load(&config, Timestamp(NOW.0 + days * DAY_MS), &mut SystemRandom).unwrap();
        (setup.listener(0).unwrap().settings.identities[0].chain.clone(), notices)
    };
    assert_eq!(later(300), (first.clone(), vec![]));
    assert_eq!(read(&properties), b"mine");
    let (renewed, notices) = later(340);
    assert_eq!(notices, Vec::<String>::new());
    assert_ne!(renewed[0], first[0]);
    assert_eq!(renewed[1], first[1], "the CA stays");
    let (_, notices) = later(3640);
    assert_eq!(notices.len(), 1, "the CA itself ends: {notices:?}");
    // What somebody broke is made anew.
    fs::write(directory.path("tls/server.pem"), "garbage").unwrap();
    assert_eq!(later(3640).1, Vec::<String>::new());
    fs::write(directory.path("tls/ca.key"), "garbage").unwrap();
    assert_eq!(later(3640).1.len(), 1);
}
