//! One simulation from its beginning to its end.

use std::path::Path;

use skerry_broker::broker::{Broker, Pass};
use skerry_broker::config::Config;
use skerry_broker::observe::Held;
use skerry_broker::state::State;
use skerry_core::time::{Instant, Millis};

use super::client::admin::Admin;
use super::client::auditor::Auditor;
use super::client::consumer::Consumer;
use super::client::hostile::Hostile;
use super::client::member::Member;
use super::client::producer::Producer;
use super::client::{Actor, Cx};
use super::host::SimHost;
use super::model::Model;
use super::net::FakeNet;
use super::scenario::{Ending, Scenario};
use crate::fault_disk::{Behaviour, FaultDisk};
use crate::rng::Rng;

/// Virtual time that clients get to come to an end once nothing disturbs them.
const CALM: Millis = Millis(120_000);

/// What a simulation came to, for whoever wants to know whether anything happened at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Records acknowledged.
    pub acked: u64,
    /// Records that consumers saw.
    pub seen: u64,
    /// Lives of the broker.
    pub lives: u64,
    /// Passes of its loop.
    pub passes: u64,
    /// Virtual time, in milliseconds.
    pub millis: u64,
    /// A sum over all bytes on the wire and their times: the same seed gives the same.
    pub digest: u64,
}

/// What is chosen for a seed, for a person who looks into a failure.
#[must_use]
pub fn scenario(seed: u64) -> Scenario {
    Scenario::of(&mut Rng::new(seed))
}

/// Runs the simulation of one seed. Panics on the first promise that does not hold.
#[must_use]
pub fn run(seed: u64) -> Report {
    let mut rng = Rng::new(seed);
    let scenario = Scenario::of(&mut rng);
    World::new(scenario, rng).run()
}

struct World {
    scenario: Scenario,
    config: Config,
    rng: Rng,
    model: Model,
    actors: Vec<Box<dyn Actor>>,
    broker: Option<Broker<SimHost>>,
    /// The machine while no broker runs on it.
    host: Option<SimHost>,
    stopping: bool,
    troubled: bool,
    next_trouble: Instant,
    report: Report,
}

/// How a stretch of time ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The time is up, or what was waited for has come.
    Reached,
    /// The broker stopped by itself, as it was told.
    Stopped,
    /// The power is out.
    Dark,
}

impl World {
    fn new(scenario: Scenario, mut rng: Rng) -> Self {
        let settings: Vec<(&str, &str)> = scenario
            .settings
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let config = Config::with(Path::new("/simulated"), &settings).unwrap_or_else(|e| panic!("settings: {e:?}"));
        let connections = config.limits.connections as usize;
        let net = FakeNet::new(scenario.conditions, connections + 16, rng.fork());
        let files_max = config.limits.open_files as usize + 16;
        let disk = FaultDisk::new(
            Behaviour {
                files_max,
                ..scenario.disk
            },
            rng.fork(),
        );
        let host = SimHost::new(net, disk, rng.fork());
        Self {
            model: Model::new(scenario.promises),
            scenario,
            config,
            rng,
            actors: Vec::new(),
            broker: None,
            host: Some(host),
            stopping: false,
            troubled: true,
            next_trouble: Instant::default(),
            report: Report::default(),
        }
    }

    fn machine(&mut self) -> &mut SimHost {
        match &mut self.broker {
            Some(broker) => &mut broker.host,
            None => self.host.as_mut().expect("a machine"),
        }
    }

