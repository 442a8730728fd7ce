//! What passwords open: the encryption of PKCS#5 and PKCS#12, the MAC of PKCS#12, and the JDK's two own ways.
//!
//! Source: RFC 8018 (PBES1, PBES2), RFC 7292 appendices B and C, RFC 9579 (PBMAC1); `sun.security.provider.KeyProtector` and
//! `com.sun.crypto.provider.KeyProtector` of the JDK for JKS and JCEKS. Not read: RC4, PBES2 with RC2, scrypt (which Java does not know).
//!
//! Old algorithms are here because files that use them are there; nothing is written with them.

use aes::{Aes128Dec, Aes192Dec, Aes256Dec};
use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, InnerIvInit, KeyIvInit};
use des::{Des, TdesEde3};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use pbkdf2::pbkdf2_hmac;
use rc2::Rc2;
use sha1::Sha1;
use sha2::digest::Digest;
use sha2::{Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use zeroize::Zeroizing;

use super::der::{Algorithm, Der, Dotted, Malformed, tag};
use super::mistake::Mistake;

/// Rounds of hashing that one file may ask for. The JDK refuses more than five million for one key; tools write 1 to 600,000.
pub const ROUNDS_MAX: u64 = if cfg!(fuzzing) { 5_000 } else { 10_000_000 };

/// What is left of [`ROUNDS_MAX`] while a file is read.
#[derive(Debug)]
pub struct Effort {
    rounds: u64,
}

impl Effort {
    /// A whole file's.
    pub const fn new() -> Self {
        Self { rounds: ROUNDS_MAX }
    }

    /// Takes `rounds` for each of `keys` derivations. When full: [`Failed::Costly`].
    fn spend(&mut self, rounds: u64, keys: u64) -> Result<u32, Failed> {
        let all = rounds.saturating_mul(keys);
        self.rounds = self.rounds.checked_sub(all).ok_or(Failed::Costly)?;
        match u32::try_from(rounds) {
            Ok(rounds @ 1..) => Ok(rounds),
            _ => Err(Failed::Malformed),
        }
    }
}

/// A password in the forms in which algorithms take it.
pub struct Password {
    utf8: Zeroizing<Vec<u8>>,
    /// UTF-16, big endian, and two zero bytes (RFC 7292 B.1).
    bmp: Zeroizing<Vec<u8>>,
}

impl Password {
    /// The usual forms.
    pub fn new(text: &str) -> Self {
        let mut bmp = utf16(text);
        bmp.extend_from_slice(&[0, 0]);
        Self {
            utf8: Zeroizing::new(text.as_bytes().to_vec()),
            bmp,
        }
    }

    /// The empty password as those write it for whom it has no zero bytes at its end either.
    pub fn none() -> Self {
        Self {
            utf8: Zeroizing::new(Vec::new()),
            bmp: Zeroizing::new(Vec::new()),
        }
    }
}

/// UTF-16, big endian, as the JDK has characters.
pub fn utf16(text: &str) -> Zeroizing<Vec<u8>> {
    // Twice the bytes of UTF-8 and two zero bytes are always enough: a buffer that grows would leave copies behind.
    let mut out = Zeroizing::new(Vec::with_capacity(text.len() * 2 + 2));
    for unit in text.encode_utf16() {
        out.extend_from_slice(&unit.to_be_bytes());
    }
    out
}

/// Why something did not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The password is wrong; or the file was changed, which cannot be told apart.
    Wrong,
    /// The algorithm is not read here: its identifier.
    Unknown(String),
    /// More rounds than [`ROUNDS_MAX`].
    Costly,
    /// Its parameters make no sense.
    Malformed,
    /// The password has characters that the algorithm cannot take.
    Characters,
}

impl From<Malformed> for Failed {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl Failed {
    /// The mistake that it is; `wrong` when the password is.
    pub fn mistake(self, format: super::Format, wrong: Mistake) -> Mistake {
        match self {
            Self::Wrong => wrong,
            Self::Unknown(oid) => Mistake::Encryption(oid),
            Self::Costly => Mistake::Costly,
            Self::Malformed => Mistake::Malformed(format, "encryption"),
            Self::Characters => Mistake::KeyPasswordCharacters,
        }
    }

