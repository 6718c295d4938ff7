# make measure   measure this machine and write a report
# make test      all tests; installs what they need from the distribution
# make bench     compare with peers
# make studies   run whole studies and keep their reports in docs/studies
# make check     format, lints, documentation
CARGO ?= cargo
PREFIX ?= $(HOME)/.local
ARGS ?=

.PHONY: measure build test test-long bench studies check install clean

measure: build
	@target/release/numalab measure $(ARGS)

build:
	@scripts/setup build
	@$(CARGO) build --release -p numalab

test:
	@scripts/setup test
	@scripts/test

test-long:
	@scripts/setup test
	@scripts/test long

bench: build
	@scripts/setup bench
	@scripts/bench $(ARGS)

studies: build
	@scripts/setup test
	@$(CARGO) build --release -p numalab-emulator
	@target/release/numalab guest image --fetch-qemu
	@scripts/studies $(ARGS)

check:
	@scripts/setup build
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features -q -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps -q

install: build
	install -Dm755 target/release/numalab $(PREFIX)/bin/numalab
	mkdir -p $(PREFIX)/share/man/man1
	target/release/numalab man $(PREFIX)/share/man/man1
	install -d $(PREFIX)/share/bash-completion/completions
	target/release/numalab completions bash > $(PREFIX)/share/bash-completion/completions/numalab

clean:
	$(CARGO) clean
