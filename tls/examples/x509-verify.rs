//! Verifies one chain as test suites of others state it: a JSON object on standard input, one line of `accept`, `reject WHY` or `skip WHY` out.
//!
//! ```json
//! {"id": "…", "role": "server" | "client", "time": Unix seconds, "trusted": [PEM…], "intermediates": [PEM…], "leaf": PEM,
//!  "name": {"kind": "DNS" | "IP", "value": "…"} | null, "max_depth": number | null}
//! ```
//!
//! `role` says whose certificate the leaf is. Certificates are held to the strict profile. Several objects, one after the other, give a line each.

use std::io::{self, BufReader, Write};

use serde_json::{Deserializer, Value};
use skerry_core::time::Timestamp;
use skerry_tls::cause::Cause;
use skerry_tls::certificate::{CHAIN_COUNT_MAX, Role, ServerName, Verifier};
use skerry_tls::x509::{ByMbedtls, Details, Policy, Profile, TrustStore, pem};

/// What is said of a case.
enum Verdict {
    Accept,
    Reject(String),
    Skip(String),
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for case in Deserializer::from_reader(BufReader::new(io::stdin().lock())).into_iter::<Value>() {
        let verdict = match case {
            Ok(case) => judge(&case).unwrap_or_else(|why| Verdict::Skip(why.to_owned())),
            Err(error) => Verdict::Skip(format!("not JSON: {error}")),
        };
        match verdict {
            Verdict::Accept => writeln!(out, "accept")?,
            Verdict::Reject(why) => writeln!(out, "reject {why}")?,
            Verdict::Skip(why) => writeln!(out, "skip {why}")?,
        }
    }
    Ok(())
}

/// The verdict, or why the case cannot be understood.
fn judge(case: &Value) -> Result<Verdict, &'static str> {
    let role = match case["role"].as_str() {
        Some("server") => Role::Server,
        Some("client") => Role::Client,
        _ => return Err("role is neither server nor client"),
    };
    let seconds = case["time"]
        .as_i64()
        .or_else(|| case["time"].as_f64().map(|seconds| seconds.floor() as i64));
    let now = seconds
        .and_then(|seconds| seconds.checked_mul(1000))
        .map(Timestamp)
        .ok_or("time is no Unix time")?;
    let address;
    let name = match (&case["name"]["kind"], &case["name"]["value"]) {
        (Value::Null, _) => None,
        (Value::String(kind), Value::String(host)) if kind == "DNS" => Some(ServerName::Dns(host)),
        (Value::String(kind), Value::String(text)) if kind == "IP" => {
            address = text.parse().map_err(|_| "name is no address")?;
            Some(ServerName::Ip(address))
        }
        _ => return Err("a name of another kind than DNS and IP"),
    };
    let depth_max = match &case["max_depth"] {
        Value::Null => CHAIN_COUNT_MAX,
        depth => depth
            .as_u64()
            .and_then(|depth| usize::try_from(depth).ok())
            .ok_or("max_depth is no number")?,
    };
    let anchors = case["trusted"].as_array().ok_or("trusted is no list")?;
    let intermediates = case["intermediates"].as_array().ok_or("intermediates is no list")?;
    let (Some(anchors), Some(chain)) = (
        certificates(anchors),
        certificates([&case["leaf"]].into_iter().chain(intermediates)),
    ) else {
        return Ok(Verdict::Reject(Cause::CertificateUnreadable.id().to_owned()));
    };

    let policy = Policy {
        profile: Profile::Strict,
        depth_max,
        ..Policy::default()
    };
    let anchors: Vec<&[u8]> = anchors.iter().map(Vec::as_slice).collect();
    let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
    let (store, _warnings) = TrustStore::new(&anchors, policy, ByMbedtls);
    Ok(match store.verify(&chain, role, name, now) {
        Ok(_) => Verdict::Accept,
        Err(refused) => {
            let details = chain.get(usize::from(refused.index)).and_then(|der| Details::of(der));
            let of = details.map_or_else(String::new, |details| format!(", {details}"));
            Verdict::Reject(format!("{:?} at {}{of}", refused.cause, refused.index))
        }
    })
}

/// The certificate of every text, or none if one has none.
fn certificates<'v>(texts: impl IntoIterator<Item = &'v Value>) -> Option<Vec<Vec<u8>>> {
    let one = |text: &Value| {
        let blocks = pem::read(text.as_str()?).ok()?;
        let certificate = blocks.iter().find(|block| block.label == "CERTIFICATE")?;
        Some(certificate.der.to_vec())
    };
    texts.into_iter().map(one).collect()
}
