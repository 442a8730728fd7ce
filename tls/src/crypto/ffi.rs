//! Calls into Mbed TLS that its safe crate does not offer: the only unsafe code of this crate.
//!
//! Every block is one call. A context lives in the heap that the library itself allocates from, never moves, and is freed, which wipes it, when its
//! owner is dropped. Contexts are written through shared references; that is sound because their owners are neither `Send` nor `Sync`, no
//! reference into a context is ever made, and nothing that the library calls back to (our [`Random`]) can reach one. Slices are passed as
//! pointer and length; where the library takes a length for granted, the wrapper asks for an array or checks it.
#![allow(unsafe_code, reason = "the one file of this crate that may")]

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::slice;

use mbedtls_sys as sys;

use super::{HashAlgorithm, NONCE_BYTES, Random, TAG_BYTES};

/// The library said no; its reason is not to be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal;

fn check(code: c_int) -> Result<(), Refusal> {
    if code == 0 { Ok(()) } else { Err(Refusal) }
}

/// The longest ECDSA signature that the library writes, whatever the curve.
const ECDSA_BYTES_MAX: usize = 141;

/// Makes the library allocate by these two from now on.
#[cfg(feature = "arena")]
pub fn set_calloc_free(calloc: extern "C" fn(usize, usize) -> *mut c_void, free: extern "C" fn(*mut c_void)) {
    // SAFETY: both are safe for every argument and keep what C asks of them.
    let _always_zero = unsafe { sys::platform_set_calloc_free(Some(calloc), Some(free)) };
}

/// So many units of zeroed memory, never given back. `T` must be valid when zero: asked for by the arena for arrays of atomic words only.
#[cfg(feature = "arena")]
pub fn zeroed(units: usize) -> Option<&'static [super::arena::Unit]> {
    let layout = core::alloc::Layout::array::<super::arena::Unit>(units)
        .ok()
        .filter(|layout| layout.size() > 0)?;
    // SAFETY: the layout's size is not zero.
    let memory = NonNull::new(unsafe { alloc::alloc::alloc_zeroed(layout) })?;
    // SAFETY: the memory is as large and aligned as the slice, zero is a value of every atomic integer, and nobody frees it.
    Some(unsafe { slice::from_raw_parts(memory.as_ptr().cast(), units) })
}

/// A C structure that the library sets up and frees.
trait Context: Sized {
    const INIT: unsafe extern "C" fn(*mut Self);
    const FREE: unsafe extern "C" fn(*mut Self);
}

macro_rules! contexts {
    ($($context:ident: $init:ident $free:ident,)*) => {
        $(impl Context for sys::$context {
            const INIT: unsafe extern "C" fn(*mut Self) = sys::$init;
            const FREE: unsafe extern "C" fn(*mut Self) = sys::$free;
        })*
    };
}

contexts! {
    gcm_context: gcm_init gcm_free,
    chachapoly_context: chachapoly_init chachapoly_free,
    ecp_keypair: ecp_keypair_init ecp_keypair_free,
    pk_context: pk_init pk_free,
}

/// A context in the library's heap.
struct Owned<T: Context>(NonNull<T>);

impl<T: Context> Owned<T> {
    fn new() -> Result<Self, Refusal> {
        const { assert!(align_of::<T>() <= 16, "more than calloc promises") };
        let context = NonNull::new(heap::take::<T>()).ok_or(Refusal)?;
        // SAFETY: the memory is ours, zeroed, and as large and aligned as a `T`.
        unsafe { (T::INIT)(context.as_ptr()) };
        Ok(Self(context))
    }

    fn ptr(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T: Context> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: set up by `new`, and never freed before.
        unsafe { (T::FREE)(self.ptr()) };
        heap::give_back(self.0);
    }
}

/// Where contexts live: the library's own allocator where it can be named.
#[cfg(feature = "arena")]
mod heap {
    use super::{NonNull, sys};

    pub fn take<T>() -> *mut T {
        // SAFETY: callable with any numbers.
        unsafe { sys::calloc(1, size_of::<T>()) }.cast()
    }

    pub fn give_back<T>(context: NonNull<T>) {
        // SAFETY: from `take`, whose caller gives it back once.
        unsafe { sys::free(context.as_ptr().cast()) }
    }
}

/// Where contexts live: without the arena the library's allocator is the system's, as ours is.
#[cfg(not(feature = "arena"))]
mod heap {
    use core::alloc::Layout;

