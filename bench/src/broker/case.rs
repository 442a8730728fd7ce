//! What is measured, one case after the other.

use super::script::Shape;
use super::{Args, Client};

/// Bytes of a batch, where more than one record fits: Kafka's `batch.size`.
const BATCH_BYTES: usize = 16_384;

/// What is sent: batches of 16 KiB of small records, a large record, a small one alone.
pub const SHAPES: [Shape; 4] = [
    shape("100B", 100, BATCH_BYTES),
    shape("1KB", 1024, BATCH_BYTES),
    shape("100KB", 102_400, BATCH_BYTES),
    shape("1x100B", 100, 0),
];

const fn shape(name: &'static str, value_bytes: usize, batch_bytes: usize) -> Shape {
    Shape {
        name,
        value_bytes,
        batch_bytes,
    }
}

/// One thing to measure.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name in reports.
    pub name: String,
    /// What is sent or read.
    pub shape: Shape,
    /// How.
    pub what: What,
    /// Each flush takes 20 ms longer.
    pub slow: bool,
    /// Over TLS.
    pub is_tls: bool,
}

/// What is done with records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Producing.
    Produce {
        /// −1 for all.
        acks: i16,
    },
    /// Fetching what is there.
    Fetch,
    /// Producing with acks=all and fetching what was produced, at once.
    Deliver,
}

/// `acks`, as Kafka's clients spell it.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// Every replica's.
    All,
    /// The leader's.
    #[value(name = "1")]
    One,
    /// None's.
    #[value(name = "0")]
    None,
}

impl Acks {
    const fn number(self) -> i16 {
        match self {
            Self::All => -1,
            Self::One => 1,
            Self::None => 0,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::One => "1",
            Self::None => "0",
        }
    }
}

/// Every case that is asked for; one over TLS follows the same in plaintext.
pub fn cases(args: &Args) -> Vec<Case> {
    let mut out = Vec::new();
    let mut push = |case: Case| {
        let over_tls = Case {
            name: format!("{}/tls", case.name),
            is_tls: true,
            ..case.clone()
        };
        let wanted = |case: &Case| case.name.contains(&args.only) && !(case.slow && args.against.is_some());
        out.extend(
            [Some(case), args.tls.is_some().then_some(over_tls)]
                .into_iter()
                .flatten()
                .filter(wanted),
        );
    };
    let own = args.record_bytes.map(|bytes| Shape {
        name: &*format!("{bytes}B").leak(),
        value_bytes: bytes,
        batch_bytes: BATCH_BYTES,
    });
    let shapes: Vec<Shape> = match (own, args.client) {
        (Some(shape), _) => vec![shape],
        (None, Client::Frames) => SHAPES.into(),
        // How records are put into batches is its own affair.
        (None, Client::Librdkafka) => SHAPES[..3].into(),
    };
    let acks = args.acks.map_or_else(|| vec![Acks::All, Acks::One], |acks| vec![acks]);
    for slow in [false, true] {
        for acks in &acks {
            for shape in &shapes {
                let flush = if slow { "/flush=20ms" } else { "" };
                push(Case {
                    name: format!("produce/{}/acks={}{flush}", shape.name, acks.word()),
                    shape: *shape,
                    what: What::Produce { acks: acks.number() },
                    slow,
                    is_tls: false,
                });
            }
        }
    }
    let kinds: &[(&str, What)] = match args.client {
        Client::Frames => &[("fetch", What::Fetch)],
        Client::Librdkafka => &[("fetch", What::Fetch), ("deliver", What::Deliver)],
    };
    for (word, what) in kinds {
        for shape in shapes.iter().filter(|shape| shape.batch_bytes > 0) {
            push(Case {
                name: format!("{word}/{}", shape.name),
                shape: *shape,
                what: *what,
                slow: false,
                is_tls: false,
            });
        }
    }
    out
}
