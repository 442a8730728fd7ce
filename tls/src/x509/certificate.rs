//! One certificate, read (RFC 5280 §4.1, §4.2).

use skerry_core::time::Timestamp;

use super::constraint::NameConstraints;
use super::der::{self, Malformed, Reader, tag};
use super::general::{GeneralName, GeneralNames};
use super::key::SignatureAlgorithm;
use super::name::Name;
use super::time::time;
use crate::cause::Cause;

/// Extensions of one certificate; more are refused. Usual ones have about ten.
pub const EXTENSION_COUNT_MAX: usize = 32;

/// What one certificate says. Everything borrows its DER, whose structure was checked whole.
#[derive(Clone, Copy, Debug)]
pub struct Certificate<'a> {
    /// All of it.
    pub der: &'a [u8],
    /// What is signed: the TBSCertificate.
    pub signed: &'a [u8],
    /// 1, 2 or 3.
    pub version: u8,
    /// The contents of its INTEGER.
    pub serial: &'a [u8],
    /// Who signed it.
    pub issuer: Name<'a>,
    /// First moment of its validity.
    pub not_before: Timestamp,
    /// Last moment of its validity.
    pub not_after: Timestamp,
    /// Whose it is.
    pub subject: Name<'a>,
    /// Its SubjectPublicKeyInfo; what key it is was not looked at.
    pub spki: &'a [u8],
    /// What else it says.
    pub extensions: Extensions<'a>,
    /// How it is signed, as an AlgorithmIdentifier; the same inside and outside of what is signed.
    algorithm: &'a [u8],
    /// The signature.
    pub signature: &'a [u8],
}

/// The extensions of one certificate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extensions<'a> {
    /// basicConstraints.
    pub basic_constraints: Option<BasicConstraints>,
    /// keyUsage.
    pub key_usage: Option<KeyUsage>,
    /// extKeyUsage.
    pub extended_key_usage: Option<ExtendedKeyUsage<'a>>,
    /// subjectAltName.
    pub subject_alt_name: Option<GeneralNames<'a>>,
    /// Whether subjectAltName is critical.
    pub is_alt_name_critical: bool,
    /// nameConstraints.
    pub name_constraints: Option<NameConstraints<'a>>,
    /// authorityKeyIdentifier.
    pub authority_key: Option<AuthorityKey<'a>>,
    /// subjectKeyIdentifier.
    pub subject_key: Option<&'a [u8]>,
    /// Whether there is a policyConstraints, which can ask for policies that nothing here processes.
    pub has_policy_constraints: bool,
    /// Whether a critical extension is there that is not processed here.
    pub has_unknown_critical: bool,
}

/// basicConstraints (§4.2.1.9).
#[derive(Clone, Copy, Debug)]
pub struct BasicConstraints {
    /// Whether the extension is critical.
    pub is_critical: bool,
    /// Whether the subject is a CA.
    pub is_ca: bool,
    /// How many CAs may stand between it and the leaf.
    pub path_length: Option<u32>,
}

/// keyUsage (§4.2.1.3): bit 0 is the highest.
#[derive(Clone, Copy, Debug)]
pub struct KeyUsage(u16);

impl KeyUsage {
    /// digitalSignature.
    pub const DIGITAL_SIGNATURE: u16 = 1 << 15;
    /// keyCertSign.
    pub const KEY_CERT_SIGN: u16 = 1 << 10;

    /// Whether the usage is asserted.
    #[must_use]
    pub const fn allows(self, usage: u16) -> bool {
        self.0 & usage != 0
    }
}

/// extKeyUsage (§4.2.1.12): identifiers, one after the other, at least one.
#[derive(Clone, Copy, Debug)]
pub struct ExtendedKeyUsage<'a> {
    purposes: &'a [u8],
    /// Whether the extension is critical.
    pub is_critical: bool,
}

impl ExtendedKeyUsage<'_> {
    /// anyExtendedKeyUsage.
    pub const ANY: &'static [u8] = &[0x55, 0x1d, 37, 0];
    /// id-kp-serverAuth.
    pub const SERVER_AUTH: &'static [u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
    /// id-kp-clientAuth.
    pub const CLIENT_AUTH: &'static [u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];

    /// Whether `purpose` is listed.
    #[must_use]
    pub fn lists(&self, purpose: &[u8]) -> bool {
        let mut reader = Reader::new(self.purposes);
        core::iter::from_fn(move || reader.oid().ok()).any(|listed| listed == purpose)
    }
}

/// authorityKeyIdentifier (§4.2.1.1).
#[derive(Clone, Copy, Debug)]
pub struct AuthorityKey<'a> {
    /// The issuer's subjectKeyIdentifier.
    pub identifier: Option<&'a [u8]>,
    /// Whether the issuer is named by its own issuer or serial number too.
    pub has_issuer: bool,
}