    use super::NonNull;

    pub fn take<T>() -> *mut T {
        const { assert!(size_of::<T>() > 0) };
        // SAFETY: the size is not zero.
        unsafe { alloc::alloc::alloc_zeroed(Layout::new::<T>()) }.cast()
    }

    pub fn give_back<T>(context: NonNull<T>) {
        // SAFETY: from `take` with the same layout, whose caller gives it back once.
        unsafe { alloc::alloc::dealloc(context.as_ptr().cast(), Layout::new::<T>()) }
    }
}

/// Our randomness as the library asks for it. `context` is a pointer to a `&mut dyn Random`.
unsafe extern "C" fn draw(context: *mut c_void, out: *mut u8, bytes: usize) -> c_int {
    // SAFETY: every caller below passes this function together with a pointer to its own `&mut dyn Random`, for one call.
    let random = unsafe { &mut *context.cast::<&mut dyn Random>() };
    // SAFETY: the library passes a buffer of its own of that length.
    let out = unsafe { slice::from_raw_parts_mut(out, bytes) };
    random.fill(out).map_or(sys::ERR_ECP_RANDOM_FAILED, |()| 0)
}

/// A running SHA-256. Holds no pointer, and the library itself clones it by assignment: so it lives where it is put, and may move.
pub struct Sha256(sys::sha256_context);

impl Sha256 {
    /// Of nothing yet.
    pub fn new() -> Result<Self, Refusal> {
        let mut context = sys::sha256_context {
            total: [0; 2],
            state: [0; 8],
            buffer: [0; 64],
            is224: 0,
        };
        // SAFETY: plain data, ours.
        check(unsafe { sys::sha256_starts_ret(&raw mut context, 0) })?;
        Ok(Self(context))
    }

    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        // SAFETY: a context that was started, and a slice.
        check(unsafe { sys::sha256_update_ret(&raw mut self.0, bytes.as_ptr(), bytes.len()) })
    }

    /// The digest of everything so far; the hash goes on.
    pub fn digest(&self, out: &mut [u8; 32]) -> Result<(), Refusal> {
        let mut copy = self.clone();
        // SAFETY: a context that was started, and room for the digest.
        check(unsafe { sys::sha256_finish_ret(&raw mut copy.0, out.as_mut_ptr()) })
    }
}

impl Clone for Sha256 {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl Drop for Sha256 {
    fn drop(&mut self) {
        // SAFETY: wipes plain data of ours.
        unsafe { sys::sha256_free(&raw mut self.0) }
    }
}

/// A running SHA-384. Like [`Sha256`], it may move.
pub struct Sha384(sys::sha512_context);

impl Sha384 {
    /// Of nothing yet.
    pub fn new() -> Result<Self, Refusal> {
        let mut context = sys::sha512_context {
            total: [0; 2],
            state: [0; 8],
            buffer: [0; 128],
            is384: 0,
        };
        // SAFETY: plain data, ours; 1 says SHA-384.
        check(unsafe { sys::sha512_starts_ret(&raw mut context, 1) })?;
        Ok(Self(context))
    }

    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        // SAFETY: a context that was started, and a slice.
        check(unsafe { sys::sha512_update_ret(&raw mut self.0, bytes.as_ptr(), bytes.len()) })
    }

    /// The digest of everything so far; the hash goes on.
    pub fn digest(&self, out: &mut [u8; 48]) -> Result<(), Refusal> {
        let mut copy = self.clone();
        // SAFETY: a context that was started, and room for what is written.
        check(unsafe { sys::sha512_finish_ret(&raw mut copy.0, out.as_mut_ptr()) })
    }
}

impl Clone for Sha384 {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl Drop for Sha384 {
    fn drop(&mut self) {
        // SAFETY: wipes plain data of ours.
        unsafe { sys::sha512_free(&raw mut self.0) }
    }
}

/// An AES-GCM key. Sealing and opening allocate nothing.
pub struct Gcm(Owned<sys::gcm_context>);

impl Gcm {
    /// From a key of 16 or 32 bytes.
    pub fn new(key: &[u8]) -> Result<Self, Refusal> {
        let context = Owned::<sys::gcm_context>::new()?;
        let bits = u32::try_from(key.len() * 8).map_err(|_| Refusal)?;
        // SAFETY: the key has that many bits; the library refuses a number that AES does not have.
        check(unsafe { sys::gcm_setkey(context.ptr(), sys::CIPHER_ID_AES, key.as_ptr(), bits) })?;
        Ok(Self(context))
    }