    fn unknown(oid: &[u8]) -> Self {
        Self::Unknown(Dotted(oid).to_string())
    }
}

/// Calls `$then` with `$hash` as the type of the hash that `$oid` names; `$otherwise` for one that is not known.
macro_rules! with_hash {
    ($oid:expr, [$($name:ident),*], $hash:ident => $then:expr, $otherwise:expr) => {
        match $oid {
            $(oid::$name::SHA1 => { type $hash = Sha1; $then }
            oid::$name::SHA224 => { type $hash = Sha224; $then }
            oid::$name::SHA256 => { type $hash = Sha256; $then }
            oid::$name::SHA384 => { type $hash = Sha384; $then }
            oid::$name::SHA512 => { type $hash = Sha512; $then }
            oid::$name::SHA512_224 => { type $hash = Sha512_224; $then }
            oid::$name::SHA512_256 => { type $hash = Sha512_256; $then })*
            _ => $otherwise,
        }
    };
}

/// Opens `data` that `algorithm` encrypted.
pub fn decrypt(
    algorithm: Algorithm<'_>,
    data: &[u8],
    password: &Password,
    effort: &mut Effort,
) -> Result<Zeroizing<Vec<u8>>, Failed> {
    let parameters = algorithm.parameters;
    match algorithm.oid {
        oid::PBES2 => pbes2(parameters, data, password, effort),
        oid::PBE_MD5_DES => pbes1::<Md5>(parameters, data, password, effort),
        oid::PBE_SHA1_DES => pbes1::<Sha1>(parameters, data, password, effort),
        oid::PBE_SHA1_3DES => pkcs12_pbe(parameters, data, password, effort, 24, |key, iv| {
            Cipher::Tdes(key.to_vec().into(), iv.to_vec())
        }),
        oid::PBE_SHA1_2DES => pkcs12_pbe(parameters, data, password, effort, 16, |key, iv| {
            let first = key.get(..8).unwrap_or_default();
            Cipher::Tdes([key, first].concat().into(), iv.to_vec())
        }),
        oid::PBE_SHA1_RC2_128 => pkcs12_pbe(parameters, data, password, effort, 16, |key, iv| {
            Cipher::Rc2(key.to_vec().into(), iv.to_vec())
        }),
        oid::PBE_SHA1_RC2_40 => pkcs12_pbe(parameters, data, password, effort, 5, |key, iv| {
            Cipher::Rc2(key.to_vec().into(), iv.to_vec())
        }),
        oid::JCEKS_KEY => jceks(parameters, data, password, effort),
        other => Err(Failed::unknown(other)),
    }
}

/// A cipher in CBC mode with its key and first block.
enum Cipher {
    Aes128(Zeroizing<Vec<u8>>, Vec<u8>),
    Aes192(Zeroizing<Vec<u8>>, Vec<u8>),
    Aes256(Zeroizing<Vec<u8>>, Vec<u8>),
    Des(Zeroizing<Vec<u8>>, Vec<u8>),
    Tdes(Zeroizing<Vec<u8>>, Vec<u8>),
    Rc2(Zeroizing<Vec<u8>>, Vec<u8>),
}

impl Cipher {
    fn open(&self, data: &[u8]) -> Result<Zeroizing<Vec<u8>>, Failed> {
        match self {
            Self::Aes128(key, iv) => unpadded(Decryptor::<Aes128Dec>::new_from_slices(key, iv), data),
            Self::Aes192(key, iv) => unpadded(Decryptor::<Aes192Dec>::new_from_slices(key, iv), data),
            Self::Aes256(key, iv) => unpadded(Decryptor::<Aes256Dec>::new_from_slices(key, iv), data),
            Self::Des(key, iv) => unpadded(Decryptor::<Des>::new_from_slices(key, iv), data),
            Self::Tdes(key, iv) => unpadded(Decryptor::<TdesEde3>::new_from_slices(key, iv), data),
            Self::Rc2(key, iv) => {
                let cipher = Rc2::new_with_eff_key_len(key, key.len() * 8);
                unpadded(Decryptor::inner_iv_slice_init(cipher, iv), data)
            }
        }
    }
}

/// `data` decrypted, without its padding. What a wrong key makes rarely ends in padding.
fn unpadded<D: BlockModeDecrypt, E>(cipher: Result<D, E>, data: &[u8]) -> Result<Zeroizing<Vec<u8>>, Failed> {
    let cipher = cipher.map_err(|_| Failed::Malformed)?;
    let mut plain = Zeroizing::new(data.to_vec());
    let length = match cipher.decrypt_padded::<Pkcs7>(&mut plain) {
        Ok(opened) => opened.len(),
        Err(_) => return Err(Failed::Wrong),
    };
    plain.truncate(length);
    Ok(plain)
}

/// PBES2 (RFC 8018 §6.2) with PBKDF2.
fn pbes2(
    mut parameters: Der<'_>,
    data: &[u8],
    password: &Password,
    effort: &mut Effort,
) -> Result<Zeroizing<Vec<u8>>, Failed> {
    let mut parameters = parameters.enter(tag::SEQUENCE)?;
    let kdf = Algorithm::read(&mut parameters)?;
    let mut scheme = Algorithm::read(&mut parameters)?;
    if kdf.oid != oid::PBKDF2 {
        return Err(Failed::unknown(kdf.oid));
    }
    type Make = fn(Zeroizing<Vec<u8>>, Vec<u8>) -> Cipher;
    let (length, make): (usize, Make) = match scheme.oid {
        oid::AES128_CBC => (16, Cipher::Aes128),
        oid::AES192_CBC => (24, Cipher::Aes192),
        oid::AES256_CBC => (32, Cipher::Aes256),
        oid::TDES_CBC => (24, Cipher::Tdes),
        oid::DES_CBC => (8, Cipher::Des),
        other => return Err(Failed::unknown(other)),
    };
    let iv = scheme.parameters.take(tag::OCTET_STRING)?.to_vec();
    let key = pbkdf2_key(kdf.parameters, length, &password.utf8, effort)?;
    make(key, iv).open(data)
}

/// PBKDF2-params and the key of `length` bytes that they make of `password`.
fn pbkdf2_key(
    mut parameters: Der<'_>,
    length: usize,
    password: &[u8],
    effort: &mut Effort,
) -> Result<Zeroizing<Vec<u8>>, Failed> {
    let mut parameters = parameters.enter(tag::SEQUENCE)?;
    let salt = parameters.take(tag::OCTET_STRING)?;
    let rounds = parameters.count()?;
    parameters.optional(tag::INTEGER)?;
    let prf = if parameters.is_empty() {
        oid::hmac::SHA1
    } else {
        Algorithm::read(&mut parameters)?.oid
    };
    // No hash here is shorter than 20 bytes, so no key takes more blocks than four.
    let rounds = effort.spend(rounds, length.div_ceil(20) as u64)?;
    let mut key = Zeroizing::new(vec![0; length]);
    with_hash!(prf, [hmac], H => pbkdf2_hmac::<H>(password, salt, rounds, &mut key), return Err(Failed::unknown(prf)));
    Ok(key)
}

/// PBES1 (RFC 8018 §6.1): PBKDF1 and DES.
fn pbes1<H: Digest>(
    mut parameters: Der<'_>,
    data: &[u8],
    password: &Password,
    effort: &mut Effort,
) -> Result<Zeroizing<Vec<u8>>, Failed> {
    let (salt, rounds) = salt_and_rounds(&mut parameters)?;
    let rounds = effort.spend(rounds, 1)?;
    let mut derived = H::new().chain_update(&*password.utf8).chain_update(salt).finalize();
    for _ in 1..rounds {
        derived = H::digest(&derived);
    }
    let (key, rest) = derived.split_at_checked(8).ok_or(Failed::Malformed)?;
    let iv = rest.get(..8).ok_or(Failed::Malformed)?;
    Cipher::Des(key.to_vec().into(), iv.to_vec()).open(data)
}

/// The encryption of RFC 7292 appendix C, all of it with SHA-1 and blocks of eight bytes.
fn pkcs12_pbe(
    mut parameters: Der<'_>,
    data: &[u8],
    password: &Password,
    effort: &mut Effort,
    key_bytes: usize,
    make: fn(&[u8], &[u8]) -> Cipher,
) -> Result<Zeroizing<Vec<u8>>, Failed> {
    let (salt, rounds) = salt_and_rounds(&mut parameters)?;
    let key = pkcs12_key::<Sha1>(&password.bmp, salt, rounds, 1, key_bytes, effort)?;
    let iv = pkcs12_key::<Sha1>(&password.bmp, salt, rounds, 2, 8, effort)?;
    make(&key, &iv).open(data)
}

/// `SEQUENCE { salt OCTET STRING, iterations INTEGER }`.
fn salt_and_rounds<'a>(parameters: &mut Der<'a>) -> Result<(&'a [u8], u64), Malformed> {
    let mut inside = parameters.enter(tag::SEQUENCE)?;
    Ok((inside.take(tag::OCTET_STRING)?, inside.count()?))
}