impl<'a> Certificate<'a> {
    /// Reads one certificate and nothing after it.
    ///
    /// Errors: [`Malformed`] for what is no DER or no certificate: other versions, algorithms that differ inside and outside, unique
    ///   identifiers (which no issuer may write), extensions in a version that has none, the same extension twice, and extensions of the
    ///   kinds that are looked at whose value is not what it should be.
    /// Cost: one walk over the DER, microseconds; no allocation.
    pub fn read(der: &'a [u8]) -> Result<Self, Malformed> {
        let mut outer = der::sequence(der)?;
        let signed = outer.element()?;
        let algorithm = outer.element()?;
        let signature = outer.octets_of_bits()?;
        outer.finish()?;
        if signed.tag != tag::SEQUENCE || algorithm.tag != tag::SEQUENCE {
            return Err(Malformed);
        }

        let mut reader = Reader::new(signed.value);
        let version = match reader.optional(tag::context_constructed(0))? {
            None => 1,
            // Version 1 is the default, which DER leaves out.
            Some([tag::INTEGER, 1, 1]) => 2,
            Some([tag::INTEGER, 1, 2]) => 3,
            Some(_) => return Err(Malformed),
        };
        let serial = reader.integer()?;
        if reader.element()?.whole != algorithm.whole {
            return Err(Malformed);
        }
        let issuer = Name::read(&mut reader)?;
        let mut validity = reader.sequence()?;
        let not_before = time(&mut validity)?;
        let not_after = time(&mut validity)?;
        validity.finish()?;
        let subject = Name::read(&mut reader)?;
        let spki = reader.element()?;
        if spki.tag != tag::SEQUENCE {
            return Err(Malformed);
        }
        let extensions = match reader.optional(tag::context_constructed(3))? {
            None => Extensions::default(),
            Some(extensions) if version == 3 => Extensions::read(extensions)?,
            Some(_) => return Err(Malformed),
        };
        reader.finish()?;
        Ok(Self {
            der,
            signed: signed.whole,
            version,
            serial,
            issuer,
            not_before,
            not_after,
            subject,
            spki: spki.whole,
            extensions,
            algorithm: algorithm.whole,
            signature,
        })
    }

    /// How it is signed.
    ///
    /// Errors: [`Cause::CertificateUnsupported`] for what is not taken, SHA-1 and MD5 among it.
    pub fn algorithm(&self) -> Result<SignatureAlgorithm, Cause> {
        SignatureAlgorithm::read(self.algorithm)
    }

    /// Whether it names itself as its issuer. Not whether it signed itself.
    #[must_use]
    pub fn is_self_issued(&self) -> bool {
        self.issuer.is(&self.subject)
    }

    /// Whether it says that it is a CA's.
    #[must_use]
    pub fn is_ca(&self) -> bool {
        self.extensions.basic_constraints.is_some_and(|basic| basic.is_ca)
    }

    /// Whether `issuer` may have signed it, by names and key identifiers.
    #[must_use]
    pub fn may_be_of(&self, issuer: &Self) -> bool {
        let wanted = self.extensions.authority_key.and_then(|key| key.identifier);
        let differ = matches!((wanted, issuer.extensions.subject_key), (Some(wanted), Some(is)) if wanted != is);
        !differ && self.issuer.is(&issuer.subject)
    }
}

