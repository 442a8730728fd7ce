//! skerry-bench.