/// The key derivation of RFC 7292 appendix B.2. `purpose`: 1 a key, 2 an IV, 3 a MAC key.
fn pkcs12_key<H: Digest + sha2::digest::block_api::BlockSizeUser>(
    bmp: &[u8],
    salt: &[u8],
    rounds: u64,
    purpose: u8,
    length: usize,
    effort: &mut Effort,
) -> Result<Zeroizing<Vec<u8>>, Failed> {
    let block = H::block_size();
    let rounds = effort.spend(rounds, length.div_ceil(<H as Digest>::output_size()) as u64)?;
    let filled = |text: &[u8]| -> Vec<u8> {
        let length = text.len().div_ceil(block) * block;
        text.iter().copied().cycle().take(length).collect()
    };
    let mut input = Zeroizing::new([filled(salt), filled(bmp)].concat());
    let mut out = Zeroizing::new(Vec::with_capacity(length + <H as Digest>::output_size()));
    while out.len() < length {
        let mut a = H::new()
            .chain_update(vec![purpose; block])
            .chain_update(&*input)
            .finalize();
        for _ in 1..rounds {
            a = H::digest(&a);
        }
        out.extend_from_slice(&a);
        // Each block of the input: plus B, plus one, modulo 2^(8·block).
        for one in input.chunks_mut(block) {
            let mut carry = 1_u16;
            let b = a.iter().cycle().take(block).collect::<Vec<_>>();
            for (byte, add) in one.iter_mut().zip(b).rev() {
                carry += u16::from(*byte) + u16::from(*add);
                *byte = carry as u8;
                carry >>= 8;
            }
        }
    }
    out.truncate(length);
    Ok(out)
}

