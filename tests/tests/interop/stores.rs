//! Stores made this moment by the machine's own keytools and OpenSSL, by the recipe of the broker's fixtures, are read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use skerry_broker::keystore::{self, Format};

const STORE: &str = "störe-pässwörd→";
const KEY: &str = "kéy-pässwörd";
const STORE_ASCII: &str = "store pass";
const KEY_ASCII: &str = "key pass";

/// Folders of every JDK on this machine, each once.
fn jdks() -> BTreeSet<PathBuf> {
    let listed = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let on_path = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
    listed
        .map(|entry| entry.path().join("bin"))
        .chain(on_path)
        .filter_map(|bin| fs::canonicalize(bin.join("keytool")).ok())
        .filter_map(|keytool| Some(keytool.parent()?.to_owned()))
        .filter(|bin| bin.join("javac").exists())
        .collect()
}

fn der_of(pem: &Path) -> Vec<u8> {
    let text = fs::read(pem).expect("a certificate");
    keystore::anchors(&text, None).expect("a certificate").value.0.remove(0)
}

/// The last 32 bytes of a P-256 key without its public half, or the 32 that come before it: what all forms of a key have in common.
fn has_scalar_of(key: &[u8], other: &[u8]) -> bool {
    let marker = [0x02, 0x01, 0x01, 0x04, 0x20];
    let scalar = |der: &[u8]| -> Option<[u8; 32]> {
        let at = der.windows(marker.len()).position(|window| window == marker)? + marker.len();
        der.get(at..at + 32)?.try_into().ok()
    };
    scalar(key).is_some() && scalar(key) == scalar(other)
}

#[test]
#[ignore = "needs JDKs and OpenSSL: tests/setup.sh test"]
fn stores_of_this_machine_s_tools_are_read() {
    let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../broker/src/keystore/fixtures/make.sh");
    let jdks = jdks();
    assert!(!jdks.is_empty(), "no JDK");
    for (number, jdk) in jdks.iter().enumerate() {
        println!("{}", jdk.display());
        let out = env::temp_dir().join(format!("skerry-stores-{}-{number}", std::process::id()));
        let path = env::join_paths(
            [jdk.clone()]
                .into_iter()
                .chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
        );
        let made = Command::new("bash")
            .arg(&recipe)
            .env("STORES_OUT", &out)
            .env("PATH", path.expect("a path"))
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("bash");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

        let chain = ["ec.pem", "middle.pem", "root.pem"].map(|name| der_of(&out.join(name)));
        let plain = [fs::read(out.join("ec.key")), fs::read(out.join("ec.pem"))].map(|part| part.expect("a file"));
        let key = keystore::identities(&plain.concat(), None, None)
            .expect("PEM")
            .value
            .remove(0)
            .key;
        for (name, format, password, key_password, certificates) in [
            ("java.jks", Format::Jks, Some(STORE), Some(KEY), 3),
            ("both.jks", Format::Jks, Some(STORE), Some(KEY), 3),
            ("java.jceks", Format::Jceks, Some(STORE), Some(KEY_ASCII), 3),
            ("java.p12", Format::Pkcs12, Some(STORE_ASCII), Some(KEY_ASCII), 3),
            ("keytool.p12", Format::Pkcs12, Some(STORE_ASCII), None, 3),
            ("keytool-legacy.p12", Format::Pkcs12, Some(STORE_ASCII), None, 3),
            ("pbmac1-256.p12", Format::Pkcs12, Some(STORE_ASCII), None, 3),
            ("openssl.p12", Format::Pkcs12, Some(STORE), None, 3),
            ("openssl-legacy.p12", Format::Pkcs12, Some(STORE), None, 3),
            ("openssl-rc2-128.p12", Format::Pkcs12, Some(STORE), None, 1),
            ("openssl-empty.p12", Format::Pkcs12, Some(""), None, 1),
            ("openssl-plain.p12", Format::Pkcs12, None, None, 1),
        ] {
            let bytes = keystore::file(&out.join(name)).expect("a store");
            let found = keystore::identities(&bytes, password, key_password).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(found.format, format, "{name}");
            assert!(found.value[0].chain == chain[..certificates], "{name}");
            assert!(has_scalar_of(&found.value[0].key, &key), "{name}");
        }
        for name in [
            "ec-pbes2.key",
            "ec-pbes2-des3.key",
            "ec-pbes1-3des.key",
            "ec-pbes1-md5.key",
        ] {
            let text = [fs::read(out.join(name)).expect("a key"), plain[1].clone()].concat();
            let found = keystore::identities(&text, None, Some(KEY)).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(has_scalar_of(&found.value[0].key, &key), "{name}");
        }
        for (name, password) in [
            ("java-trust.jks", STORE),
            ("java-trust.jceks", STORE),
            ("java-trust.p12", STORE_ASCII),
            ("keytool-open-trust.p12", "any"),
        ] {
            let bytes = keystore::file(&out.join(name)).expect("a store");
            let found = keystore::anchors(&bytes, Some(password)).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(found.value.0.contains(&chain[2]), "{name}");
        }
        // The CAs that come with this JDK, in the format that it has them in.
        let cacerts = jdk.join("../lib/security/cacerts");
        let bytes = keystore::file(&cacerts).expect("the JDK's CAs");
        let found = keystore::anchors(&bytes, Some("changeit")).unwrap_or_else(|e| panic!("cacerts: {e}"));
        println!("cacerts: {}, {} CAs", found.format, found.value.0.len());
        assert!(found.value.0.len() > 50);
        fs::remove_dir_all(&out).expect("the folder goes");
    }
}
