//! The open files: a bounded set, of which the least recently used is closed first.
//!
//! A file stays open while a reader or a flush uses it (it is *pinned*) and while it has bytes that are not flushed: the kernel
//! reports a failed write-back to the descriptors that were open then, so one that is opened later might never hear of it.

use skerry_net::host::{Disk, FileId};
use skerry_net::queue::Queue;

use super::segment::SegmentIx;
use crate::ids::PartitionIx;

/// A reader's claim on an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePin(pub(super) u16);

/// No file.
pub(super) const NONE: u16 = u16::MAX;

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) ix: PartitionIx,
    pub(super) segment: SegmentIx,
    /// The `.index`, not the `.log`.
    pub(super) index: bool,
}

#[derive(Debug)]
struct Slot {
    file: FileId,
    /// `None`: the segment is gone; the file closes with its last pin.
    owner: Option<Owner>,
    pins: u16,
    dirty: bool,
    open: bool,
}

/// The set.
///
/// When full: [`Files::evict`] closes one that nobody uses; when there is none, opening is refused.
#[derive(Debug)]
pub(super) struct Files {
    slots: Vec<Slot>,
    /// Slots that may be closed, the least recently used first.
    idle: Queue<u32>,
    free: Vec<u16>,
    slots_max: usize,
    dirty: usize,
}

impl Files {
    pub(super) fn new(open_files: u32) -> Self {
        // Fewer than two, and an append that needs its index could never have both.
        let slots_max = usize::from(u16::try_from(open_files).unwrap_or(NONE - 1)).max(2);
        Self {
            slots: Vec::with_capacity(slots_max),
            idle: Queue::new(slots_max as u32),
            free: Vec::with_capacity(slots_max),
            slots_max,
            dirty: 0,
        }
    }

    pub(super) const fn bytes(open_files: u32) -> u64 {
        (open_files as u64) * (size_of::<Slot>() as u64 + size_of::<u16>() as u64)
            + Queue::<u32>::bytes(open_files) as u64
    }

    /// Whether [`Files::insert`] has room.
    pub(super) fn has_room(&self) -> bool {
        self.slots.len() < self.slots_max || !self.free.is_empty()
    }

    /// Whether so many files wait for a flush that one should begin, before they take every place.
    pub(super) const fn is_pressed(&self) -> bool {
        self.dirty * 2 > self.slots_max
    }

    /// Takes in an open file; `None` when full.
    pub(super) fn insert(&mut self, file: FileId, owner: Owner) -> Option<u16> {
        let slot = Slot {
            file,
            owner: Some(owner),
            pins: 0,
            dirty: false,
            open: true,
        };
        let number = if let Some(number) = self.free.pop() {
            *self.slots.get_mut(usize::from(number))? = slot;
            number
        } else {
            if self.slots.len() == self.slots_max {
                return None;
            }
            let number = u16::try_from(self.slots.len()).ok()?;
            self.slots.push(slot);
            number
        };
        self.settle(number);
        Some(number)
    }

    /// The file in a slot, used now.
    pub(super) fn touch(&mut self, number: u16) -> Option<FileId> {
        if self.idle.remove(usize::from(number)).is_some() {
            self.idle.push(u32::from(number));
        }
        self.file(number)
    }

    /// The file in a slot.
    pub(super) fn file(&self, number: u16) -> Option<FileId> {
        self.slots
            .get(usize::from(number))
            .filter(|slot| slot.open)
            .map(|slot| slot.file)
    }

    /// Keeps a file open until [`Files::unpin`].
    pub(super) fn pin(&mut self, number: u16) -> Option<FilePin> {
        let slot = self.slots.get_mut(usize::from(number)).filter(|slot| slot.open)?;
        slot.pins = slot.pins.checked_add(1)?;
        self.settle(number);
        Some(FilePin(number))
    }

    /// Gives a pin back.
    pub(super) fn unpin<D: Disk>(&mut self, disk: &mut D, pin: FilePin) {
        if let Some(slot) = self.slots.get_mut(usize::from(pin.0)) {
            slot.pins = slot.pins.saturating_sub(1);
        }
        self.close_orphan(disk, pin.0);
        self.settle(pin.0);
    }

    /// Pins that were not given back. Cost: a look at every slot.
    pub(super) fn pins(&self) -> usize {
        self.slots.iter().map(|slot| usize::from(slot.pins)).sum()
    }

    /// Says whether a file has bytes that are not flushed.
    pub(super) fn set_dirty(&mut self, number: u16, dirty: bool) {
        if let Some(slot) = self.slots.get_mut(usize::from(number))
            && slot.open
            && slot.dirty != dirty
        {
            slot.dirty = dirty;
            self.dirty = if dirty {
                self.dirty + 1
            } else {
                self.dirty.saturating_sub(1)
            };
            self.settle(number);
        }
    }

    /// A file that waits for a flush and that nobody else uses. Cost: a look at every slot.
    pub(super) fn any_dirty(&self) -> Option<(u16, FileId, Owner)> {
        let (number, slot) = (0u16..)
            .zip(&self.slots)
            .find(|(_, slot)| slot.open && slot.dirty && slot.pins == 0)?;
        Some((number, slot.file, slot.owner?))
    }

    /// Closes the least recently used file; whose it was, so that the owner forgets the slot.
    pub(super) fn evict<D: Disk>(&mut self, disk: &mut D) -> Option<Owner> {
        let number = self.idle.pop()? as u16;
        let slot = self.slots.get_mut(usize::from(number))?;
        let owner = slot.owner.take();
        self.close(disk, number);
        owner
    }

    /// The owner is gone: the file closes as soon as nobody reads from it.
    pub(super) fn forget<D: Disk>(&mut self, disk: &mut D, number: u16) {
        self.set_dirty(number, false);
        if let Some(slot) = self.slots.get_mut(usize::from(number)) {
            slot.owner = None;
        }
        self.close_orphan(disk, number);
    }

    fn close_orphan<D: Disk>(&mut self, disk: &mut D, number: u16) {
        let orphan = self
            .slots
            .get(usize::from(number))
            .is_some_and(|slot| slot.open && slot.owner.is_none() && slot.pins == 0);
        if orphan {
            self.close(disk, number);
        }
    }

    fn close<D: Disk>(&mut self, disk: &mut D, number: u16) {
        self.idle.remove(usize::from(number));
        if let Some(slot) = self.slots.get_mut(usize::from(number)).filter(|slot| slot.open) {
            slot.open = false;
            disk.close(slot.file);
            self.free.push(number);
        }
    }

    /// Puts a slot among those that may be closed, or takes it out.
    fn settle(&mut self, number: u16) {
        let Some(slot) = self.slots.get(usize::from(number)) else {
            return;
        };
        if slot.open && slot.pins == 0 && !slot.dirty && slot.owner.is_some() {
            self.idle.push(u32::from(number));
        } else {
            self.idle.remove(usize::from(number));
        }
    }
}