/// Whether `mac` (the content of a MacData) is `content`'s under `password` (RFC 7292 §4, RFC 9579).
pub fn check_mac(mac: &[u8], content: &[u8], password: &Password, effort: &mut Effort) -> Result<(), Failed> {
    let mut mac = Der::new(mac);
    let mut digest_info = mac.enter(tag::SEQUENCE)?;
    let algorithm = Algorithm::read(&mut digest_info)?;
    let digest = digest_info.take(tag::OCTET_STRING)?;
    if algorithm.oid == oid::PBMAC1 {
        return pbmac1(algorithm.parameters, digest, content, password, effort);
    }
    let salt = mac.take(tag::OCTET_STRING)?;
    let rounds = if mac.is_empty() { 1 } else { mac.count()? };
    with_hash!(
        algorithm.oid, [hash],
        H => {
            let length = <H as Digest>::output_size();
            let key = pkcs12_key::<H>(&password.bmp, salt, rounds, 3, length, effort)?;
            same_mac::<Hmac<H>>(&key, content, digest)
        },
        Err(Failed::unknown(algorithm.oid))
    )
}

/// PBMAC1-params, and the MAC that they describe.
fn pbmac1(
    mut parameters: Der<'_>,
    digest: &[u8],
    content: &[u8],
    password: &Password,
    effort: &mut Effort,
) -> Result<(), Failed> {
    const KEY_BYTES_MAX: u64 = 64;
    let mut parameters = parameters.enter(tag::SEQUENCE)?;
    let kdf = Algorithm::read(&mut parameters)?;
    let scheme = Algorithm::read(&mut parameters)?.oid;
    if kdf.oid != oid::PBKDF2 {
        return Err(Failed::unknown(kdf.oid));
    }
    // The length is not optional here (RFC 9579 §5).
    let mut peek = kdf.parameters;
    let mut peek = peek.enter(tag::SEQUENCE)?;
    peek.take(tag::OCTET_STRING)?;
    peek.count()?;
    let length = match peek.count()? {
        length @ 1..=KEY_BYTES_MAX => length as usize,
        _ => return Err(Failed::Malformed),
    };
    let key = pbkdf2_key(kdf.parameters, length, &password.utf8, effort)?;
    with_hash!(scheme, [hmac], H => same_mac::<Hmac<H>>(&key, content, digest), Err(Failed::unknown(scheme)))
}

fn same_mac<M: Mac + KeyInit>(key: &[u8], content: &[u8], digest: &[u8]) -> Result<(), Failed> {
    let mac = <M as KeyInit>::new_from_slice(key).map_err(|_| Failed::Malformed)?;
    mac.chain_update(content)
        .verify_slice(digest)
        .map_err(|_| Failed::Wrong)
}

