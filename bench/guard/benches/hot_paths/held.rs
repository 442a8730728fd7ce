//! The limit of each path, and a machine that looks the same everywhere.

use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};

/// Set while a new baseline is taken: nothing is held against the old one.
const MEASURING: &str = "SKERRY_GUARD_MEASURE";

/// glibc chooses its copies by the processor. These choices every x86-64 has; without them a copy is one of 16 bytes a step everywhere.
const COPIES: &str = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-AVX2_Usable,-AVX_Usable,-AVX512F_Usable,-ERMS,-FSRM,\
     -SSSE3,-Fast_Copy_Backward:glibc.cpu.x86_non_temporal_threshold=0x10000000:glibc.cpu.x86_rep_movsb_threshold=0x10000000";

/// For every path.
pub fn everywhere() -> LibraryBenchmarkConfig {
    let mut config = LibraryBenchmarkConfig::default();
    config.env("GLIBC_TUNABLES", COPIES);
    config
}

/// For the path of that name: `function/case`.
///
/// Panics when it has no count in the baseline: a path that nobody holds is held by nothing.
pub fn held(name: &str) -> LibraryBenchmarkConfig {
    let mut config = LibraryBenchmarkConfig::default();
    if std::env::var_os(MEASURING).is_some() {
        return config;
    }
    let limit = skerry_guard::limit(name)
        .unwrap_or_else(|| panic!("{name} has no count in bench/baseline/instructions.md: make guard-baseline"));
    config.tool(Callgrind::default().hard_limits([(EventKind::Ir, limit)]));
    config
}