    /// Encrypts in place.
    pub fn seal(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        data: &mut [u8],
        tag: &mut [u8; TAG_BYTES],
    ) -> Result<(), Refusal> {
        let text = data.as_mut_ptr();
        // SAFETY: input and output are the same slice, which GCM allows; nonce and tag are arrays of the lengths given.
        check(unsafe {
            sys::gcm_crypt_and_tag(
                self.0.ptr(),
                sys::GCM_ENCRYPT,
                data.len(),
                nonce.as_ptr(),
                NONCE_BYTES,
                aad.as_ptr(),
                aad.len(),
                text,
                text,
                TAG_BYTES,
                tag.as_mut_ptr(),
            )
        })
    }

    /// Decrypts in place, or zeroes.
    pub fn open(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        tag: &[u8; TAG_BYTES],
        data: &mut [u8],
    ) -> Result<(), Refusal> {
        let text = data.as_mut_ptr();
        // SAFETY: input and output are the same slice, which GCM allows; nonce and tag are arrays of the lengths given.
        check(unsafe {
            sys::gcm_auth_decrypt(
                self.0.ptr(),
                data.len(),
                nonce.as_ptr(),
                NONCE_BYTES,
                aad.as_ptr(),
                aad.len(),
                tag.as_ptr(),
                TAG_BYTES,
                text,
                text,
            )
        })
    }

    /// Decrypts into `out`, or zeroes it.
    pub fn open_into(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        tag: &[u8; TAG_BYTES],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<(), Refusal> {
        if ciphertext.len() != out.len() {
            return Err(Refusal);
        }
        // SAFETY: input and output are of one length and, being a shared and an exclusive slice, apart.
        check(unsafe {
            sys::gcm_auth_decrypt(
                self.0.ptr(),
                out.len(),
                nonce.as_ptr(),
                NONCE_BYTES,
                aad.as_ptr(),
                aad.len(),
                tag.as_ptr(),
                TAG_BYTES,
                ciphertext.as_ptr(),
                out.as_mut_ptr(),
            )
        })
    }
}

/// A ChaCha20-Poly1305 key. Sealing and opening allocate nothing.
pub struct ChaChaPoly(Owned<sys::chachapoly_context>);

impl ChaChaPoly {
    /// From a key.
    pub fn new(key: &[u8; 32]) -> Result<Self, Refusal> {
        let context = Owned::<sys::chachapoly_context>::new()?;
        // SAFETY: the key is an array of the length that is read.
        check(unsafe { sys::chachapoly_setkey(context.ptr(), key.as_ptr()) })?;
        Ok(Self(context))
    }

    /// Encrypts in place.
    pub fn seal(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        data: &mut [u8],
        tag: &mut [u8; TAG_BYTES],
    ) -> Result<(), Refusal> {
        let text = data.as_mut_ptr();
        // SAFETY: input and output are the same slice, which a stream cipher allows; nonce and tag are arrays of the lengths used.
        check(unsafe {
            sys::chachapoly_encrypt_and_tag(
                self.0.ptr(),
                data.len(),
                nonce.as_ptr(),
                aad.as_ptr(),
                aad.len(),
                text,
                text,
                tag.as_mut_ptr(),
            )
        })
    }

    /// Decrypts in place, or zeroes.
    pub fn open(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        tag: &[u8; TAG_BYTES],
        data: &mut [u8],
    ) -> Result<(), Refusal> {
        let text = data.as_mut_ptr();
        // SAFETY: input and output are the same slice, which a stream cipher allows; nonce and tag are arrays of the lengths used.
        check(unsafe {
            sys::chachapoly_auth_decrypt(
                self.0.ptr(),
                data.len(),
                nonce.as_ptr(),
                aad.as_ptr(),
                aad.len(),
                tag.as_ptr(),
                text,
                text,
            )
        })
    }

