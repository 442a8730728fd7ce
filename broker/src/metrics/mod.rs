//! What the broker counts, for Prometheus: `GET /metrics` on `skerry.metrics.listener`.

mod page;
mod scrape;
mod tls;

pub use page::{Snapshot, page};
pub use scrape::{PATIENCE as SCRAPE_PATIENCE, SCRAPES_MAX, Scrapes};
pub use tls::{Chains, Heap, Listener, Tls};