/// Opens a key that a JKS store protects: `salt ‖ key ⊕ stream ‖ SHA-1(password ‖ key)`, the stream being hashes of the password and of
/// the hash before, from the salt on. `password` is in UTF-16.
pub fn jks(data: &[u8], password: &[u8]) -> Result<Zeroizing<Vec<u8>>, Failed> {
    const HASH_BYTES: usize = 20;
    let (salt, rest) = data.split_at_checked(HASH_BYTES).ok_or(Failed::Malformed)?;
    let length = rest.len().checked_sub(HASH_BYTES).ok_or(Failed::Malformed)?;
    let (sealed, check) = rest.split_at_checked(length).ok_or(Failed::Malformed)?;
    let mut plain = Zeroizing::new(sealed.to_vec());
    let mut stream = Zeroizing::new(salt.to_vec());
    for piece in plain.chunks_mut(HASH_BYTES) {
        let next = Sha1::new().chain_update(password).chain_update(&*stream).finalize();
        stream = Zeroizing::new(next.to_vec());
        for (byte, mask) in piece.iter_mut().zip(stream.iter()) {
            *byte ^= mask;
        }
    }
    let ours = Sha1::new().chain_update(password).chain_update(&*plain).finalize();
    if ours.as_slice() == check {
        Ok(plain)
    } else {
        Err(Failed::Wrong)
    }
}

/// The JDK's `PBEWithMD5AndTripleDES`: each half of the salt is hashed with the password, over and over; what comes out is key and IV. A salt
/// of two equal halves, which chance makes once in 2³², is not treated apart as the JDK does.
fn jceks(
    mut parameters: Der<'_>,
    data: &[u8],
    password: &Password,
    effort: &mut Effort,
) -> Result<Zeroizing<Vec<u8>>, Failed> {
    if !password.utf8.iter().all(|byte| (0x20..0x7f).contains(byte)) {
        return Err(Failed::Characters);
    }
    let (salt, rounds) = salt_and_rounds(&mut parameters)?;
    let rounds = effort.spend(rounds, 2)?;
    let (first, second) = salt.split_at_checked(4).ok_or(Failed::Malformed)?;
    let mut derived = Zeroizing::new(Vec::with_capacity(32));
    for half in [first, second] {
        let mut hash = Zeroizing::new(half.to_vec());
        for _ in 0..rounds {
            let next = Md5::new().chain_update(&*hash).chain_update(&*password.utf8).finalize();
            hash.clear();
            hash.extend_from_slice(&next);
        }
        derived.extend_from_slice(&hash);
    }
    let (key, iv) = derived.split_at_checked(24).ok_or(Failed::Malformed)?;
    Cipher::Tdes(key.to_vec().into(), iv.to_vec()).open(data)
}

/// Object identifiers, as their content is encoded.
pub mod oid {
    pub const PBES2: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0d";
    pub const PBKDF2: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0c";
    pub const PBMAC1: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0e";
    pub const PBE_MD5_DES: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x03";
    pub const PBE_SHA1_DES: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0a";
    pub const PBE_SHA1_3DES: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x03";
    pub const PBE_SHA1_2DES: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x04";
    pub const PBE_SHA1_RC2_128: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x05";
    pub const PBE_SHA1_RC2_40: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x06";
    pub const AES128_CBC: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x01\x02";
    pub const AES192_CBC: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x01\x16";
    pub const AES256_CBC: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x01\x2a";
    pub const TDES_CBC: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x03\x07";
    pub const DES_CBC: &[u8] = b"\x2b\x0e\x03\x02\x07";
    /// `1.3.6.1.4.1.42.2.17.1.1`.
    pub const JKS_KEY: &[u8] = b"\x2b\x06\x01\x04\x01\x2a\x02\x11\x01\x01";
    /// `1.3.6.1.4.1.42.2.19.1`.
    pub const JCEKS_KEY: &[u8] = b"\x2b\x06\x01\x04\x01\x2a\x02\x13\x01";

    /// Hashes.
    pub mod hash {
        pub const SHA1: &[u8] = b"\x2b\x0e\x03\x02\x1a";
        pub const SHA224: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x04";
        pub const SHA256: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x01";
        pub const SHA384: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x02";
        pub const SHA512: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x03";
        pub const SHA512_224: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x05";
        pub const SHA512_256: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x06";
    }

    /// HMACs with them.
    pub mod hmac {
        pub const SHA1: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x07";
        pub const SHA224: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x08";
        pub const SHA256: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x09";
        pub const SHA384: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x0a";
        pub const SHA512: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x0b";
        pub const SHA512_224: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x0c";
        pub const SHA512_256: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x0d";
    }
}
