//! The way from a leaf to a trust anchor (RFC 5280 §6, RFC 4158): found among certificates in any order, then proved.
//!
//! Everything that costs little comes first: names, key identifiers, dates, constraints. Signatures are checked last, from the anchor down,
//! so that a stranger's chain costs one. All of it is bounded, whatever the chain.

use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;

use skerry_core::time::Timestamp;

use super::certificate::{Certificate, ExtendedKeyUsage, KeyUsage};
use super::constraint::{COMPARISON_COUNT_MAX, Outside};
use super::der::{self, Reader};
use super::key::{IssuerKey, SignatureAlgorithm, issuer_key, leaf_key};
use super::name::Name;
use super::profile::{Place, Profile};
use super::signature::{Issuer, Signatures};
use crate::cause::{Cause, Rule};
use crate::certificate::{CHAIN_COUNT_MAX, Refused, Role};
use crate::crypto::CryptoError;

/// Signatures that are checked in one verification; more are a refusal. A chain of three costs two.
pub const SIGNATURE_COUNT_MAX: usize = 16;

/// Steps from a certificate to one that may be its issuer in one verification; more are a refusal.
pub const STEP_COUNT_MAX: u32 = 2_000;

/// Trust anchors that are tried in one verification, of those that bear the name of an issuer in the chain; further ones are not.
pub const ANCHOR_COUNT_MAX: usize = 16;

/// What a certificate is held to.
#[derive(Clone, Copy)]
pub struct Demands<'a> {
    /// Whose certificate the leaf is.
    pub role: Role,
    /// Now, in whole seconds.
    pub now: Timestamp,
    /// How closely.
    pub profile: Profile,
    /// CAs between anchor and leaf at most, those that issued themselves not counted.
    pub depth_max: usize,
    /// What is revoked.
    pub is_revoked: &'a dyn Fn(&Certificate<'_>) -> bool,
}

impl Demands<'_> {
    /// What is wrong with a certificate by itself, whatever path it is in.
    fn fault(&self, certificate: &Certificate<'_>, place: Place) -> Result<(), Cause> {
        let extensions = &certificate.extensions;
        if extensions.has_unknown_critical {
            return Err(Cause::CertificateChain(Rule::Critical));
        }
        if self.now > certificate.not_after {
            return Err(Cause::CertificateExpired);
        }
        if self.now < certificate.not_before {
            return Err(Cause::CertificateNotYetValid);
        }
        if (self.is_revoked)(certificate) {
            return Err(Cause::CertificateRevoked);
        }
        // §4.1.2.4: the issuer is never empty; §4.2.1.10: only a CA constrains.
        if certificate.issuer.is_empty() || (extensions.name_constraints.is_some() && !certificate.is_ca()) {
            return Err(Cause::CertificateChain(Rule::Profile));
        }
        let purpose = match self.role {
            Role::Server => ExtendedKeyUsage::SERVER_AUTH,
            Role::Client => ExtendedKeyUsage::CLIENT_AUTH,
        };
        let usage = match place {
            Place::Leaf => KeyUsage::DIGITAL_SIGNATURE,
            Place::Issuer | Place::Anchor => KeyUsage::KEY_CERT_SIGN,
        };
        let has_purpose = extensions
            .extended_key_usage
            .is_none_or(|listed| listed.lists(purpose) || listed.lists(ExtendedKeyUsage::ANY));
        let has_usage = extensions.key_usage.is_none_or(|listed| listed.allows(usage));
        if place == Place::Leaf {
            if !has_usage {
                return Err(Cause::CertificateUsage);
            }
        } else if !has_usage || !(certificate.is_ca() || self.profile.takes_as_ca(certificate, place)) {
            return Err(Cause::CertificateChain(Rule::Issuer));
        }
        if !has_purpose {
            return Err(Cause::CertificateUsage);
        }
        if self.profile.admits(certificate, place) {
            Ok(())
        } else {
            Err(Cause::CertificateChain(Rule::Profile))
        }
    }
}