    /// Decrypts into `out`, or zeroes it.
    pub fn open_into(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        tag: &[u8; TAG_BYTES],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<(), Refusal> {
        if ciphertext.len() != out.len() {
            return Err(Refusal);
        }
        // SAFETY: input and output are of one length and, being a shared and an exclusive slice, apart.
        check(unsafe {
            sys::chachapoly_auth_decrypt(
                self.0.ptr(),
                out.len(),
                nonce.as_ptr(),
                aad.as_ptr(),
                aad.len(),
                tag.as_ptr(),
                ciphertext.as_ptr(),
                out.as_mut_ptr(),
            )
        })
    }
}

/// A curve that is used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// NIST P-256.
    P256,
    /// NIST P-384.
    P384,
    /// Curve25519.
    X25519,
}

impl Curve {
    const fn id(self) -> sys::ecp_group_id {
        match self {
            Self::P256 => sys::ECP_DP_SECP256R1,
            Self::P384 => sys::ECP_DP_SECP384R1,
            Self::X25519 => sys::ECP_DP_CURVE25519,
        }
    }
}

/// A curve with a private value and a point. The first multiplication of the generator keeps a table with it, which makes later ones faster.
pub struct KeyPair(Owned<sys::ecp_keypair>);

impl KeyPair {
    /// Neither value nor point yet.
    pub fn new(curve: Curve) -> Result<Self, Refusal> {
        let pair = Owned::<sys::ecp_keypair>::new()?;
        // SAFETY: a group that was set up, inside a context that does not move.
        check(unsafe { sys::ecp_group_load(&raw mut (*pair.ptr()).grp, curve.id()) })?;
        Ok(Self(pair))
    }

    /// Sets the private value, big endian. Whether it is one is asked when it is used.
    pub fn set_private(&self, value: &[u8]) -> Result<(), Refusal> {
        // SAFETY: a number inside a live context, and a slice.
        check(unsafe { sys::mpi_read_binary(&raw mut (*self.0.ptr()).d, value.as_ptr(), value.len()) })
    }

    /// Wipes private value and point, and gives back their memory; the table stays.
    pub fn clear(&self) {
        let pair = self.0.ptr();
        // SAFETY: a number inside a live context; it is as if it had just been set up.
        unsafe { sys::mpi_free(&raw mut (*pair).d) };
        // SAFETY: a point inside a live context; it is as if it had just been set up.
        unsafe { sys::ecp_point_free(&raw mut (*pair).Q) };
    }

    /// Makes the point the generator times the private value, which must be in range.
    pub fn multiply_generator(&self, mut random: &mut dyn Random) -> Result<(), Refusal> {
        let pair = self.0.ptr();
        // SAFETY: group, numbers and points of one live context; the result is a point that is not among the operands.
        check(unsafe {
            sys::ecp_mul(
                &raw mut (*pair).grp,
                &raw mut (*pair).Q,
                &raw const (*pair).d,
                &raw const (*pair).grp.G,
                Some(draw),
                (&raw mut random).cast(),
            )
        })
    }

    /// Makes the point itself times the private value, which must be in range.
    pub fn multiply_point(&self, mut random: &mut dyn Random) -> Result<(), Refusal> {
        let pair = self.0.ptr();
        // SAFETY: group, numbers and points of one live context; the library allows the result to be the operand.
        check(unsafe {
            sys::ecp_mul(
                &raw mut (*pair).grp,
                &raw mut (*pair).Q,
                &raw const (*pair).d,
                &raw const (*pair).Q,
                Some(draw),
                (&raw mut random).cast(),
            )
        })
    }

    /// Sets the point from its uncompressed form, or from 32 bytes for X25519. It must be one of the curve, and none of low order.
    pub fn read_point(&self, point: &[u8]) -> Result<(), Refusal> {
        let pair = self.0.ptr();
        // SAFETY: group and point of one live context, and a slice.
        check(unsafe {
            sys::ecp_point_read_binary(&raw const (*pair).grp, &raw mut (*pair).Q, point.as_ptr(), point.len())
        })?;
        // SAFETY: group and point of one live context.
        check(unsafe { sys::ecp_check_pubkey(&raw const (*pair).grp, &raw const (*pair).Q) })
    }

    /// Writes the point as [`KeyPair::read_point`] reads it, and gives its length.
    pub fn write_point(&self, out: &mut [u8]) -> Result<usize, Refusal> {
        let pair = self.0.ptr();
        let mut bytes = 0;
        // SAFETY: group and point of one live context, and a slice; the library refuses one that is too short.
        check(unsafe {
            sys::ecp_point_write_binary(
                &raw const (*pair).grp,
                &raw const (*pair).Q,
                sys::ECP_PF_UNCOMPRESSED,
                &raw mut bytes,
                out.as_mut_ptr(),
                out.len(),
            )
        })?;
        Ok(bytes)
    }

