//! What happens in a simulation: everything that is chosen from the seed before it begins.

use skerry_core::time::Instant;

use super::client::consumer::ConsumerPlan;
use super::client::member::MemberPlan;
use super::client::producer::ProducerPlan;
use super::model::Promises;
use super::net::Conditions;
use crate::fault_disk::Behaviour;
use crate::rng::Rng;

/// How one life of the broker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// `SIGTERM`, and the time to stop.
    Stop,
    /// `SIGKILL`.
    Kill,
    /// The power fails, at any change on the disk.
    PowerCut,
}

/// One simulation.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// `server.properties`.
    pub settings: Vec<(&'static str, String)>,
    /// What they promise.
    pub promises: Promises,
    /// Of the network.
    pub conditions: Conditions,
    /// Of the disk.
    pub disk: Behaviour,
    /// When the disk is out of order: errors of storage may come.
    pub disk_fails: bool,
    /// Bytes of the disk that are taken away for a while.
    pub fills_up: bool,
    /// Pages leave memory now and then.
    pub chills: bool,
    /// The wall clock jumps now and then.
    pub clock_jumps: bool,
    /// Nobody is refused anything for want of room.
    pub roomy: bool,
    /// Topics and how many partitions each gets.
    pub topics: Vec<String>,
    /// Producers, each with its topic.
    pub producers: Vec<(usize, ProducerPlan)>,
    /// Consumers, each with its topic.
    pub consumers: Vec<(usize, ConsumerPlan)>,
    /// Groups, each with its topic and members.
    pub groups: Vec<(usize, Vec<MemberPlan>)>,
    /// Administrators, each with so many topics to make.
    pub admins: Vec<u32>,
    /// Hostile peers, each with so many attacks and a pause between in microseconds.
    pub hostiles: Vec<(u32, u64)>,
    /// How each life of the broker ends, and after how many microseconds. The last one is followed by calm.
    pub lives: Vec<(Ending, u64)>,
}

