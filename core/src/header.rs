//! What stands in front of every request and reply.
//!
//! Request headers: version 1 carries key, version, correlation id and client id; version 2, for flexible requests, ends in
//! tagged fields (KIP-482); version 0 is no longer in use. Reply headers: version 0 is the correlation id alone, version 1
//! ends in tagged fields. ApiVersions is the exception: its reply has version 0 always, since a client must be able to read it
//! before it knows what the broker speaks (KIP-511).

use crate::api::ApiKey;
use crate::wire::{DecodeError, Form, Full, Reader, Sink, Value, Version, take_tags};

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RequestHeader<'a> {
    /// Which API, as the peer says; see [`api`](Self::api).
    pub key: i16,
    /// Which of its versions.
    pub version: Version,
    /// Comes back with the reply.
    pub correlation_id: i32,
    /// What the client calls itself; null when it says nothing, or when key and version are not declared here.
    pub client_id: Option<&'a str>,
}

impl<'a> RequestHeader<'a> {
    /// The header of a request that we send.
    #[must_use]
    pub const fn new(api: ApiKey, version: Version, correlation_id: i32, client_id: Option<&'a str>) -> Self {
        Self {
            key: api as i16,
            version,
            correlation_id,
            client_id,
        }
    }

    /// Reads a header.
    ///
    /// With an API key or version that is not declared here, nothing after the correlation id is read: its form is unknown, but
    /// the header is enough to answer ([`is_declared`](Self::is_declared) tells).
    pub fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut header = Self {
            key: r.i16()?,
            version: r.i16()?,
            correlation_id: r.i32()?,
            client_id: None,
        };
        if let Some(api) = header.declared() {
            // The client id kept its plain length when headers became flexible.
            header.client_id = Value::take(r, Form::new(header.version, false).nullable(true))?;
            if api.is_flexible(header.version) {
                take_tags(r, |_, _| Ok(false))?;
            }
        }
        Ok(header)
    }

    /// Writes the header in the version that its API and version ask for.
    pub fn encode<S: Sink>(&self, out: &mut S) -> Result<(), Full> {
        out.put_i16(self.key)?;
        out.put_i16(self.version)?;
        out.put_i32(self.correlation_id)?;
        self.client_id.put(out, Form::new(self.version, false).nullable(true))?;
        if self.declared().is_some_and(|api| api.is_flexible(self.version)) {
            out.put_unsigned_varint(0)?;
        }
        Ok(())
    }

    /// Which API, or `None` for a key that is not declared here.
    #[must_use]
    pub const fn api(&self) -> Option<ApiKey> {
        ApiKey::from_wire(self.key)
    }

    /// Whether a request of this key and version can be decoded.
    #[must_use]
    pub fn is_declared(&self) -> bool {
        self.declared().is_some()
    }

    fn declared(&self) -> Option<ApiKey> {
        self.api().filter(|api| api.versions().contains(self.version))
    }
}

/// The header of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ResponseHeader {
    /// The request's.
    pub correlation_id: i32,
}

impl ResponseHeader {
    /// Reads the header of a reply to a request of `api` in `version`.
    pub fn decode(r: &mut Reader<'_>, api: ApiKey, version: Version) -> Result<Self, DecodeError> {
        let correlation_id = r.i32()?;
        if Self::has_tags(api, version) {
            take_tags(r, |_, _| Ok(false))?;
        }
        Ok(Self { correlation_id })
    }

    /// Writes the header of a reply to a request of `api` in `version`.
    pub fn encode<S: Sink>(self, out: &mut S, api: ApiKey, version: Version) -> Result<(), Full> {
        out.put_i32(self.correlation_id)?;
        if Self::has_tags(api, version) {
            out.put_unsigned_varint(0)?;
        }
        Ok(())
    }

    /// Bytes that [`encode`](Self::encode) writes.
    #[must_use]
    pub fn encoded_len(api: ApiKey, version: Version) -> usize {
        4 + usize::from(Self::has_tags(api, version))
    }

    fn has_tags(api: ApiKey, version: Version) -> bool {
        api != ApiKey::ApiVersions && api.is_flexible(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::SliceWriter;

    fn written(header: &RequestHeader<'_>, buf: &mut [u8]) -> usize {
        let mut out = SliceWriter::new(buf);
        header.encode(&mut out).unwrap();
        out.len()
    }

    #[test]
    fn a_flexible_header_ends_in_tags_and_keeps_the_plain_client_id() {
        let mut buf = [0; 32];
        let plain = RequestHeader::new(ApiKey::Metadata, 8, 7, Some("me"));
        let len = written(&plain, &mut buf);
        assert_eq!(buf[..len], [0, 3, 0, 8, 0, 0, 0, 7, 0, 2, b'm', b'e']);
        assert_eq!(RequestHeader::decode(&mut Reader::new(&buf[..len])), Ok(plain));

        let flexible = RequestHeader::new(ApiKey::Metadata, 9, 7, None);
        let len = written(&flexible, &mut buf);
        assert_eq!(buf[..len], [0, 3, 0, 9, 0, 0, 0, 7, 0xff, 0xff, 0]);
        assert_eq!(RequestHeader::decode(&mut Reader::new(&buf[..len])), Ok(flexible));
        for cut in 0..len {
            assert_eq!(
                RequestHeader::decode(&mut Reader::new(&buf[..cut])),
                Err(DecodeError::Short)
            );
        }
    }

    #[test]
    fn an_unknown_tag_in_the_header_is_stepped_over() {
        let bytes = [0, 3, 0, 9, 0, 0, 0, 7, 0xff, 0xff, 1, 42, 3, 1, 2, 3, 99];
        let mut r = Reader::new(&bytes);
        assert!(RequestHeader::decode(&mut r).is_ok());
        assert_eq!(r.rest(), [99]);
    }

    #[test]
    fn what_is_not_declared_still_says_whom_to_answer() {
        for (key, version) in [(999_i16, 0_i16), (18, 99), (0, 2), (-1, -1)] {
            let mut bytes = [0xff; 10];
            bytes[..2].copy_from_slice(&key.to_be_bytes());
            bytes[2..4].copy_from_slice(&version.to_be_bytes());
            bytes[4..8].copy_from_slice(&5_i32.to_be_bytes());
            let header = RequestHeader::decode(&mut Reader::new(&bytes)).unwrap();
            assert_eq!((header.key, header.version, header.correlation_id), (key, version, 5));
            assert!(!header.is_declared());
        }
    }

    #[test]
    fn api_versions_is_answered_without_tags_in_every_version() {
        assert_eq!(ResponseHeader::encoded_len(ApiKey::ApiVersions, 0), 4);
        assert_eq!(ResponseHeader::encoded_len(ApiKey::ApiVersions, 4), 4);
        assert_eq!(ResponseHeader::encoded_len(ApiKey::Metadata, 8), 4);
        assert_eq!(ResponseHeader::encoded_len(ApiKey::Metadata, 9), 5);
    }
}
