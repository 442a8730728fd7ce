//! How closely certificates are held to what is asked of those who write them.

use super::certificate::{Certificate, ExtendedKeyUsage};
use super::general::GeneralName;
use super::host;

/// How closely certificates are held to what is asked of those who write them. What makes a path valid (RFC 5280 §6) is the same in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// What §4 of RFC 5280 asks of CAs, and what the CA/Browser Forum's Baseline Requirements add to it where a certificate shows it: version
    /// 3; serial numbers over zero of at most 20 octets; subject and authority key identifiers; critical basic constraints; a leaf that is
    /// no CA and says so consistently; host names without underscores; no purpose `any`.
    Strict,
    /// Certificates as the tools of private CAs write them (`openssl x509 -req` without extensions, `keytool -gencert`): none of that. A
    /// trust anchor of version 1 that issued itself is taken for a CA, since that version cannot say so.
    #[default]
    Private,
}

/// Where a certificate stands in its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Whose path it is.
    Leaf,
    /// A CA's.
    Issuer,
    /// A CA's that is trusted by being listed.
    Anchor,
}

impl Profile {
    /// Whether a certificate is a CA's though it does not say so.
    #[must_use]
    pub fn takes_as_ca(self, certificate: &Certificate<'_>, place: Place) -> bool {
        self == Self::Private && place == Place::Anchor && certificate.version == 1 && certificate.is_self_issued()
    }

    /// Whether a certificate is as the profile asks.
    #[must_use]
    pub fn admits(self, certificate: &Certificate<'_>, place: Place) -> bool {
        match self {
            Self::Private => true,
            Self::Strict => {
                is_well_made(certificate)
                    && match place {
                        Place::Leaf => is_leaf(certificate) && is_issued(certificate),
                        Place::Issuer => is_issuer(certificate) && is_issued(certificate),
                        Place::Anchor => is_issuer(certificate) && is_anchor(certificate),
                    }
            }
        }
    }
}

/// What is asked of every certificate.
fn is_well_made(certificate: &Certificate<'_>) -> bool {
    let extensions = &certificate.extensions;
    // §4.2.1.6: critical when there is no other name; by the Baseline Requirements only then.
    let has_good_names = extensions.subject_alt_name.is_none_or(|names| {
        extensions.is_alt_name_critical == certificate.subject.is_empty() && names.iter().all(is_good_name)
    });
    certificate.version == 3
        && has_good_names
        // §4.2.1.11: critical where it is, and a critical one is not processed here.
        && !extensions.has_policy_constraints
        // §4.2.1.10 knows a leading dot for hosts of mailboxes and URIs only.
        && !extensions.name_constraints.is_some_and(|constraints| constraints.has_dotted_dns())
}

/// What is asked of what another key signed. Roots of old have the serial number zero.
fn is_issued(certificate: &Certificate<'_>) -> bool {
    let serial = certificate.serial;
    // §4.1.2.2: over zero, not more than 20 octets.
    let has_good_serial = serial.len() <= 20 && serial.first().is_some_and(|first| first & 0x80 == 0) && serial != [0];
    // §4.2.1.1: the issuer's key is identified.
    let key = certificate.extensions.authority_key;
    has_good_serial && key.is_some_and(|key| key.identifier.is_some())
}

fn is_leaf(certificate: &Certificate<'_>) -> bool {
    let extensions = &certificate.extensions;
    let names_itself = !certificate.subject.is_empty() || extensions.subject_alt_name.is_some();
    // §4.2.1.3 and §4.2.1.9: a key that signs certificates is a CA's, and only a CA's path has a length.
    let signs = extensions
        .key_usage
        .is_some_and(|usage| usage.allows(super::certificate::KeyUsage::KEY_CERT_SIGN));
    let is_consistent = !certificate.is_ca()
        && !signs
        && extensions
            .basic_constraints
            .is_none_or(|basic| basic.path_length.is_none());
    let has_good_purpose = extensions
        .extended_key_usage
        .is_none_or(|usage| !usage.is_critical && !usage.lists(ExtendedKeyUsage::ANY));
    names_itself && is_consistent && has_good_purpose
}

fn is_issuer(certificate: &Certificate<'_>) -> bool {
    let extensions = &certificate.extensions;
    // §4.2.1.2 and §4.2.1.9.
    !certificate.subject.is_empty()
        && extensions.subject_key.is_some()
        && extensions.basic_constraints.is_some_and(|basic| basic.is_critical)
}

/// The Baseline Requirements leave the purposes of a root open, and its issuer is itself by its own key identifier, if it says anything of it.
fn is_anchor(certificate: &Certificate<'_>) -> bool {
    let extensions = &certificate.extensions;
    let names_itself = extensions
        .authority_key
        .is_none_or(|key| !key.has_issuer && key.identifier.is_some() && key.identifier == extensions.subject_key);
    !certificate.is_self_issued() || (extensions.extended_key_usage.is_none() && names_itself)
}

/// Hosts are written in the preferred name syntax, addresses have the length of one.
fn is_good_name(name: GeneralName<'_>) -> bool {
    match name {
        GeneralName::Dns(name) => host::is_pattern(name) && !name.contains(&b'_'),
        GeneralName::Ip(octets) => matches!(octets.len(), 4 | 16),
        _ => true,
    }
}
