//! A disk in memory for the tests beside the code: can be full, fail a sync, or hold a block that cannot be read. It does not
//! cut power; the fault-injecting disk of the tests crate does.

use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut};

use skerry_core::meter::Ticks;
use skerry_core::time::{Instant, Timestamp};
use skerry_net::host::{Clock, Completion, Disk, DiskError, FileId, OpenMode, Started, Token};

#[derive(Default)]
pub(crate) struct MemDisk {
    names: BTreeMap<String, u32>,
    files: Vec<Vec<u8>>,
    /// Bytes that all files may still grow by.
    pub room: Option<usize>,
    /// Every sync fails.
    pub sync_fails: bool,
    /// Syncs of files (not of directories) so far.
    pub syncs: u32,
    /// Bytes from here to the end of the block cannot be read.
    pub bad_block: Option<u64>,
    random: u64,
}

const DIRECTORY: FileId = FileId(u32::MAX);

impl MemDisk {
    pub(crate) fn bytes(&mut self, path: &str) -> &mut Vec<u8> {
        let file = self.names[path];
        &mut self.files[file as usize]
    }

    /// The bytes of the only file.
    pub(crate) fn first_file(&self) -> Vec<u8> {
        self.files[0].clone()
    }

    pub(crate) fn file_of(&self, path: &str) -> u32 {
        self.names[path]
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.names.contains_key(path)
    }

    pub(crate) fn put(&mut self, path: &str, bytes: &[u8]) {
        let file = self.open(path, OpenMode::Create).unwrap();
        self.files[file.0 as usize] = bytes.to_vec();
    }

    fn grow(&mut self, bytes: usize) -> usize {
        let Some(room) = &mut self.room else { return bytes };
        let granted = bytes.min(*room);
        *room -= granted;
        granted
    }
}

impl Disk for MemDisk {
    fn open(&mut self, path: &str, mode: OpenMode) -> Result<FileId, DiskError> {
        if mode == OpenMode::Directory {
            return Ok(DIRECTORY);
        }
        match (self.names.get(path), mode) {
            (Some(_), OpenMode::CreateNew) => Err(DiskError::Exists),
            (Some(file), _) => Ok(FileId(*file)),
            (None, OpenMode::Read | OpenMode::Write) => Err(DiskError::NotFound),
            (None, _) => {
                let file = self.files.len() as u32;
                self.files.push(Vec::new());
                self.names.insert(path.into(), file);
                Ok(FileId(file))
            }
        }
    }

    fn close(&mut self, _file: FileId) {}

    fn len(&mut self, file: FileId) -> Result<u64, DiskError> {
        Ok(self.files[file.0 as usize].len() as u64)
    }

    fn write_at(&mut self, file: FileId, position: u64, bufs: &[IoSlice<'_>]) -> Result<usize, DiskError> {
        let bytes: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        let at = position as usize;
        let had = self.files[file.0 as usize].len();
        let grown = self.grow((at + bytes.len()).saturating_sub(had));
        let written = bytes.len().min((had + grown).saturating_sub(at));
        if written == 0 && !bytes.is_empty() {
            return Err(DiskError::Full);
        }
        let data = &mut self.files[file.0 as usize];
        data.resize(had.max(at + written), 0);
        data[at..at + written].copy_from_slice(&bytes[..written]);
        Ok(written)
    }

    fn read_at(&mut self, file: FileId, position: u64, buf: &mut [u8]) -> Result<usize, DiskError> {
        let data = &self.files[file.0 as usize];
        let from = data.len().min(position as usize);
        let bytes = buf.len().min(data.len() - from);
        if let Some(bad) = self.bad_block {
            let (begin, end) = (position, position + bytes as u64);
            if begin < bad / 4096 * 4096 + 4096 && end > bad {
                return Err(DiskError::Io);
            }
        }
        buf[..bytes].copy_from_slice(&data[from..from + bytes]);
        Ok(bytes)
    }

    fn read_cached(&mut self, _: FileId, _: u64, _: &mut [IoSliceMut<'_>]) -> nb::Result<usize, DiskError> {
        unimplemented!("not used by the metadata log")
    }

    fn cached(&mut self, _: FileId, _: u64, _: usize) -> usize {
        unimplemented!("not used by the metadata log")
    }

    fn start_load(&mut self, _: FileId, _: u64, _: usize, _: Token) -> Result<Started, DiskError> {
        unimplemented!("not used by the metadata log")
    }

    fn start_sync(&mut self, _: FileId, _: Token) -> Result<Started, DiskError> {
        unimplemented!("not used by the metadata log")
    }

    fn poll_done(&mut self) -> Option<Completion> {
        None
    }

    fn sync(&mut self, file: FileId) -> Result<(), DiskError> {
        if self.sync_fails {
            return Err(DiskError::Io);
        }
        self.syncs += u32::from(file != DIRECTORY);
        Ok(())
    }

    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError> {
        let data = &mut self.files[file.0 as usize];
        let freed = data.len().saturating_sub(bytes as usize);
        data.resize(bytes as usize, 0);
        if let Some(room) = &mut self.room {
            *room += freed;
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let file = self.names.remove(from).ok_or(DiskError::NotFound)?;
        self.names.insert(to.into(), file);
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<(), DiskError> {
        let file = self.names.remove(path).ok_or(DiskError::NotFound)?;
        if let Some(room) = &mut self.room {
            *room += self.files[file as usize].len();
        }
        Ok(())
    }

    fn create_dir(&mut self, _: &str) -> Result<(), DiskError> {
        unimplemented!("not used by the metadata log")
    }

    fn remove_dir(&mut self, _: &str) -> Result<(), DiskError> {
        unimplemented!("not used by the metadata log")
    }

    fn list(&mut self, _: &str, each: &mut dyn FnMut(&str)) -> Result<(), DiskError> {
        self.names.keys().for_each(|name| each(name));
        Ok(())
    }
}

impl Clock for MemDisk {
    fn now(&mut self) -> Instant {
        Instant::from_micros(0)
    }

    fn wall(&mut self) -> Timestamp {
        Timestamp(0)
    }

    fn ticks(&mut self) -> Ticks {
        Ticks(0)
    }

    fn thread_cpu(&mut self) -> u64 {
        0
    }

    fn random(&mut self, out: &mut [u8]) {
        for byte in out {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (self.random >> 56) as u8;
        }
    }
}