/// A trust anchor as it is kept.
#[derive(Clone, Debug)]
pub struct Anchor {
    der: Vec<u8>,
    subject: Range<usize>,
}

impl Anchor {
    /// Keeps one.
    ///
    /// Errors: [`Cause::CertificateUnreadable`]; [`Cause::CertificateUnsupported`] for a key that nothing here can check a signature with.
    pub fn new(der: &[u8]) -> Result<Self, Cause> {
        let certificate = Certificate::read(der)?;
        issuer_key(certificate.spki)?;
        let start = certificate.subject.der.as_ptr().addr() - der.as_ptr().addr();
        Ok(Self {
            der: der.to_vec(),
            subject: start..start + certificate.subject.der.len(),
        })
    }

    /// Its certificate, DER.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Its name, DER.
    #[must_use]
    pub fn subject(&self) -> &[u8] {
        self.der.get(self.subject.clone()).unwrap_or_default()
    }

    fn is_called(&self, name: &Name<'_>) -> bool {
        Name::read(&mut Reader::new(self.subject())).is_ok_and(|subject| subject.is(name))
    }
}

/// A path that was found and proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The first end of validity in it.
    pub not_after: Timestamp,
}

/// Finds and proves a path for `chain`, leaf first and the others in any order, to one of `anchors`. A leaf that is itself an anchor needs no
/// other; being signed by itself counts for nothing.
///
/// Errors: the certificate causes, with the certificate at fault: the first thing that kept a path from being one, in the order in which
///   the chain came, or [`Cause::UnknownCa`] when nothing did but the lack of an issuer.
/// Cost: at most [`STEP_COUNT_MAX`] steps, [`COMPARISON_COUNT_MAX`] comparisons of names with constraints, [`SIGNATURE_COUNT_MAX`] signatures.
pub fn find<S: Signatures>(
    chain: &[&[u8]],
    anchors: &[Anchor],
    signatures: &S,
    demands: &Demands<'_>,
) -> Result<Found, Refused> {
    let at_leaf = |cause| Refused { cause, index: 0 };
    if chain.len() > CHAIN_COUNT_MAX {
        return Err(at_leaf(Cause::ChainTooLong));
    }
    let &leaf = chain.first().ok_or(at_leaf(Cause::CertificateUnreadable))?;
    let leaf = Certificate::read(leaf).map_err(|malformed| at_leaf(malformed.into()))?;
    leaf_key(leaf.spki).map_err(at_leaf)?;
    demands.fault(&leaf, Place::Leaf).map_err(at_leaf)?;
    if anchors.iter().any(|anchor| anchor.der == leaf.der) {
        return Ok(Found {
            not_after: leaf.not_after,
        });
    }
    Search::new(chain, anchors, signatures, demands).run()
}

/// A certificate that may stand in a path, with what does not depend on the path.
struct Node<'c> {
    certificate: Certificate<'c>,
    is_self_issued: bool,
    /// Its key, or why it can be no issuer.
    issues: Result<IssuerKey, Cause>,
}

impl<'c> Node<'c> {
    fn new(certificate: Certificate<'c>, place: Place, demands: &Demands<'_>) -> Self {
        Self {
            certificate,
            is_self_issued: certificate.is_self_issued(),
            issues: demands
                .fault(&certificate, place)
                .and_then(|()| issuer_key(certificate.spki)),
        }
    }
}

/// Where an issuer comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// From the chain; its place there.
    Chain(u8),
    /// From the anchors; its place among those that were found.
    Anchors(u8),
}

/// A signature that was checked.
#[derive(Clone, Copy)]
struct Link {
    child: u8,
    issuer: Of,
    holds: bool,
}

