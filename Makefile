# Everyday commands. Each installs first, or names, what this machine lacks for it (tests/setup.sh).

.PHONY: run test unit sim interop check firmware check-arm dist fuzz bench bench-baseline bench-broker guard guard-baseline

# Arguments of the broker, e.g. make run ARGS="server.properties --override num.partitions=4"
ARGS ?=
# Which tests: a part of a test's name, e.g. make interop NAME=kafkajs
NAME ?=
# How long each fuzz target runs, and which.
FUZZ_SECONDS ?= 30
FUZZ_TARGETS ?= request response batch frame recovery tls_message tls_record tls_server tls_client keystore tls_certificate

run:
	tests/setup.sh run
	cargo run --profile quick --package skerry-broker --bin skerry -- run $(ARGS)

# Everything that can fail: unit and property tests, simulator, crashes, then real clients.
test: unit interop

unit:
	tests/setup.sh run
	cargo test --workspace $(NAME)
	$(MAKE) sim

# A thousand simulations; SKERRY_SEEDS and SKERRY_SEED_FROM for others.
sim:
	SKERRY_SEEDS=$${SKERRY_SEEDS:-1000} cargo test --profile sim --package skerry-tests --test sim -- --nocapture

interop:
	tests/setup.sh test
	cargo test --package skerry-tests --test interop --test tls_peers -- --ignored --nocapture --test-threads=2 $(NAME)
	cargo test --package skerry-bench --test page -- --ignored $(NAME)

check:
	tests/setup.sh check
	cargo fmt --all --check
	cargo fmt --manifest-path tests/interop/rust/Cargo.toml --check
	cargo fmt --manifest-path tests/fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
	tests/bare.sh

# The example firmware: its size, and its records in a live broker, by an emulated Cortex-M4 in plain and over TLS.
firmware:
	tests/setup.sh run firmware
	cargo fmt --manifest-path tests/firmware/Cargo.toml --all --check
	cargo test --package skerry-core
	cargo test --package skerry-core --features embedded-io,embedded-nal,defmt,bytes --doc --test client
	cargo test --package skerry-tests --test device
	tests/firmware.sh

# Everything for other machines: firmware, then the broker for 64 and 32 bits of ARM Linux, its crates' unit tests and a client of it.
check-arm: firmware
	tests/setup.sh dist
	tests/arm.sh

# What users install, for amd64, arm64 and armhf, in target/dist; then each package is installed and started.
dist:
	tests/setup.sh dist
	broker/packaging/dist
	tests/packages.sh

# libFuzzer works with a stable compiler once its instrumentation flags are let through.
fuzz:
	tests/setup.sh fuzz
	for target in $(FUZZ_TARGETS); do \
	    RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir tests/fuzz --sanitizer none $$target -- \
	        -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=1024 || exit 1; \
	done

# Benchmarks layer by layer: make bench NAME=record/seal for those whose name contains it.
BENCH_ARGS ?= --warm-up-time 0.3 --measurement-time 1

bench:
	tests/setup.sh run
	cargo bench --package skerry-bench -- $(BENCH_ARGS) $(NAME)

# All of them anew, as bench/baseline/layers. A quarter of an hour.
bench-baseline:
	rm -rf target/criterion
	$(MAKE) bench NAME=
	cargo run --package skerry-bench -- medians --command "make bench-baseline" --save bench/baseline/layers

# Instructions of the hot paths against bench/baseline/instructions.md, which depend on no other load of the machine.
guard:
	tests/setup.sh guard
	cargo bench --package skerry-guard --bench hot_paths

# Takes what they are now for what they may be.
guard-baseline:
	tests/setup.sh guard
	SKERRY_GUARD_MEASURE=1 cargo bench --package skerry-guard --bench hot_paths -- --output-format=json > target/guard.json
	cargo run --package skerry-guard --example baseline < target/guard.json > target/guard.md
	mv target/guard.md bench/baseline/instructions.md

# The README's figures. Some ten minutes; take them on a machine that does nothing else.
bench-broker:
	tests/setup.sh run
	cargo build --release --package skerry-broker --package skerry-bench
	target/release/skerry-bench footprint --skerry target/release/skerry
	target/release/skerry-bench broker --skerry target/release/skerry
