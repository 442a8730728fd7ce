//! `listeners`, `advertised.listeners` and `listener.security.protocol.map`, read together.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Advertised, Listener, Protocol};

/// The texts that together say where clients connect.
pub struct Texts<'a> {
    /// `listeners`.
    pub listeners: &'a str,
    /// `advertised.listeners`.
    pub advertised: Option<&'a str>,
    /// `listener.security.protocol.map`.
    pub map: &'a str,
    /// `controller.listener.names`.
    pub controllers: Option<&'a str>,
}

/// What is wrong with one of the texts: the setting's name, the part, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The setting.
    pub key: &'static str,
    /// The part of its value.
    pub part: String,
    /// Why, as the end of a sentence.
    pub why: String,
}

const LISTENERS: &str = "listeners";
const ADVERTISED: &str = "advertised.listeners";
const MAP: &str = "listener.security.protocol.map";

/// Reads the texts, all but what TLS is set up with. `resolve` finds the address of a host name; `ipv6` says whether "every address" includes IPv6.
///
/// Errors: everything that is wrong, not only the first.
pub fn read(
    texts: &Texts<'_>,
    ipv6: bool,
    resolve: &dyn Fn(&str) -> Result<IpAddr, String>,
) -> Result<Vec<Listener>, Vec<Wrong>> {
    let mut wrong = Vec::new();
    let map = security_map(texts.map, &mut wrong);
    let controllers: Vec<String> = parts(texts.controllers.unwrap_or(""))
        .map(str::to_ascii_uppercase)
        .collect();
    let mut advertised = endpoints(ADVERTISED, texts.advertised.unwrap_or(""), &controllers, &mut wrong);
    let mut listeners: Vec<Listener> = Vec::new();

    for endpoint in endpoints(LISTENERS, texts.listeners, &controllers, &mut wrong) {
        let mut refuse = |why: String| wrong.push(endpoint.wrong(LISTENERS, why));
        let protocol = match map
            .iter()
            .find(|(name, _)| *name == endpoint.name)
            .map(|(_, p)| p.as_str())
        {
            Some("PLAINTEXT") => Protocol::Plaintext,
            Some("SSL") => Protocol::Ssl,
            Some(sasl) => {
                refuse(format!("{sasl} is not in this release, which speaks PLAINTEXT and SSL"));
                continue;
            }
            None => {
                refuse(format!("{MAP} does not name {}", endpoint.name));
                continue;
            }
        };
        let address = match endpoint.host.as_str() {
            "" if ipv6 => Ok(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
            "" => Ok(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            host => host.parse().or_else(|_| resolve(host)),
        };
        let bind = match address {
            Ok(address) => SocketAddr::new(address, endpoint.port),
            Err(why) => {
                refuse(format!("no address for the host {}: {why}", endpoint.host));
                continue;
            }
        };
        if let Some(other) = listeners.iter().find(|other| other.name == endpoint.name) {
            refuse(format!("the name {} is taken by {}", other.name, other.bind));
            continue;
        }
        if let Some(other) = listeners.iter().find(|other| collide(other.bind, bind)) {
            refuse(format!(
                "port {} is taken by {}://{}",
                bind.port(),
                other.name,
                other.bind
            ));
            continue;
        }
        let mine = advertised.iter().position(|a| a.name == endpoint.name);
        listeners.push(Listener {
            name: endpoint.name,
            bind,
            advertised: mine.map(|at| advertised.remove(at)).map(|a| Advertised {
                host: a.host,
                port: a.port,
            }),
            protocol,
            tls: None,
        });
    }

    for listener in &listeners {
        let Some(told) = &listener.advertised else { continue };
        let unspecified = told
            .host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_unspecified());
        if told.host.is_empty() || unspecified || told.port == 0 {
            wrong.push(Wrong {
                key: ADVERTISED,
                part: format!("{}://{}:{}", listener.name, told.host, told.port),
                why: "clients need a host and a port that they can connect to".into(),
            });
        }
    }
    for left in &advertised {
        let known = wrong
            .iter()
            .any(|w| w.key == LISTENERS && w.part.starts_with(&left.name));
        if !known {
            wrong.push(left.wrong(ADVERTISED, format!("{LISTENERS} has none called {}", left.name)));
        }
    }
    if listeners.is_empty() && wrong.is_empty() {
        wrong.push(Wrong {
            key: LISTENERS,
            part: texts.listeners.into(),
            why: "at least one listener is needed".into(),
        });
    }
    if wrong.is_empty() { Ok(listeners) } else { Err(wrong) }
}

/// `NAME://host:port`, taken apart.
struct Endpoint {
    name: String,
    host: String,
    port: u16,
    part: String,
}

impl Endpoint {
    fn read(part: &str) -> Option<Self> {
        let (name, address) = part.split_once("://")?;
        let (host, port) = address.rsplit_once(':')?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if name.is_empty() || (bracketed.is_none() && host.contains([':', '[', ']', '/', ' '])) {
            return None;
        }
        Some(Self {
            name: name.to_ascii_uppercase(),
            host: bracketed.unwrap_or(host).into(),
            port: port.parse().ok()?,
            part: part.into(),
        })
    }

    fn wrong(&self, key: &'static str, why: String) -> Wrong {
        Wrong {
            key,
            part: self.part.clone(),
            why,
        }
    }
}

/// The endpoints of a list that are not the controller's.
fn endpoints(key: &'static str, list: &str, controllers: &[String], wrong: &mut Vec<Wrong>) -> Vec<Endpoint> {
    let mut out = Vec::new();
    for part in parts(list) {
        match Endpoint::read(part) {
            Some(endpoint) if controllers.contains(&endpoint.name) => {}
            Some(endpoint) => out.push(endpoint),
            None => wrong.push(Wrong {
                key,
                part: part.into(),
                why: "allowed: NAME://host:port, with an IPv6 address in brackets and a port from 0 to 65535".into(),
            }),
        }
    }
    out
}

/// `NAME:PROTOCOL` pairs.
fn security_map(text: &str, wrong: &mut Vec<Wrong>) -> Vec<(String, String)> {
    const PROTOCOLS: [&str; 4] = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"];
    let mut out = Vec::new();
    for part in parts(text) {
        let upper = part.to_ascii_uppercase();
        match upper.split_once(':') {
            Some((name, protocol)) if !name.is_empty() && PROTOCOLS.contains(&protocol.trim()) => {
                out.push((name.trim().into(), protocol.trim().into()));
            }
            _ => wrong.push(Wrong {
                key: MAP,
                part: part.into(),
                why: format!("allowed: NAME:PROTOCOL, with one of {}", PROTOCOLS.join(", ")),
            }),
        }
    }
    out
}

/// The parts of a comma-separated list.
fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// Whether the kernel would refuse the second of two binds.
fn collide(a: SocketAddr, b: SocketAddr) -> bool {
    let dual = |address: SocketAddr| address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let overlap = if a.is_ipv4() == b.is_ipv4() {
        a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified()
    } else {
        dual(a) || dual(b)
    };
    a.port() != 0 && a.port() == b.port() && overlap
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOCK_MAP: &str = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL";

    fn texts(listeners: &str) -> Texts<'_> {
        Texts {
            listeners,
            advertised: None,
            map: STOCK_MAP,
            controllers: None,
        }
    }

    fn resolved(texts: &Texts<'_>) -> Result<Vec<Listener>, Vec<String>> {
        read(texts, true, &|host| match host {
            "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            _ => Err("name not known".into()),
        })
        .map_err(|wrong| {
            wrong
                .into_iter()
                .map(|w| format!("{}={}: {}", w.key, w.part, w.why))
                .collect()
        })
    }

    fn binds(listeners: &str) -> Vec<String> {
        resolved(&texts(listeners))
            .unwrap()
            .iter()
            .map(|l| l.bind.to_string())
            .collect()
    }

    fn refusals(listeners: &str) -> Vec<String> {
        resolved(&texts(listeners)).unwrap_err()
    }

    #[test]
    fn hosts_of_every_kind() {
        assert_eq!(binds("PLAINTEXT://:9092"), ["[::]:9092"]);
        assert_eq!(binds("plaintext://0.0.0.0:9092"), ["0.0.0.0:9092"]);
        assert_eq!(binds("PLAINTEXT://[::1]:9092"), ["[::1]:9092"]);
        assert_eq!(binds(" PLAINTEXT://localhost:0 , "), ["127.0.0.1:0"]);
    }

    #[test]
    fn without_ipv6_every_address_is_ipv4() {
        let listeners = read(&texts("PLAINTEXT://:9092"), false, &|_| Err(String::new())).unwrap();
        assert_eq!(listeners[0].bind.to_string(), "0.0.0.0:9092");
    }

    #[test]
    fn malformed_ones_are_named() {
        let shape = "allowed: NAME://host:port, with an IPv6 address in brackets and a port from 0 to 65535";
        for part in [
            "9092",
            "PLAINTEXT://h",
            "://h:1",
            "PLAINTEXT://h:99999",
            "PLAINTEXT://::1:9092",
            "PLAINTEXT:h:1",
        ] {
            assert_eq!(refusals(part), [format!("listeners={part}: {shape}")]);
        }
        assert_eq!(
            refusals("PLAINTEXT://nowhere:1"),
            ["listeners=PLAINTEXT://nowhere:1: no address for the host nowhere: name not known"]
        );
        assert_eq!(refusals(","), ["listeners=,: at least one listener is needed"]);
    }

    #[test]
    fn protocols_are_taken_by_the_map() {
        assert_eq!(resolved(&texts("SSL://:9093")).unwrap()[0].protocol, Protocol::Ssl);
        assert_eq!(
            refusals("SASL_SSL://:9093"),
            ["listeners=SASL_SSL://:9093: SASL_SSL is not in this release, which speaks PLAINTEXT and SSL"]
        );
        assert_eq!(
            refusals("INSIDE://:9093"),
            ["listeners=INSIDE://:9093: listener.security.protocol.map does not name INSIDE"]
        );
    }

    #[test]
    fn names_and_ports_are_taken_once() {
        let two = |list| {
            resolved(&Texts {
                map: "A:PLAINTEXT,B:PLAINTEXT",
                ..texts(list)
            })
        };
        assert_eq!(
            two("A://127.0.0.1:9092,B://0.0.0.0:9092").unwrap_err(),
            ["listeners=B://0.0.0.0:9092: port 9092 is taken by A://127.0.0.1:9092"]
        );
        assert_eq!(
            two("A://127.0.0.1:1,a://127.0.0.1:2").unwrap_err(),
            ["listeners=a://127.0.0.1:2: the name A is taken by 127.0.0.1:1"]
        );
        assert!(two("A://:9092,B://127.0.0.1:9092").is_err());
        assert!(two("A://127.0.0.1:9092,B://[::1]:9092").is_ok());
        assert!(two("A://127.0.0.1:0,B://127.0.0.1:0").is_ok());
    }

    #[test]
    fn a_combined_kafka_node_keeps_its_client_listener() {
        let listeners = resolved(&Texts {
            listeners: "PLAINTEXT://:9092,CONTROLLER://:9093",
            advertised: Some("PLAINTEXT://edge.local:9092,CONTROLLER://edge.local:9093"),
            controllers: Some("CONTROLLER"),
            map: STOCK_MAP,
        })
        .unwrap();
        assert_eq!(listeners.len(), 1);
        assert_eq!(
            listeners[0].advertised,
            Some(Advertised {
                host: "edge.local".into(),
                port: 9092
            })
        );
    }

    #[test]
    fn what_is_advertised_must_be_reachable_and_listened_on() {
        let advertised = |text| {
            resolved(&Texts {
                advertised: Some(text),
                ..texts("PLAINTEXT://:9092")
            })
            .unwrap_err()
        };
        let reach = "clients need a host and a port that they can connect to";
        assert_eq!(
            advertised("PLAINTEXT://0.0.0.0:9092"),
            [format!("advertised.listeners=PLAINTEXT://0.0.0.0:9092: {reach}")]
        );
        assert_eq!(
            advertised("OTHER://h:1"),
            ["advertised.listeners=OTHER://h:1: listeners has none called OTHER"]
        );
    }
}
