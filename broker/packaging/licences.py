#!/usr/bin/env python3
"""Writes the licences of everything that a binary for a target consists of, as Markdown to standard output.

    licences.py TARGET
"""

import json
import pathlib
import subprocess
import sys

LIBRARIES = """
## Rust's standard library

MIT OR Apache-2.0 (https://github.com/rust-lang/rust), with parts that its own COPYRIGHT names.

## The GNU C Library

The binary is linked with glibc statically. glibc is under LGPL-2.1-or-later; its sources are those of the distribution that the binary
was built on (Debian: `apt-get source glibc`), and whoever wants another version of it can link again with the sources of Skerry and
`make dist`.
"""


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], check=True, capture_output=True, text=True).stdout


def licence_files(folder):
    """Of a crate, and of the C libraries that two of them bring."""
    for within in (folder, folder / "vendor", folder / "aws-lc"):
        for path in sorted(within.glob("*")) if within.is_dir() else ():
            if path.is_file() and path.name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT")):
                yield path


def main(target):
    tree = cargo("tree", "--locked", "--package", "skerry-broker", "--edges", "normal", "--target", target,
                 "--prefix", "none", "--format", "{p}")
    used = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    packages = [
        package
        for package in json.loads(cargo("metadata", "--locked", "--format-version", "1"))["packages"]
        if (package["name"], "v" + package["version"]) in used and package["source"]
    ]
    print("# What this binary contains besides Skerry\n")
    texts = {}
    for package in sorted(packages, key=lambda package: (package["name"], package["version"])):
        name = f"{package['name']} {package['version']}"
        print(f"- {name}: {package['license'] or 'see its files below'} ({package['repository'] or 'no address'})")
        for path in licence_files(pathlib.Path(package["manifest_path"]).parent):
            # Many crates have the same text, to the letter.
            texts.setdefault(path.read_text(errors="replace").strip(), []).append(f"{name} ({path.name})")
    print(LIBRARIES)
    for text, owners in texts.items():
        print(f"## {', '.join(owners)}\n\n```text\n{text}\n```\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
