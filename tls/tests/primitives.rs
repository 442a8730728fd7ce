//! Every provider against the same demands.
#![cfg(all(feature = "fast", feature = "mbedtls"))]

use skerry_tls::crypto::fast::Fast;
use skerry_tls::crypto::mbedtls::Mbedtls;
use skerry_tls::crypto::{Aead, AeadAlgorithm, CryptoError, Exchange, Hash, HashAlgorithm, Provider, Random};
use skerry_tls::suite::Group;

/// Bytes that count upwards from a seed: enough where a test needs different values and no secret.
struct Counting(u8);

impl Random for Counting {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError> {
        for byte in out {
            *byte = self.0;
            self.0 = self.0.wrapping_add(1);
        }
        Ok(())
    }
}

fn exchanges_agree<P: Provider>(provider: &P) {
    for &group in Group::ALL {
        let ours = provider.exchange(group, &mut Counting(1)).unwrap();
        let theirs = provider.exchange(group, &mut Counting(99)).unwrap();
        assert_eq!(ours.share().bytes().len(), group.share_bytes());
        let (our_share, their_share) = (ours.share(), theirs.share());
        let secret = ours.agree(their_share.bytes()).unwrap();
        assert_eq!(secret.bytes().len(), 32);
        assert!(theirs.agree(our_share.bytes()).unwrap().is(secret.bytes()));
    }
}

fn aeads_open_what_they_seal<P: Provider>(provider: &P) {
    for algorithm in [
        AeadAlgorithm::Aes128Gcm,
        AeadAlgorithm::Aes256Gcm,
        AeadAlgorithm::ChaCha20Poly1305,
    ] {
        let aead = provider.aead(algorithm, &[7; 32][..algorithm.key_bytes()]).unwrap();
        let mut data = *b"some plaintext and a tag: ................";
        let plain = data;
        let (text, tag) = data.split_last_chunk_mut::<16>().unwrap();
        *tag = aead.seal(&[3; 12], b"header", text).unwrap();
        assert_ne!(data[..26], plain[..26]);
        let mut out = [0; 26];
        aead.open_into(&[3; 12], b"header", &data, &mut out).unwrap();
        assert_eq!(out, plain[..26]);
        let mut wrong = data;
        assert_eq!(aead.open(&[3; 12], b"other", &mut wrong), Err(CryptoError::Rejected));
        assert_eq!(wrong[..26], [0; 26]);
        aead.open(&[3; 12], b"header", &mut data).unwrap();
        assert_eq!(data[..26], plain[..26]);
    }
}

fn hashes_go_on_after_a_digest<P: Provider>(provider: &P) {
    for algorithm in [HashAlgorithm::Sha256, HashAlgorithm::Sha384] {
        let mut whole = provider.hash(algorithm).unwrap();
        whole.update(b"onetwo");
        let mut parts = provider.hash(algorithm).unwrap();
        parts.update(b"one");
        let one = parts.digest();
        let mut fork = parts.fork().unwrap();
        fork.update(b"two");
        assert!(fork.digest().is(whole.digest().bytes()));
        assert!(parts.digest().is(one.bytes()));
        assert_eq!(one.bytes().len(), algorithm.bytes());
    }
}

#[test]
fn fast() {
    exchanges_agree(&Fast);
    aeads_open_what_they_seal(&Fast);
    hashes_go_on_after_a_digest(&Fast);
}

#[test]
fn mbedtls() {
    let mbedtls = Mbedtls::new().unwrap();
    exchanges_agree(&mbedtls);
    aeads_open_what_they_seal(&mbedtls);
    hashes_go_on_after_a_digest(&mbedtls);
}
