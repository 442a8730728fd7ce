//! Many connections to a server at once.

use std::thread;
use std::time::Instant;

use super::{Pace, Target, name};
use crate::handshake::{Kind, Times, Visitor};
use crate::report::Cell;

/// What they came to.
pub struct Crowd {
    kind: Kind,
    server: &'static str,
    connections: u32,
    /// CPU of the server for each, in microseconds.
    cpu: Option<f64>,
    waited: Times,
    seconds: f64,
}

impl Crowd {
    /// Of `count` connections of that kind, at most `connections` of them at a time and `rate` a second.
    ///
    /// Errors: one of them fails that should not.
    pub fn of(target: &Target, kind: Kind, connections: u32, count: u32, rate: u32) -> Result<Self, String> {
        let connections = connections.max(1);
        let each = count.div_ceil(connections);
        let one = |mut visitor: Visitor| -> Result<(Vec<u64>, f64), String> {
            let mut pace = Pace::new(f64::from(rate) / f64::from(connections));
            let began = Instant::now();
            let mut waited = Vec::new();
            for _ in 0..each {
                pace.wait();
                let began = Instant::now();
                visitor.visit()?;
                waited.push(began.elapsed().as_nanos() as u64);
            }
            Ok((waited, began.elapsed().as_secs_f64()))
        };
        let visitors = (0..connections)
            .map(|_| Visitor::new(kind, target.address))
            .collect::<Result<Vec<_>, String>>()?;
        let (cpu, all) = target.spend(each * connections, || {
            thread::scope(|scope| {
                let start = |visitor| scope.spawn(|| one(visitor));
                let clients: Vec<_> = visitors.into_iter().map(start).collect();
                clients
                    .into_iter()
                    .map(|client| client.join().unwrap_or_else(|_| Err("a client panicked".into())))
                    .collect::<Result<Vec<_>, String>>()
            })
        })?;
        Ok(Self {
            kind,
            server: target.name,
            connections,
            cpu: cpu.map(|nanos| nanos as f64 / 1e3),
            seconds: all.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max),
            waited: Times::new(all.into_iter().flat_map(|(waited, _)| waited).collect()),
        })
    }

    /// For a table.
    pub fn row(&self) -> Vec<Cell> {
        let count = self.waited.count();
        vec![
            name(self.kind).as_str().into(),
            self.server.into(),
            u64::from(self.connections).into(),
            self.cpu.into(),
            (count as f64 / self.seconds).into(),
            self.waited.median().into(),
            self.waited.quantile(0.99).into(),
            count.into(),
        ]
    }
}