/// One verification.
struct Search<'s, 'c, S> {
    signatures: &'s S,
    demands: &'s Demands<'s>,
    /// The chain as it came; none where a certificate cannot be read.
    chain: heapless::Vec<Option<Node<'c>>, CHAIN_COUNT_MAX>,
    /// The anchors that bear the name of some issuer in the chain.
    anchors: heapless::Vec<Node<'s>, ANCHOR_COUNT_MAX>,
    /// Places in the chain: the leaf, its issuer, that one's issuer.
    path: heapless::Vec<u8, CHAIN_COUNT_MAX>,
    links: heapless::Vec<Link, SIGNATURE_COUNT_MAX>,
    steps: u32,
    comparisons: Cell<u32>,
    /// The first thing that kept a path from being one.
    refused: Option<Refused>,
    /// How long the longest path was at whose end no issuer was, and who was there.
    end: (usize, u8),
}

impl<'s, 'c, S: Signatures> Search<'s, 'c, S> {
    fn new(chain: &[&'c [u8]], anchors: &'s [Anchor], signatures: &'s S, demands: &'s Demands<'s>) -> Self {
        let mut search = Self {
            signatures,
            demands,
            chain: heapless::Vec::new(),
            anchors: heapless::Vec::new(),
            path: heapless::Vec::new(),
            links: heapless::Vec::new(),
            steps: STEP_COUNT_MAX,
            comparisons: Cell::new(COMPARISON_COUNT_MAX),
            refused: None,
            end: (0, 0),
        };
        for &der in chain {
            let node = Certificate::read(der)
                .ok()
                .map(|read| Node::new(read, Place::Issuer, demands));
            let issuer = node.as_ref().map(|node| node.certificate.issuer);
            // The chain was counted; anchors beyond those that are tried are left out.
            let _ = search.chain.push(node);
            let Some(issuer) = issuer else { continue };
            for anchor in anchors.iter().filter(|anchor| anchor.is_called(&issuer)) {
                let is_there = search.anchors.iter().any(|known| known.certificate.der == anchor.der);
                if let (false, Ok(read)) = (is_there, Certificate::read(&anchor.der)) {
                    let _ = search.anchors.push(Node::new(read, Place::Anchor, demands));
                }
            }
        }
        search
    }

    fn run(mut self) -> Result<Found, Refused> {
        let _ = self.path.push(0);
        match self.extend() {
            Ok(Some(found)) => Ok(found),
            Err(refused) => Err(refused),
            Ok(None) => Err(self.refused.unwrap_or_else(|| {
                let unread = self.chain.iter().position(Option::is_none);
                match unread {
                    Some(index) => Refused {
                        cause: Cause::CertificateUnreadable,
                        index: index as u8,
                    },
                    None => Refused {
                        cause: Cause::UnknownCa,
                        index: self.end.1,
                    },
                }
            })),
        }
    }

    fn node(&self, of: Of) -> Option<&Node<'_>> {
        match of {
            Of::Chain(index) => self.chain.get(usize::from(index))?.as_ref(),
            Of::Anchors(index) => self.anchors.get(usize::from(index)),
        }
    }

    /// Tries every issuer of the last certificate of the path, anchors first. At most as deep as the chain is long.
    ///
    /// Errors: what ends the search as a whole.
    fn extend(&mut self) -> Result<Option<Found>, Refused> {
        let Some(&last) = self.path.last() else { return Ok(None) };
        let mut is_end = true;
        for issuer in (0..self.anchors.len() as u8).map(Of::Anchors) {
            if !self.may_issue(last, issuer) {
                continue;
            }
            is_end = false;
            if self.admits(last, issuer)? && self.prove(issuer)? {
                return Ok(self.found(issuer));
            }
        }
        for index in 0..self.chain.len() as u8 {
            let issuer = Of::Chain(index);
            if !self.may_issue(last, issuer) || self.is_in_path(index) {
                continue;
            }
            is_end = false;
            // The path has room: nothing is in it twice.
            if self.admits(last, issuer)? && self.path.push(index).is_ok() {
                if let Some(found) = self.extend()? {
                    return Ok(Some(found));
                }
                self.path.pop();
            }
        }
        if is_end && self.path.len() > self.end.0 {
            self.end = (self.path.len(), last);
        }
        Ok(None)
    }

