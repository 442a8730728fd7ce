//! The page that `skerry-bench handshake --html` writes, as a browser shows it.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use skerry_tests::process::TempDir;

/// Of headless Chromium's window: all of the page.
const SIZE: (u32, u32) = (1100, 4200);

/// Blue, orange, green and purple of the charts.
const COLOURS: [[u8; 3]; 4] = [
    [0x00, 0x72, 0xb2],
    [0xe6, 0x9f, 0x00],
    [0x00, 0x9e, 0x73],
    [0xcc, 0x79, 0xa7],
];

fn run(program: &str, args: &[&str]) {
    let output = Command::new(program)
        .args(args)
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}; tests/setup.sh test installs what is missing"));
    assert!(
        output.status.success(),
        "{program}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// How often each colour is in a picture.
fn colours(picture: &Path) -> BTreeMap<[u8; 3], usize> {
    let decoder = png::Decoder::new(BufReader::new(File::open(picture).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    let mut found = BTreeMap::new();
    for pixel in bytes.chunks_exact(info.color_type.samples()) {
        *found.entry([pixel[0], pixel[1], pixel[2]]).or_insert(0) += 1;
    }
    found
}

/// Goal: a real browser draws the charts, with no network. A page without them has none of their colours.
#[test]
#[ignore = "needs Chromium: tests/setup.sh test"]
fn a_browser_draws_the_charts() {
    let directory = TempDir::new();
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (page, line, picture) = (file("page.html"), file("line.svg"), file("page.png"));
    let only = ["--quick", "--only", "1.3/mutual/p256", "--without", "loopback"];
    let mut args = vec!["handshake", "--html", &page, "--svg", &line];
    args.extend(only);
    run(env!("CARGO_BIN_EXE_skerry-bench"), &args);
    let text = fs::read_to_string(&page).unwrap();
    // The namespace is a name, not an address that is asked.
    let text = text.replace("http://www.w3.org/2000/svg", "");
    assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("<script"));
    assert!(fs::read_to_string(&line).unwrap().contains("await client hello"));

    let size = format!("--window-size={},{}", SIZE.0, SIZE.1);
    let shot = format!("--screenshot={picture}");
    let address = format!("file://{page}");
    let profile = format!("--user-data-dir={}", file("profile"));
    let common = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--force-color-profile=srgb",
    ];
    let mut args = common.to_vec();
    args.extend([profile.as_str(), &size, &shot, &address]);
    run("chromium", &args);
    // For whoever wants to look at it.
    if let Some(keep) = option_env!("CARGO_TARGET_TMPDIR") {
        let _ = fs::copy(&picture, Path::new(keep).join("page.png"));
    }
    let found = colours(Path::new(&picture));
    for colour in COLOURS {
        let pixels = found.get(&colour).copied().unwrap_or(0);
        assert!(pixels > 500, "{pixels} pixels of {colour:?}");
    }
}
