//! skerry-tests.