    fn may_issue(&self, child: u8, issuer: Of) -> bool {
        match (self.node(Of::Chain(child)), self.node(issuer)) {
            (Some(child), Some(issuer)) => child.certificate.may_be_of(&issuer.certificate),
            _ => false,
        }
    }

    /// Whether the path has this certificate, or another for the same name and key: no path gains by it (RFC 4158 §2.4.2).
    fn is_in_path(&self, index: u8) -> bool {
        let Some(candidate) = self.node(Of::Chain(index)) else {
            return true;
        };
        self.path
            .iter()
            .filter_map(|&other| self.node(Of::Chain(other)))
            .any(|other| {
                other.certificate.spki == candidate.certificate.spki
                    && other.certificate.subject.is(&candidate.certificate.subject)
            })
    }

    /// Whether `issuer` may stand above the path, as far as that is told without checking a signature.
    fn admits(&mut self, child: u8, issuer: Of) -> Result<bool, Refused> {
        self.steps = self.steps.checked_sub(1).ok_or(exhausted(child))?;
        let is_known_bad = |link: &Link| link.child == child && link.issuer == issuer && !link.holds;
        if self.links.iter().any(is_known_bad) {
            return Ok(false);
        }
        match self.check(child, issuer) {
            Ok(()) => Ok(true),
            Err(refused) if refused.cause == Cause::CertificateChain(Rule::Search) => Err(refused),
            Err(refused) => {
                self.refused.get_or_insert(refused);
                Ok(false)
            }
        }
    }

    fn check(&self, child: u8, of: Of) -> Result<(), Refused> {
        let at = |index: u8| move |cause: Cause| Refused { cause, index };
        // An anchor has no place in the chain: what it issued stands for it.
        let at_issuer = match of {
            Of::Chain(index) => index,
            Of::Anchors(_) => child,
        };
        let (Some(signed), Some(issuer)) = (self.node(Of::Chain(child)), self.node(of)) else {
            return Err(at(child)(Cause::Internal));
        };
        let algorithm = signed.certificate.algorithm().map_err(at(child))?;
        if !algorithm.suits(issuer.issues.map_err(at(at_issuer))?) {
            return Err(at(child)(Cause::CertificateSignature));
        }
        // CAs between the issuer and the leaf, those that issued themselves not counted (§4.2.1.9).
        let between = self
            .path
            .iter()
            .skip(1)
            .filter_map(|&index| self.node(Of::Chain(index)))
            .filter(|node| !node.is_self_issued)
            .count();
        let basic = issuer.certificate.extensions.basic_constraints;
        let path_length = basic.and_then(|basic| basic.path_length);
        if between > self.demands.depth_max || path_length.is_some_and(|length| between as u64 > u64::from(length)) {
            return Err(at(at_issuer)(Cause::CertificateChain(Rule::PathLength)));
        }
        if let Some(constraints) = issuer.certificate.extensions.name_constraints {
            for (place, &index) in self.path.iter().enumerate() {
                // One that issued itself is not constrained, unless it is the leaf (§6.1.3).
                let constrained = self
                    .node(Of::Chain(index))
                    .filter(|node| place == 0 || !node.is_self_issued);
                let Some(node) = constrained else { continue };
                let mut comparisons = self.comparisons.get();
                let allowed = constraints.allow(&node.certificate, &mut comparisons);
                self.comparisons.set(comparisons);
                allowed.map_err(|outside| {
                    at(index)(Cause::CertificateChain(match outside {
                        Outside::Name => Rule::NameConstraint,
                        Outside::TooMany => Rule::Search,
                    }))
                })?;
            }
        }
        Ok(())
    }

    /// Checks the signatures of the path from `anchor` down, those that were not checked before.
    fn prove(&mut self, anchor: Of) -> Result<bool, Refused> {
        let mut issuer = anchor;
        for place in (0..self.path.len()).rev() {
            let Some(&child) = self.path.get(place) else {
                return Ok(false);
            };
            if !self.holds(child, issuer)? {
                return Ok(false);
            }
            issuer = Of::Chain(child);
        }
        Ok(true)
    }

