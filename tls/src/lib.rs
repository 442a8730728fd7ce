//! skerry-tls.
