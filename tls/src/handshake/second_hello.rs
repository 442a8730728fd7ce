//! Whether a second ClientHello is the first one but for what a HelloRetryRequest changes (RFC 8446 §4.1.2).

use crate::cause::Cause;
use crate::crypto::{Hash, HashAlgorithm, Provider, Secret};
use crate::message::{ClientHello, Cursor, ExtensionType, Extensions, RANDOM_BYTES, SESSION_ID_BYTES_MAX};

/// padding (RFC 7685): it may come, go and change.
const PADDING: u16 = 21;

/// A digest over everything in a ClientHello's body that must stay as it is. A cookie counts: we send none, so none may come.
///
/// Cost: one hash over the body; only handshakes with a HelloRetryRequest pay it.
pub fn constant_parts<P: Provider>(provider: &P, body: &[u8]) -> Result<Secret, Cause> {
    const MAY_CHANGE: [u16; 4] = [
        ExtensionType::KeyShare.wire(),
        ExtensionType::EarlyData.wire(),
        ExtensionType::PreSharedKey.wire(),
        PADDING,
    ];
    let mut r = Cursor::new(ClientHello::KIND, body);
    r.u16()?;
    r.array::<RANDOM_BYTES>()?;
    r.vector_8(0, SESSION_ID_BYTES_MAX)?;
    r.list_16()?;
    r.vector_8(1, usize::MAX)?;
    let mut hash = provider.hash(HashAlgorithm::Sha256)?;
    hash.update(body.get(..body.len() - r.rest().len()).ok_or(Cause::Internal)?);
    for extension in Extensions::decode(&mut r)?.iter() {
        if !MAY_CHANGE.contains(&extension.kind) {
            hash.update(&extension.kind.to_be_bytes());
            hash.update(&(extension.data.len() as u64).to_be_bytes());
            hash.update(extension.data);
        }
    }
    Ok(hash.digest())
}