    /// Signs a digest by ECDSA with the private value, in DER, and gives the signature's length.
    pub fn sign(&self, digest: &[u8], mut random: &mut dyn Random, out: &mut [u8]) -> Result<usize, Refusal> {
        if out.len() < ECDSA_BYTES_MAX {
            return Err(Refusal);
        }
        let mut bytes = 0;
        // SAFETY: a live context, slices, and room for the longest signature. The hash's name is used by deterministic ECDSA only.
        check(unsafe {
            sys::ecdsa_write_signature(
                self.0.ptr(),
                sys::MD_NONE,
                digest.as_ptr(),
                digest.len(),
                out.as_mut_ptr(),
                &raw mut bytes,
                Some(draw),
                (&raw mut random).cast(),
            )
        })?;
        Ok(bytes)
    }

    /// Whether the signature over the digest is by the point's owner.
    pub fn verify(&self, digest: &[u8], signature: &[u8]) -> Result<(), Refusal> {
        // SAFETY: a live context, and slices.
        check(unsafe {
            sys::ecdsa_read_signature(
                self.0.ptr(),
                digest.as_ptr(),
                digest.len(),
                signature.as_ptr(),
                signature.len(),
            )
        })
    }
}

/// A key that the library has parsed.
pub enum Key {
    /// Of a curve.
    Ec(Curve, KeyPair),
    /// RSA.
    Rsa(Rsa),
}

/// A private key, DER. Its halves must belong together.
pub fn private_key(der: &[u8]) -> Result<Key, Refusal> {
    let key = Owned::<sys::pk_context>::new()?;
    // SAFETY: a context that was set up, a slice, and no password.
    check(unsafe { sys::pk_parse_key(key.ptr(), der.as_ptr(), der.len(), ptr::null(), 0) })?;
    // SAFETY: a key that was parsed.
    check(unsafe { sys::pk_check_pair(key.ptr(), key.ptr()) })?;
    let Some(parsed) = ec(&key) else {
        return Ok(Key::Rsa(Rsa::new(key)?));
    };
    // SAFETY: `ec` gives a live key of that type.
    let id = unsafe { (*parsed).grp.id };
    let curve = [Curve::P256, Curve::P384]
        .into_iter()
        .find(|curve| curve.id() == id)
        .ok_or(Refusal)?;
    let pair = KeyPair::new(curve)?;
    // SAFETY: two live contexts.
    check(unsafe { sys::ecdsa_from_keypair(pair.0.ptr(), parsed) })?;
    Ok(Key::Ec(curve, pair))
}

/// A key's parameters when it is one of a curve.
fn ec(key: &Owned<sys::pk_context>) -> Option<*const sys::ecp_keypair> {
    // SAFETY: a live context.
    let kind = unsafe { sys::pk_get_type(key.ptr()) };
    // SAFETY: a live context, whose parameters are of the type that it names.
    (kind == sys::PK_ECKEY).then(|| unsafe { (*key.ptr()).pk_ctx }.cast_const().cast())
}

/// An RSA key.
pub struct Rsa(Owned<sys::pk_context>);

/// How an RSA signature is padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// PKCS#1 v1.5.
    Pkcs1,
    /// PSS, with MGF1 of the same hash and a salt as long as the digest.
    Pss,
}

impl Rsa {
    /// From an RSAPublicKey (RFC 8017 §A.1.1), DER.
    pub fn from_public_key(der: &[u8]) -> Result<Self, Refusal> {
        let key = Owned::<sys::pk_context>::new()?;
        // SAFETY: a context that was set up, and a slice.
        check(unsafe { sys::pk_parse_public_key(key.ptr(), der.as_ptr(), der.len()) })?;
        Self::new(key)
    }

    fn new(key: Owned<sys::pk_context>) -> Result<Self, Refusal> {
        // SAFETY: a live context.
        let kind = unsafe { sys::pk_get_type(key.ptr()) };
        if kind == sys::PK_RSA {
            Ok(Self(key))
        } else {
            Err(Refusal)
        }
    }

    fn ptr(&self) -> *mut sys::rsa_context {
        // SAFETY: a live context, and `new` has seen that its parameters are of this type.
        unsafe { (*self.0.ptr()).pk_ctx }.cast()
    }