    fn with_cx<T>(&mut self, act: impl FnOnce(&mut Cx<'_>, &mut Vec<Box<dyn Actor>>) -> T) -> T {
        let host = match &mut self.broker {
            Some(broker) => &mut broker.host,
            None => self.host.as_mut().expect("a machine"),
        };
        let mut cx = Cx {
            now: host.time(),
            wall: host.wall_time(),
            net: &mut host.net,
            model: &mut self.model,
            rng: &mut self.rng,
            disk_fails: self.scenario.disk_fails || self.scenario.fills_up,
            lossy: !self.scenario.promises.seen,
            stopping: self.stopping,
            clock_jumps: self.scenario.clock_jumps,
            roomy: self.scenario.roomy,
        };
        act(&mut cx, &mut self.actors)
    }

    fn run(mut self) -> Report {
        self.cast();
        let lives = self.scenario.lives.clone();
        for (number, (ending, micros)) in lives.iter().enumerate() {
            self.start();
            if number > 0 {
                self.audit();
            }
            self.live(*ending, *micros);
        }
        self.start();
        self.audit();
        self.calm_down();
        self.rest();
        // Nothing of it may depend on the broker having run all the time.
        let _ = self.stop();
        self.start();
        self.audit();
        self.rest();
        let broker = self.broker.take().expect("a broker");
        self.report.acked = self.model.acked;
        self.report.seen = self.model.seen;
        self.report.millis = broker.host.time().as_micros() / 1000;
        self.report.digest = broker.host.net.digest();
        self.report
    }

    /// Everyone who plays.
    fn cast(&mut self) {
        let scenario = self.scenario.clone();
        let actors = self.with_cx(|cx, _| {
            let mut actors: Vec<Box<dyn Actor>> = Vec::new();
            let mut id = 0;
            let mut next = || {
                id += 1;
                id
            };
            for (topic, plan) in &scenario.producers {
                actors.push(Box::new(Producer::new(next(), &scenario.topics[*topic], *plan, cx)));
            }
            for (topic, plan) in &scenario.consumers {
                actors.push(Box::new(Consumer::new(next(), &scenario.topics[*topic], *plan, cx)));
            }
            for (number, (topic, members)) in scenario.groups.iter().enumerate() {
                for plan in members {
                    let group = format!("group-{number}");
                    actors.push(Box::new(Member::new(
                        next(),
                        &group,
                        &scenario.topics[*topic],
                        *plan,
                        cx,
                    )));
                }
            }
            for topics in &scenario.admins {
                actors.push(Box::new(Admin::new(next(), *topics, cx)));
            }
            for (attacks, pace_us) in &scenario.hostiles {
                actors.push(Box::new(Hostile::new(next(), *attacks, *pace_us, cx)));
            }
            actors
        });
        self.actors = actors;
    }

    /// Brings the broker up, as often as the power fails while it comes.
    fn start(&mut self) {
        self.stopping = false;
        self.report.lives += 1;
        loop {
            let mut host = self.host.take().expect("a machine without a broker");
            let opened = State::open(self.config.clone(), &mut host);
            if !host.disk.has_power() {
                drop(opened);
                host.restart(true);
                self.model.on_restart(host.time(), true);
                self.host = Some(host);
                continue;
            }
            match opened {
                Ok(state) => {
                    self.broker = Some(Broker::new(host, state));
                    return;
                }
                Err(e) if self.scenario.disk_fails => {
                    let _ = e;
                    host.restart(false);
                    let good = Behaviour {
                        sync_fails: 0,
                        write_fails: 0,
                        ..host.disk.behaviour()
                    };
                    host.disk.behave(good);
                    self.host = Some(host);
                }
                Err(e) => panic!("the broker does not come up: {e}"),
            }
        }
    }

    /// The clients act, the broker works, until `until` says so or `deadline` comes.
    fn run_until(&mut self, deadline: Instant, mut until: impl FnMut(&mut Self) -> bool) -> End {
        loop {
            if self.troubled {
                self.trouble();
            }
            let horizon = self.with_cx(|cx, actors| {
                for actor in &mut *actors {
                    if actor.next_at(cx.net) <= cx.now {
                        actor.step(cx);
                    }
                }
                actors.iter().map(|a| a.next_at(cx.net)).min().unwrap_or(Instant::NEVER)
            });
            if until(self) || self.machine().time() >= deadline {
                return End::Reached;
            }
            let trouble = if self.troubled {
                self.next_trouble
            } else {
                Instant::NEVER
            };
            let broker = self.broker.as_mut().expect("a broker that runs");
            broker.host.horizon = horizon.min(deadline).min(trouble);
            self.report.passes += 1;
            let pass = broker.pass();
            if !broker.host.disk.has_power() {
                return End::Dark;
            }
            if pass == Pass::Stopped {
                return End::Stopped;
            }
        }
    }

    fn after(&mut self, millis: Millis) -> Instant {
        self.machine().time() + millis
    }

    /// What the machine does to everyone now and then.
    fn trouble(&mut self) {
        let now = self.machine().time();
        if now < self.next_trouble {
            return;
        }
        self.next_trouble = Instant::from_micros(now.as_micros() + self.rng.within(50_000, 2_000_000));
        let (chills, jumps, fills) = (self.scenario.chills, self.scenario.clock_jumps, self.scenario.fills_up);
        let chill = self.rng.within(10, 100);
        let jump = self.rng.within(0, 4_000_000) as i64 - 2_000_000;
        let fill = fills.then(|| self.rng.percent(30));
        let room = self.rng.below(2_000);
        let host = self.machine();
        if chills {
            host.disk.chill(chill);
        }
        if jumps && chill > 80 {
            host.wall_jump_ms += jump;
        }
        if let Some(full) = fill {
            let space_bytes = if full { host.disk.used_bytes() + room } else { u64::MAX };
            let behaviour = host.disk.behaviour();
            host.disk.behave(Behaviour {
                space_bytes,
                ..behaviour
            });
        }
    }

    /// One life of the broker, to its end.
    fn live(&mut self, ending: Ending, micros: u64) {
        let deadline = Instant::from_micros(self.machine().time().as_micros() + micros);
        if ending == Ending::PowerCut && self.rng.percent(70) {
            // At any change at all, in the middle of whatever is going on.
            let changes = self.machine().disk.changes() + 1 + self.rng.below(400);
            self.machine().disk.cut_power_at(changes);
        }
        let end = self.run_until(deadline, |_| false);
        match (end, ending) {
            (End::Dark, _) | (End::Reached, Ending::PowerCut) => self.crash(true),
            (End::Reached, Ending::Kill) => self.crash(false),
            (End::Reached, Ending::Stop) => {
                if self.stop() == End::Dark {
                    self.crash(true);
                }
            }
            (End::Stopped, _) => panic!("the broker stopped although nobody told it to"),
        }
    }

    fn crash(&mut self, power_cut: bool) {
        let Broker { mut host, .. } = self.broker.take().expect("a broker to crash");
        host.restart(power_cut);
        host.disk.mend();
        // A power cut in the middle of the next start, too.
        if power_cut && self.rng.percent(20) {
            let changes = host.disk.changes() + 1 + self.rng.below(30);
            host.disk.cut_power_at(changes);
        }
        host.pass_time(self.rng.within(1_000, 5_000_000));
        self.model.on_restart(host.time(), power_cut);
        self.host = Some(host);
    }

    /// `SIGTERM`, until the broker has stopped.
    fn stop(&mut self) -> End {
        self.stopping = true;
        self.machine().stop = true;
        let deadline = self.after(Millis(60_000));
        let end = self.run_until(deadline, |_| false);
        match end {
            End::Reached => panic!("the broker does not stop"),
            End::Dark => return End::Dark,
            End::Stopped => {}
        }
        let broker = self.broker.take().expect("a broker that has stopped");
        // Waits of connections that ended leave their queues with the flush that they were for.
        let held = Held {
            waits: 0,
            ..broker.held()
        };
        assert_eq!(held, Held::default(), "held at the end");
        let Broker { mut host, .. } = broker;
        assert_eq!(host.net.open_streams(), 0, "connections left open at the end");
        host.restart(false);
        host.disk.mend();
        self.model.on_restart(host.time(), false);
        self.host = Some(host);
        End::Stopped
    }

    /// Reads everything back while the clients hold still.
    fn audit(&mut self) {
        let troubled = core::mem::replace(&mut self.troubled, false);
        self.machine().disk.mend();
        let waiting = core::mem::take(&mut self.actors);
        let auditor: Box<dyn Actor> = self.with_cx(|cx, _| Box::new(Auditor::new(cx)) as Box<dyn Actor>);
        self.actors.push(auditor);
        let deadline = self.after(Millis(600_000));
        let end = self.run_until(deadline, |world| world.actors[0].is_done());
        assert_eq!(
            (end, self.actors[0].is_done()),
            (End::Reached, true),
            "the audit comes to no end"
        );
        self.actors = waiting;
        self.troubled = troubled;
        if troubled {
            let behaviour = Behaviour {
                files_max: self.machine().disk.behaviour().files_max,
                ..self.scenario.disk
            };
            self.machine().disk.behave(behaviour);
        }
    }

    /// Nothing disturbs anyone any more: groups come to rest, everyone finishes, then leaves.
    fn calm_down(&mut self) {
        self.troubled = false;
        self.machine().disk.mend();
        for actor in &mut self.actors {
            actor.settle();
        }
        let deadline = self.after(CALM);
        let _ = self.run_until(deadline, |_| false);
        for (number, (topic, members)) in self.scenario.groups.clone().iter().enumerate() {
            let partitions = self
                .model
                .topics()
                .find(|(name, ..)| *name == self.scenario.topics[*topic])
                .map_or(0, |t| t.2);
            if let Some(unrest) = self.model.unrest(&format!("group-{number}"), members.len(), partitions) {
                assert!(!self.scenario.roomy, "not at rest after a time of calm: {unrest}");
            }
        }
        for actor in &mut self.actors {
            actor.stop();
        }
        let deadline = self.after(CALM);
        let _ = self.run_until(deadline, |world| world.actors.iter().all(|a| a.is_done()));
        let late: Vec<String> = self
            .actors
            .iter()
            .filter(|a| !a.is_done() && a.must_end())
            .map(|a| a.name().into())
            .collect();
        assert!(late.is_empty(), "these come to no end: {late:?}");
        self.with_cx(|cx, actors| actors.iter_mut().for_each(|a| a.leave(cx)));
        self.actors.clear();
    }

    /// Nobody is there: the broker holds nothing, and does nothing.
    fn rest(&mut self) {
        let deadline = self.after(Millis(60_000));
        let _ = self.run_until(deadline, |_| false);
        let broker = self.broker.as_mut().expect("a broker at rest");
        assert_eq!(broker.connections(), 0, "connections without clients");
        assert_eq!(broker.host.net.open_streams(), 0, "streams without connections");
        assert_eq!(broker.held(), Held::default(), "held for nobody");
        assert_eq!(broker.host.cold_sends, 0, "bytes were sent that were not in memory");
        let wakes = broker.host.wakes;
        let written = broker.host.disk.written_bytes();
        let hour = Millis(3_600_000);
        let deadline = self.after(hour);
        let _ = self.run_until(deadline, |_| false);
        let interval = self.config.retention_check_interval;
        let broker = self.broker.as_ref().expect("a broker at rest");
        let wakes = broker.host.wakes - wakes;
        let due = (hour.0 / interval.0 + 1) * u64::from(self.config.limits.partitions / 64 + 1);
        assert!(
            wakes <= due + 5,
            "an idle broker woke {wakes} times in an hour, {due} times for housekeeping"
        );
        assert_eq!(broker.host.disk.written_bytes(), written, "an idle broker wrote");
    }
}
