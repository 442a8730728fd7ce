//! Prints what firmware logs by defmt: `firmware-log ELF < frames`.

use std::io::Read;
use std::process::ExitCode;
use std::{env, fs, io};

use defmt_decoder::{DecodeError, Table};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("firmware-log: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let elf = env::args().nth(1).ok_or("usage: firmware-log ELF < frames")?;
    let table = Table::parse(&fs::read(elf)?)?.ok_or("the ELF has no .defmt section")?;
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    let mut decoder = table.new_stream_decoder();
    decoder.received(&bytes);
    loop {
        match decoder.decode() {
            Ok(frame) => println!("{}", frame.display(false)),
            Err(DecodeError::UnexpectedEof) => return Ok(()),
            Err(DecodeError::Malformed) => return Err("malformed frame".into()),
        }
    }
}