    fn holds(&mut self, child: u8, issuer: Of) -> Result<bool, Refused> {
        let is_it = |link: &&Link| link.child == child && link.issuer == issuer;
        if let Some(link) = self.links.iter().find(is_it) {
            return Ok(link.holds);
        }
        let refuse = |cause| Refused { cause, index: child };
        if self.links.is_full() {
            return Err(exhausted(child));
        }
        let (Some(signed), Some(by)) = (self.node(Of::Chain(child)), self.node(issuer)) else {
            return Ok(false);
        };
        let key = by.issues.map_err(refuse)?;
        let algorithm = signed.certificate.algorithm().map_err(refuse)?;
        let signature = signed.certificate.signature;
        let issuer_of = Issuer {
            key,
            spki: by.certificate.spki,
        };
        let checked = if has_good_form(algorithm, signature) {
            self.signatures
                .check(algorithm, issuer_of, signed.certificate.signed, signature)
        } else {
            Err(CryptoError::Rejected)
        };
        let holds = match checked {
            Ok(()) => true,
            Err(CryptoError::Rejected) => false,
            Err(CryptoError::ArenaFull) => return Err(refuse(Cause::ArenaFull)),
            Err(CryptoError::Failed) => return Err(refuse(Cause::Internal)),
        };
        if !holds {
            self.refused.get_or_insert(refuse(Cause::CertificateSignature));
        }
        let _ = self.links.push(Link { child, issuer, holds });
        Ok(holds)
    }

    fn found(&self, anchor: Of) -> Option<Found> {
        let path = self.path.iter().map(|&index| Of::Chain(index)).chain([anchor]);
        let not_after = path
            .filter_map(|of| self.node(of))
            .map(|node| node.certificate.not_after)
            .min()?;
        Some(Found { not_after })
    }
}

const fn exhausted(index: u8) -> Refused {
    Refused {
        cause: Cause::CertificateChain(Rule::Search),
        index,
    }
}

/// Whether a signature has the one form that it may have: an Ecdsa-Sig-Value (RFC 3279 §2.2.3) of two numbers over zero, DER. RSA's is octets.
fn has_good_form(algorithm: SignatureAlgorithm, signature: &[u8]) -> bool {
    let numbers = || {
        let mut numbers = der::sequence(signature)?;
        let is_good = !numbers.unsigned()?.is_empty() && !numbers.unsigned()?.is_empty();
        numbers.finish().map(|()| is_good)
    };
    !matches!(algorithm, SignatureAlgorithm::Ecdsa(_)) || numbers() == Ok(true)
}

#[cfg(test)]
mod tests {
    use super::super::key::Digest;
    use super::*;

    #[test]
    fn a_signature_of_ecdsa_has_one_form() {
        let ecdsa = SignatureAlgorithm::Ecdsa(Digest::Sha256);
        assert!(has_good_form(ecdsa, &[0x30, 6, 2, 1, 1, 2, 1, 0x7f]));
        assert!(has_good_form(ecdsa, &[0x30, 7, 2, 2, 0, 0x80, 2, 1, 1]));
        for signature in [
            &[][..],
            &[0x30, 6, 2, 1, 1, 2, 1, 0x7f, 0],
            &[0x30, 0x81, 6, 2, 1, 1, 2, 1, 0x7f],
            &[0x30, 7, 2, 2, 0, 1, 2, 1, 1],
            &[0x30, 6, 2, 1, 0x80, 2, 1, 1],
            &[0x30, 6, 2, 1, 0, 2, 1, 1],
            &[0x30, 6, 2, 1, 1, 2, 1, 0],
            &[0x30, 3, 2, 1, 1],
            &[0x30, 9, 2, 1, 1, 2, 1, 1, 2, 1, 1],
        ] {
            assert!(!has_good_form(ecdsa, signature), "{signature:02x?}");
        }
        assert!(has_good_form(SignatureAlgorithm::RsaPkcs1(Digest::Sha256), &[1, 2, 3]));
    }
}
