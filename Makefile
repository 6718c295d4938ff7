# make measure   measure this machine and write a report
# make build     everything, optimised: command, emulator plugin, kernel
# make run       boot numalab's kernel with SMP cpus and MEM, run its test_numa with and without
#                a NUMA-aware allocator, and print the gain
# make test      the tests that every change must pass; installs the tools that they need
# make test-long the longer tests, in slices: all of them, or SLICE=3/10
# make bench     compare with peers
# make studies   run whole studies and keep their reports in docs/studies
# make check     format, lints, layering, words of the glossary, documentation
# make aarch64   numalab for aarch64, which guests with --arch aarch64 run
# make dist      a release in dist/: archives, Debian and RPM packages for x86_64 and aarch64
CARGO ?= cargo
PREFIX ?= $(HOME)/.local
ARGS ?=
SLICE ?=

# The kernel's machine and work, by the names of the frame allocator's first test.
SMP ?= 2
MEM ?= 2G
NUMA ?= true
ENABLE_BASIC_TEST ?= true
RUNS ?= 1
# Nanoseconds of local memory: emulated costs are the same in every run. On a machine with KVM and two
# nodes, LATENCY= uses the machine's own memory; that test has RUNS=20.
LATENCY ?= 100
KERNEL_WORDS ?=

.PHONY: measure run build aarch64 test test-long bench studies check dist install clean

# Builds only the command, and quickly: measuring loops as in a release, the rest unoptimised.
measure:
	@scripts/setup build
	@$(CARGO) build --profile measure -p numalab
	@target/measure/numalab measure $(ARGS)

# NUMA=true: first an allocator that ignores nodes, then a NUMA-aware one; otherwise only the first.
# ENABLE_BASIC_TEST=true: test_numa at its full size; otherwise the kernel boots and ends.
run: build
	@scripts/run $(if $(filter true,$(NUMA)),blind numa,blind) -- --emulate 2 --cpus $(SMP) \
	  --memory $(MEM) $(if $(LATENCY),--emulate-latency $(LATENCY)) $(ARGS) -- \
	  work=$(if $(filter true,$(ENABLE_BASIC_TEST)),test_numa,none) runs=$(RUNS) $(KERNEL_WORDS)

build:
	@scripts/setup build
	@$(CARGO) build --release -p numalab
	@$(CARGO) build --release -p numalab-emulator
	@scripts/kernel

aarch64:
	@scripts/setup aarch64
	@CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	  CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS='-C target-feature=+crt-static' \
	  $(CARGO) build --release -p numalab --target aarch64-unknown-linux-gnu

test:
	@scripts/setup test
	@scripts/test

test-long:
	@scripts/setup test-long
	@scripts/test long $(SLICE)

bench: build
	@scripts/setup bench
	@scripts/bench $(ARGS)

studies: build
	@scripts/setup test
	@target/release/numalab guest image --fetch-qemu
	@scripts/studies $(ARGS)

check:
	@scripts/setup build
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features -q -- -D warnings
	@scripts/kernel check
	$(CARGO) test -q -p numalab --test tidy
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps -q

dist:
	@scripts/setup dist
	@scripts/dist

install: build
	install -Dm755 target/release/numalab $(PREFIX)/bin/numalab
	install -Dm755 target/release/libnumalab_emulator.so $(PREFIX)/lib/numalab/libnumalab_emulator.so
	mkdir -p $(PREFIX)/share/man/man1
	if [ -e target/release/numalab-kernel.elf ]; then \
	  install -Dm644 target/release/numalab-kernel.elf $(PREFIX)/lib/numalab/numalab-kernel.elf; fi
	target/release/numalab man $(PREFIX)/share/man/man1
	install -Dm755 -t $(PREFIX)/share/numalab/integrations/suite integrations/suite/*
	install -d $(PREFIX)/share/bash-completion/completions
	target/release/numalab completions bash > $(PREFIX)/share/bash-completion/completions/numalab

clean:
	$(CARGO) clean
