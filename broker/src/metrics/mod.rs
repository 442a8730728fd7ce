//! What the broker counts, for Prometheus: `GET /metrics` on `skerry.metrics.listener`.

mod page;
mod scrape;

pub use page::{Snapshot, Tls, page};
pub use scrape::{PATIENCE as SCRAPE_PATIENCE, SCRAPES_MAX, Scrapes};
