//! The board that qemu calls mps2-an386: a clock, a UART that is the network, randomness of the host, and the stack's high-water
//! mark. The only `unsafe` of the firmware: registers are addresses.

use core::sync::atomic::{AtomicU32, Ordering};

use cortex_m::Peripherals;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::exception;
use semihosting::process::ExitCode;
use skerry_core::client::{Lost, Transport};
use skerry_core::time::Instant;

/// Ticks of the system clock in a millisecond.
const TICKS_PER_MS: u32 = 25_000;

static MILLIS: AtomicU32 = AtomicU32::new(0);

#[exception]
fn SysTick() {
    MILLIS.fetch_add(1, Ordering::Relaxed);
}

/// The clock that [`Clock::now`] reads. It goes round after 49 days: firmware that runs longer counts the rounds.
#[derive(Debug)]
pub struct Clock(());

impl Clock {
    /// Starts it. `None` the second time.
    #[must_use]
    pub fn start() -> Option<Self> {
        let mut systick = Peripherals::take()?.SYST;
        systick.set_clock_source(SystClkSource::Core);
        systick.set_reload(TICKS_PER_MS - 1);
        systick.clear_current();
        systick.enable_interrupt();
        systick.enable_counter();
        Some(Self(()))
    }

    /// Time since the start.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_micros(u64::from(MILLIS.load(Ordering::Relaxed)) * 1000)
    }
}

/// The first UART (CMSDK APB UART, Arm DDI 0479): its other end is a TCP connection to the broker.
#[derive(Debug)]
pub struct Uart(());

impl Uart {
    const BASE: usize = 0x4000_4000;
    const DATA: usize = Self::BASE;
    const STATE: usize = Self::BASE + 0x4;
    const CTRL: usize = Self::BASE + 0x8;
    const BAUDDIV: usize = Self::BASE + 0x10;
    /// Bits of STATE: nothing may be written; something may be read.
    const TX_FULL: u32 = 1;
    const RX_FULL: u32 = 2;

    /// Both directions on.
    #[must_use]
    pub fn open() -> Self {
        write(Self::BAUDDIV, 16);
        write(Self::CTRL, 3);
        Self(())
    }
}

impl Transport for Uart {
    fn send(&mut self, bytes: &[u8]) -> nb::Result<usize, Lost> {
        let mut sent = 0;
        for &byte in bytes {
            if read(Self::STATE) & Self::TX_FULL != 0 {
                break;
            }
            write(Self::DATA, u32::from(byte));
            sent += 1;
        }
        if sent == 0 {
            Err(nb::Error::WouldBlock)
        } else {
            Ok(sent)
        }
    }

    fn receive(&mut self, out: &mut [u8]) -> nb::Result<usize, Lost> {
        let mut got = 0;
        for byte in out.iter_mut() {
            if read(Self::STATE) & Self::RX_FULL == 0 {
                break;
            }
            *byte = read(Self::DATA) as u8;
            got += 1;
        }
        if got == 0 { Err(nb::Error::WouldBlock) } else { Ok(got) }
    }
}

fn read(register: usize) -> u32 {
    // SAFETY: only the UART's registers are read through this, which the board has at these addresses, word-aligned.
    unsafe { (register as *const u32).read_volatile() }
}

fn write(register: usize, value: u32) {
    // SAFETY: as for `read`; none of these registers moves memory.
    unsafe { (register as *mut u32).write_volatile(value) }
}

/// What the stack is filled with before it is used.
const PAINT: u32 = 0x5a5a_5a5a;

unsafe extern "C" {
    /// The first word after the statics, by the linker script.
    static mut __sheap: u32;
    /// The top of the stack.
    static mut _stack_start: u32;
}

/// Fills what the stack does not use yet, but for a margin under this function's own frame.
pub fn paint_stack() {
    const MARGIN_WORDS: usize = 64;
    let mut word = &raw mut __sheap;
    let top = (cortex_m::register::msp::read() as usize - 4 * MARGIN_WORDS) as *mut u32;
    while word < top {
        // SAFETY: between the statics and the stack in use there is nothing of anybody's.
        unsafe { word.write_volatile(PAINT) };
        word = word.wrapping_add(1);
    }
}

/// Most bytes that the stack ever had since [`paint_stack`].
#[must_use]
pub fn stack_bytes() -> usize {
    let mut word = (&raw const __sheap).cast::<u32>();
    let top = (&raw const _stack_start).cast::<u32>();
    // SAFETY: memory between the statics and the stack's top, read only.
    while word < top && unsafe { word.read_volatile() } == PAINT {
        word = word.wrapping_add(1);
    }
    top as usize - word as usize
}

/// Ends the emulator: 0 for done.
pub fn exit(code: u8) -> ! {
    ExitCode::from(code).exit_process()
}

/// A panic says nothing and costs no text: what it is about would be most of the flash.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    exit(101)
}