impl<'a> Extensions<'a> {
    /// The contents of the explicitly tagged SEQUENCE OF Extension.
    fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut list = der::sequence(bytes)?;
        let mut extensions = Self::default();
        let mut seen = heapless::Vec::<&[u8], EXTENSION_COUNT_MAX>::new();
        // An empty list is none.
        while seen.is_empty() || !list.is_empty() {
            let mut extension = list.sequence()?;
            let id = extension.oid()?;
            let is_critical = extension.default_false()?;
            let value = extension.value(tag::OCTET_STRING)?;
            extension.finish()?;
            if seen.contains(&id) {
                return Err(Malformed);
            }
            seen.push(id).map_err(|_| Malformed)?;
            extensions.take(id, is_critical, value)?;
        }
        Ok(extensions)
    }

    fn take(&mut self, id: &[u8], is_critical: bool, value: &'a [u8]) -> Result<(), Malformed> {
        let never_critical = || if is_critical { Err(Malformed) } else { Ok(()) };
        match id {
            ids::SUBJECT_KEY => {
                never_critical()?;
                let mut reader = Reader::new(value);
                self.subject_key = Some(reader.value(tag::OCTET_STRING)?);
                reader.finish()?;
            }
            ids::KEY_USAGE => {
                let mut reader = Reader::new(value);
                self.key_usage = Some(KeyUsage(der::named_bits(reader.value(tag::BIT_STRING)?)?));
                reader.finish()?;
            }
            ids::SUBJECT_ALT_NAME => {
                let mut reader = Reader::new(value);
                self.subject_alt_name = Some(GeneralNames::of(reader.value(tag::SEQUENCE)?)?);
                reader.finish()?;
                self.is_alt_name_critical = is_critical;
            }
            ids::BASIC_CONSTRAINTS => {
                let mut basic = der::sequence(value)?;
                let is_ca = basic.default_false()?;
                let path_length = if basic.is_empty() { None } else { Some(basic.small()?) };
                basic.finish()?;
                self.basic_constraints = Some(BasicConstraints {
                    is_critical,
                    is_ca,
                    path_length,
                });
            }
            ids::NAME_CONSTRAINTS => self.name_constraints = Some(NameConstraints::read(value)?),
            ids::POLICIES => {
                let has_qualifiers = policies(value)?;
                self.has_unknown_critical |= is_critical && has_qualifiers;
            }
            // Without policyConstraints no path needs a policy, so neither says anything then (§6.1).
            ids::POLICY_MAPPINGS | ids::INHIBIT_ANY_POLICY => {}
            ids::POLICY_CONSTRAINTS => {
                self.has_policy_constraints = true;
                self.has_unknown_critical |= is_critical;
            }
            ids::AUTHORITY_KEY => {
                never_critical()?;
                self.authority_key = Some(AuthorityKey::read(value)?);
            }
            ids::EXTENDED_KEY_USAGE => {
                let mut reader = Reader::new(value);
                let purposes = reader.value(tag::SEQUENCE)?;
                reader.finish()?;
                let mut reader = Reader::new(purposes);
                reader.oid()?;
                while !reader.is_empty() {
                    reader.oid()?;
                }
                self.extended_key_usage = Some(ExtendedKeyUsage { purposes, is_critical });
            }
            ids::AUTHORITY_INFORMATION => {
                never_critical()?;
                access_descriptions(value)?;
            }
            _ => self.has_unknown_critical |= is_critical,
        }
        Ok(())
    }
}

impl<'a> AuthorityKey<'a> {
    fn read(value: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = der::sequence(value)?;
        let identifier = reader.optional(tag::context(0))?;
        let issuer = reader.optional(tag::context_constructed(1))?;
        let serial = reader.optional(tag::context(2))?;
        reader.finish()?;
        if let Some(issuer) = issuer {
            GeneralNames::of(issuer)?;
        }
        Ok(Self {
            identifier,
            has_issuer: issuer.is_some() || serial.is_some(),
        })
    }
}

/// Checks certificatePolicies (§4.2.1.4), and tells whether any policy has qualifiers.
fn policies(value: &[u8]) -> Result<bool, Malformed> {
    let mut list = der::sequence(value)?;
    let mut has_qualifiers = false;
    loop {
        let mut policy = list.sequence()?;
        policy.oid()?;
        if !policy.is_empty() {
            policy.sequence()?.element()?;
            has_qualifiers = true;
        }
        policy.finish()?;
        if list.is_empty() {
            return Ok(has_qualifiers);
        }
    }
}

/// Checks authorityInfoAccess (§4.2.2.1).
fn access_descriptions(value: &[u8]) -> Result<(), Malformed> {
    let mut list = der::sequence(value)?;
    loop {
        let mut description = list.sequence()?;
        description.oid()?;
        GeneralName::read(&mut description)?;
        description.finish()?;
        if list.is_empty() {
            return Ok(());
        }
    }
}

/// Identifiers of the extensions that are looked at.
pub mod ids {
    /// subjectKeyIdentifier.
    pub const SUBJECT_KEY: &[u8] = &[0x55, 0x1d, 14];
    /// keyUsage.
    pub const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
    /// subjectAltName.
    pub const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 17];
    /// basicConstraints.
    pub const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
    /// nameConstraints.
    pub const NAME_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 30];
    /// certificatePolicies.
    pub const POLICIES: &[u8] = &[0x55, 0x1d, 32];
    /// policyMappings.
    pub const POLICY_MAPPINGS: &[u8] = &[0x55, 0x1d, 33];
    /// authorityKeyIdentifier.
    pub const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 35];
    /// policyConstraints.
    pub const POLICY_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 36];
    /// extKeyUsage.
    pub const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
    /// inhibitAnyPolicy.
    pub const INHIBIT_ANY_POLICY: &[u8] = &[0x55, 0x1d, 54];
    /// authorityInfoAccess.
    pub const AUTHORITY_INFORMATION: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 1, 1];
}
