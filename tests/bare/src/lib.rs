//! `skerry-core` and the TLS engine, linked as a firmware would link them: without `std`, and without `alloc`.
//!
//! A library that merely compiles for such a target may still have come to use `alloc`, which rustup ships for it. A linked one may not: whoever
//! has `alloc` anywhere below needs a global allocator, and whoever has `std` has a second panic handler; there is neither here, so either
//! is refused by the compiler.
#![no_std]

use skerry_core as _;
use skerry_tls as _;

#[panic_handler]
fn halt(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