impl Scenario {
    /// The one of this seed.
    #[must_use]
    pub fn of(rng: &mut Rng) -> Self {
        let mut settings: Vec<(&'static str, String)> = Vec::new();
        let mut set = |name, value: String| settings.push((name, value));
        let partitions = rng.within(1, 4);
        set("num.partitions", partitions.to_string());
        let flush = *rng.pick(&["acks-all", "acks-all", "acks-all", "every", "interval", "never"]);
        let durable = flush == "acks-all" || flush == "every";
        set("skerry.flush", flush.into());
        let reads_written = rng.percent(15);
        set("skerry.read", if reads_written { "written" } else { "durable" }.into());
        let flush_interval_ms = *rng.pick(&[50, 1_000, 10_000]);
        set("log.flush.interval.ms", flush_interval_ms.to_string());
        set(
            "log.segment.bytes",
            rng.pick(&[1_024_u32, 4_096, 65_536, 1 << 30]).to_string(),
        );
        set("log.index.interval.bytes", rng.pick(&[0_u32, 512, 4_096]).to_string());
        set("log.retention.ms", "-1".into());
        set(
            "log.retention.check.interval.ms",
            rng.pick(&[10_000_u32, 300_000]).to_string(),
        );
        set("skerry.checkpoint.bytes", rng.pick(&[65_536_u32, 1 << 20]).to_string());
        set(
            "group.initial.rebalance.delay.ms",
            rng.pick(&[0_u32, 500, 3_000]).to_string(),
        );
        set("connections.max.idle.ms", rng.pick(&[40_000_u32, 120_000]).to_string());
        set("skerry.inflight.max", rng.pick(&[1_u32, 4, 16]).to_string());
        set("message.max.bytes", "100000".into());
        // What is small here is felt at once; what is large takes long to make, a thousand times over.
        set("skerry.limits.topics", "64".into());
        set("skerry.limits.partitions", "128".into());
        set("skerry.limits.offsets", "512".into());
        set("skerry.limits.producers", "256".into());
        set("skerry.limits.groups", "16".into());
        set("skerry.limits.members", "64".into());
        set("skerry.limits.group.bytes", "262144".into());
        set("skerry.limits.segments", "8192".into());
        let roomy = rng.percent(60);
        set(
            "max.connections",
            if roomy { 64 } else { rng.within(24, 40) }.to_string(),
        );
        set(
            "skerry.limits.small.buffers",
            if roomy { 64 } else { rng.within(2, 6) }.to_string(),
        );
        set(
            "skerry.limits.small.buffer.bytes",
            rng.pick(&[4_096_u32, 16_384]).to_string(),
        );
        set(
            "skerry.limits.large.buffers",
            if roomy { 8 } else { rng.within(1, 2) }.to_string(),
        );
        set(
            "skerry.limits.open.files",
            if roomy { 256 } else { rng.within(16, 24) }.to_string(),
        );

        let disk_fails = rng.percent(15);
        let disk = Behaviour {
            ring: rng.percent(70),
            ring_entries: *rng.pick(&[2, 64]),
            sync_us: *rng.pick(&[(0, 0), (200, 8_000), (1_000, 50_000), (20_000, 400_000)]),
            load_us: *rng.pick(&[(0, 0), (100, 1_000), (1_000, 100_000)]),
            // A file system writes less than it was told to only when something is wrong.
            short_write_percent: if disk_fails { 5 } else { 0 },
            sync_fails: if disk_fails { 30 } else { 0 },
            ..Behaviour::default()
        };
        let conditions = Conditions {
            latency_us: *rng.pick(&[10, 300, 20_000]),
            jitter_us: *rng.pick(&[0, 500, 50_000]),
            pipe_bytes: *rng.pick(&[64, 1_000, 20_000, 500_000]),
            short_percent: *rng.pick(&[0, 0, 20, 70]),
            fragment_bytes: *rng.pick(&[1, 20, 1_448, 100_000]),
        };
        // Bytes that trickle one by one take a turn each.
        let small = conditions.fragment_bytes == 1 || conditions.pipe_bytes < 1_000;
        let topics: Vec<String> = (0..rng.within(1, 3)).map(|n| format!("topic-{n}")).collect();
        let resets = *rng.pick(&[0, 0, 1, 5]);
        let producers = (0..rng.within(1, 4))
            .map(|_| (rng.index(topics.len()), producer(rng, small, resets)))
            .collect();
        let consumers = (0..rng.within(0, 4))
            .map(|_| (rng.index(topics.len()), consumer(rng, small, resets)))
            .collect();
        let groups = (0..rng.within(0, 2))
            .map(|_| {
                (
                    rng.index(topics.len()),
                    (0..rng.within(1, 4)).map(|_| member(rng)).collect(),
                )
            })
            .collect();
        let admins = (0..rng.within(0, 2)).map(|_| rng.within(1, 8) as u32).collect();
        let hostiles = (0..rng.within(0, 3))
            .map(|_| (rng.within(1, 12) as u32, *rng.pick(&[10_000, 1_000_000])))
            .collect();
        let lives = (0..rng.within(1, 3))
            .map(|_| {
                let ending = *rng.pick(&[Ending::Stop, Ending::Kill, Ending::PowerCut, Ending::PowerCut]);
                // Without a promise to keep there is nothing to be seen in a power cut.
                let ending = if durable {
                    ending
                } else {
                    *rng.pick(&[Ending::Stop, Ending::Kill])
                };
                (ending, rng.within(100_000, 20_000_000))
            })
            .collect();
        let promises = Promises {
            acks_all: durable,
            acks_one: flush == "every",
            seen: durable && !reads_written,
            commits: flush == "every",
            flush_interval_ms,
        };
        Self {
            settings,
            promises,
            conditions,
            disk,
            disk_fails,
            // Not both: a disk that is full after it failed leaves nothing to mend with.
            fills_up: !disk_fails && rng.percent(10),
            chills: rng.percent(40),
            clock_jumps: rng.percent(20),
            roomy,
            topics,
            producers,
            consumers,
            groups,
            admins,
            hostiles,
            lives,
        }
    }

    /// When the last life ends.
    #[must_use]
    pub fn ends_at(&self) -> Instant {
        Instant::from_micros(self.lives.iter().map(|(_, us)| us).sum())
    }
}

fn producer(rng: &mut Rng, small: bool, resets: u64) -> ProducerPlan {
    let idempotent = rng.percent(50);
    // The largest make batches that are sent from their file rather than copied.
    let (batch_records, record_bytes) = match (small, rng.below(8)) {
        (true, _) => (*rng.pick(&[1, 5, 20]), 30),
        (false, 0) => (3, 30_000),
        (false, _) => (*rng.pick(&[1, 5, 20]), *rng.pick(&[10, 200, 3_000])),
    };
    ProducerPlan {
        acks: if idempotent { -1 } else { *rng.pick(&[-1, -1, 1, 0]) },
        idempotent,
        in_flight: rng.within(1, 5) as usize,
        batches: rng.within(1, if small { 15 } else { 80 }) as u32,
        batch_records,
        record_bytes,
        pace_us: *rng.pick(&[(0, 1_000), (1_000, 100_000), (100_000, 1_000_000)]),
        timeout_ms: *rng.pick(&[30_000, 30_000, 100, 5]),
        reset_percent: resets,
    }
}

fn consumer(rng: &mut Rng, small: bool, resets: u64) -> ConsumerPlan {
    ConsumerPlan {
        max_wait_ms: *rng.pick(&[0, 10, 500, 5_000, 600_000]),
        min_bytes: *rng.pick(&[0, 1, 1, 1, 5_000]),
        max_bytes: *rng.pick(&[1, 5_000, 1 << 20]),
        partition_bytes: *rng.pick(&[1, 2_000, 1 << 20]),
        pace_us: *rng.pick(&[(0, 1_000), (50_000, 500_000)]),
        reset_percent: resets,
        slow: (!small && rng.percent(10)).then(|| (rng.within(1, 2_000) as usize, 1_000)),
    }
}

fn member(rng: &mut Rng) -> MemberPlan {
    MemberPlan {
        session_timeout_ms: rng.within(6_000, 12_000) as i32,
        rebalance_timeout_ms: rng.within(3_000, 20_000) as i32,
        heartbeat_ms: rng.within(500, 2_000),
        commit_ms: *rng.pick(&[100, 1_000, 5_000]),
        naps: *rng.pick(&[0, 2, 10]),
        leaves: *rng.pick(&[0, 2, 10]),
        is_static: rng.percent(30),
    }
}
