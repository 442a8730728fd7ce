//! GeneralName (RFC 5280 §4.2.1.6): the names of a subjectAltName, and the bases of name constraints.

use super::der::{Malformed, Reader};
use super::name::Name;

/// One name.
#[derive(Clone, Copy, Debug)]
pub enum GeneralName<'a> {
    /// rfc822Name: a mailbox; in a constraint also a host, or a domain with a leading dot.
    Email(&'a [u8]),
    /// dNSName.
    Dns(&'a [u8]),
    /// directoryName.
    Directory(Name<'a>),
    /// uniformResourceIdentifier; in a constraint a host, or a domain with a leading dot.
    Uri(&'a [u8]),
    /// iPAddress: 4 or 16 octets; in a constraint 8 or 32.
    Ip(&'a [u8]),
    /// A kind that nothing here compares, by the number of its tag: otherName, x400Address, ediPartyName, registeredID.
    Other(u8),
}

impl<'a> GeneralName<'a> {
    /// The next value.
    ///
    /// Errors: [`Malformed`] also for text that is not ASCII where IA5String is wanted.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let element = reader.element()?;
        let text = || {
            if element.value.is_ascii() {
                Ok(element.value)
            } else {
                Err(Malformed)
            }
        };
        Ok(match element.tag {
            0x81 => Self::Email(text()?),
            0x82 => Self::Dns(text()?),
            0x86 => Self::Uri(text()?),
            0x87 => Self::Ip(element.value),
            0xa4 => {
                let mut inner = Reader::new(element.value);
                let name = Name::read(&mut inner)?;
                inner.finish()?;
                Self::Directory(name)
            }
            0xa0 | 0xa3 | 0xa5 => {
                Reader::new(element.value).element()?;
                Self::Other(element.tag & 0x1f)
            }
            0x88 => {
                super::der::oid(element.value)?;
                Self::Other(8)
            }
            _ => return Err(Malformed),
        })
    }
}

/// Names one after the other, at least one; their structure was checked.
#[derive(Clone, Copy, Debug)]
pub struct GeneralNames<'a> {
    names: &'a [u8],
}

impl<'a> GeneralNames<'a> {
    /// The contents of a SEQUENCE OF GeneralName.
    pub fn of(names: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(names);
        GeneralName::read(&mut reader)?;
        while !reader.is_empty() {
            GeneralName::read(&mut reader)?;
        }
        Ok(Self { names })
    }

    /// The names.
    pub fn iter(&self) -> impl Iterator<Item = GeneralName<'a>> + use<'a> {
        let mut reader = Reader::new(self.names);
        core::iter::from_fn(move || GeneralName::read(&mut reader).ok())
    }
}
