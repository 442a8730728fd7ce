//! Counting a process's allocations from outside: `tests/preload/count.c`, built and preloaded.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shim and the file through which it reports. One for each process watched.
#[derive(Debug)]
pub struct AllocationCount {
    library: PathBuf,
    path: PathBuf,
    words: File,
}

impl AllocationCount {
    /// Builds the shim into `directory` with the C compiler `cc`, and makes its report file there.
    ///
    /// Errors: no compiler, or what it said.
    pub fn build(directory: &Path) -> io::Result<Self> {
        let library = directory.join("count.so");
        compile("count.c", &library, &["-shared", "-fPIC"])?;
        let path = directory.join("allocations");
        fs::write(&path, [0; 40])?;
        let words = File::options().read(true).write(true).open(&path)?;
        Ok(Self { library, path, words })
    }

    /// The count that a process itself is watched by, from the directory in which its parent built it.
    pub fn join(directory: &Path) -> io::Result<Self> {
        let path = directory.join("allocations");
        let words = File::options().read(true).write(true).open(&path)?;
        let library = directory.join("count.so");
        Ok(Self { library, path, words })
    }

    /// Has `command`'s process counted.
    pub fn watch<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("LD_PRELOAD", &self.library)
            .env("SKERRY_COUNT_FILE", &self.path)
    }

    /// Allocations since the process started, as of now.
    ///
    /// Errors: the shim is not at work in any process, so that 0 would mean nothing.
    pub fn allocations(&self) -> io::Result<u64> {
        match self.word(3)? {
            1 => self.word(0),
            _ => Err(io::Error::other("the allocation counter was not loaded")),
        }
    }

    /// Bytes asked for since the process started.
    pub fn bytes(&self) -> io::Result<u64> {
        self.word(1)
    }

    /// Bytes that the process has allocated now.
    pub fn live_bytes(&self) -> io::Result<u64> {
        self.word(4)
    }

    /// From now on (or no longer) prints each allocation's backtrace to the process's standard error: who is it?
    pub fn trace(&self, on: bool) -> io::Result<()> {
        self.words.write_all_at(&u64::from(on).to_ne_bytes(), 2 * 8)
    }

    fn word(&self, index: u64) -> io::Result<u64> {
        let mut word = [0; 8];
        self.words.read_exact_at(&mut word, index * 8)?;
        Ok(u64::from_ne_bytes(word))
    }
}

/// Compiles one of the C files beside the shim.
pub fn compile(source: &str, to: &Path, options: &[&str]) -> io::Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload").join(source);
    // The compiler must not take the allocator's names for the functions that it knows: it may leave their calls out.
    let mut command = Command::new("cc");
    command.args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fno-builtin"]);
    let output = command.args(options).arg("-o").arg(to).arg(source).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}