    /// Bits of the modulus.
    pub fn bits(&self) -> usize {
        // SAFETY: a live context.
        unsafe { sys::pk_get_bitlen(self.0.ptr()) }
    }

    /// Bits of the public exponent.
    pub fn exponent_bits(&self) -> usize {
        // SAFETY: a number inside a live context.
        unsafe { sys::mpi_bitlen(&raw const (*self.ptr()).E) }
    }

    /// Signs a digest, and gives the signature's length. The first signature also makes and keeps what blinds it.
    pub fn sign(
        &self,
        padding: Padding,
        hash: HashAlgorithm,
        digest: &[u8],
        mut random: &mut dyn Random,
        out: &mut [u8],
    ) -> Result<usize, Refusal> {
        let bytes = self.bits().div_ceil(8);
        if out.len() < bytes || digest.len() != hash.bytes() {
            return Err(Refusal);
        }
        self.pad(padding, hash);
        let signed = match padding {
            // SAFETY: a live context, a digest of the hash's length, and room for a signature.
            Padding::Pkcs1 => check(unsafe {
                sys::rsa_rsassa_pkcs1_v15_sign(
                    self.ptr(),
                    Some(draw),
                    (&raw mut random).cast(),
                    sys::RSA_PRIVATE,
                    md(hash),
                    digest.len() as u32,
                    digest.as_ptr(),
                    out.as_mut_ptr(),
                )
            }),
            // SAFETY: a live context, a digest of the hash's length, and room for a signature.
            Padding::Pss => check(unsafe {
                sys::rsa_rsassa_pss_sign_ext(
                    self.ptr(),
                    Some(draw),
                    (&raw mut random).cast(),
                    md(hash),
                    digest.len() as u32,
                    digest.as_ptr(),
                    digest.len() as c_int,
                    out.as_mut_ptr(),
                )
            }),
        };
        if signed.is_err() {
            self.forget_blinding();
        }
        signed.map(|()| bytes)
    }

    /// Drops what blinds the key's operations: it consists of two numbers that must fit each other, each signature begins by squaring one and
    /// then the other, and the library would use them for ever even when memory ran out between.
    fn forget_blinding(&self) {
        let key = self.ptr();
        // SAFETY: a number inside a live context; without it the next signature makes both anew.
        unsafe { sys::mpi_free(&raw mut (*key).Vi) };
        // SAFETY: as above.
        unsafe { sys::mpi_free(&raw mut (*key).Vf) };
    }

    /// Whether the signature over the digest is by this key.
    pub fn verify(
        &self,
        padding: Padding,
        hash: HashAlgorithm,
        digest: &[u8],
        signature: &[u8],
    ) -> Result<(), Refusal> {
        if signature.len() != self.bits().div_ceil(8) || digest.len() != hash.bytes() {
            return Err(Refusal);
        }
        self.pad(padding, hash);
        match padding {
            // SAFETY: a live context, a digest of the hash's length, and a signature of the key's.
            Padding::Pkcs1 => check(unsafe {
                sys::rsa_rsassa_pkcs1_v15_verify(
                    self.ptr(),
                    None,
                    ptr::null_mut(),
                    sys::RSA_PUBLIC,
                    md(hash),
                    digest.len() as u32,
                    digest.as_ptr(),
                    signature.as_ptr(),
                )
            }),
            // SAFETY: a live context, a digest of the hash's length, and a signature of the key's.
            Padding::Pss => check(unsafe {
                sys::rsa_rsassa_pss_verify_ext(
                    self.ptr(),
                    None,
                    ptr::null_mut(),
                    sys::RSA_PUBLIC,
                    md(hash),
                    digest.len() as u32,
                    digest.as_ptr(),
                    md(hash),
                    digest.len() as c_int,
                    signature.as_ptr(),
                )
            }),
        }
    }

    fn pad(&self, padding: Padding, hash: HashAlgorithm) {
        let version = match padding {
            Padding::Pkcs1 => sys::RSA_PKCS_V15,
            Padding::Pss => sys::RSA_PKCS_V21,
        };
        // SAFETY: a live context.
        unsafe { sys::rsa_set_padding(self.ptr(), version, md(hash) as c_int) }
    }
}

const fn md(hash: HashAlgorithm) -> sys::md_type_t {
    match hash {
        HashAlgorithm::Sha256 => sys::MD_SHA256,
        HashAlgorithm::Sha384 => sys::MD_SHA384,
    }
}
