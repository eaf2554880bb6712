# heapcam: targets. "make" alone lists them.
GO      ?= go
VERSION ?= $(shell tools/version)
COMMIT  ?= $(shell tools/version commit)
PROBE_VERSION = $(shell VERSION=$(VERSION) tools/version probe)
ARCH    := $(shell $(GO) env GOARCH)
PROBE   := probe/lib/libheapcam-linux-$(ARCH).so
DLL     := probe/build/heapcam-windows-amd64.dll
CFLAGS  ?= -O3 -g
CWARN   := -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wshadow
export GOFLAGS := -buildvcs=false

.PHONY: help setup probe setup-arm64 probe-arm64 probe-windows build demo readme test test-full check-tables test-jdks test-arm64 test-wine bench bench-overhead bench-store bench-compression soak packages dist images web screenshots pace answers lint clean bench-analysis

help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is missing on Debian 12 or 13 (apt packages by name)
	@tools/setup

probe: setup $(PROBE) ## compile the C probe

# One library for glibc and musl: it names no libc, and its symbols have no versions. The process that loads it has them.
NOLIBC  := -nostdlib -nostartfiles -U_FORTIFY_SOURCE -fno-stack-protector

probe-arm64: setup-arm64 probe/lib/libheapcam-linux-arm64.so ## compile the C probe for arm64 (Debian: gcc-aarch64-linux-gnu)

setup-arm64: setup
	@test $(ARCH) = arm64 || tools/setup aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu aarch64-linux-gnu-gcc:libc6-dev-arm64-cross

CC_amd64 := $(if $(filter amd64,$(ARCH)),gcc,x86_64-linux-gnu-gcc)
CC_arm64 := $(if $(filter arm64,$(ARCH)),gcc,aarch64-linux-gnu-gcc) -mno-outline-atomics
# nodelete: a JVM unloads a library that has refused to record it, and would call into it at its end.
probe/lib/libheapcam-linux-%.so: $(wildcard probe/src/*.c probe/src/*.h probe/src/*.def probe/*.h)
	@JH=$$(JAVA_HOME="$(JAVA_HOME)" tools/jdk-home) && \
	$(CC_$*) -std=c11 -D_GNU_SOURCE $(CFLAGS) -fPIC -shared $(NOLIBC) -fvisibility=hidden $(CWARN) -isystem "$$JH/include" -isystem "$$JH/include/linux" \
	    -DHC_PROBE_VERSION='"$(PROBE_VERSION)"' -Iprobe -include probe/libc.h probe/src/*.c -o $@.tmp -lgcc -Wl,--strip-debug -Wl,-z,nodelete && mv $@.tmp $@

probe-windows: setup $(DLL) ## compile the C probe for Windows (Debian: gcc-mingw-w64-x86-64)

# gnu11: mingw's headers are not those of plain C. -static: it needs no library of mingw's beside it. No time stands in it: the same bytes again.
$(DLL): $(wildcard probe/src/*.c probe/src/*.h probe/src/*.def probe/windows/*.h probe/*.h)
	@JH=$$(JAVA_HOME="$(JAVA_HOME)" tools/jdk-home) && mkdir -p $(@D) && \
	x86_64-w64-mingw32-gcc -std=gnu11 $(CFLAGS) -shared -static -Wl,--no-insert-timestamp $(CWARN) -D__USE_MINGW_ANSI_STDIO=1 -isystem "$$JH/include" -isystem probe/windows \
	    -DHC_PROBE_VERSION='"$(PROBE_VERSION)"' -Iprobe probe/src/*.c -o $@.tmp && mv $@.tmp $@

build: probe ## bin/heapcam, with the probe inside
	$(GO) build -trimpath -ldflags '-X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o bin/heapcam ./cmd/heapcam

demo: build ## record a leaking service, kill it, pull the last part, name the leak (under three minutes)
	@tools/demo

readme: build ## put real output of this build into README.md and docs/tutorial.md (four minutes)
	@$(GO) run ./tools/readme

test: build ## the short tests (about nine minutes on 2 cores); HEAPCAM_GATE=1: some more
	@tools/setup jdk-17 chromium jq
	@tools/test

test-full: build ## all tests, the numbers that the documentation names (three hours; resumable; PACKAGES= selects)
	@tools/setup jdk-17 chromium jq prometheus curl zip lintian visualvm podman runc systemd-nspawn:systemd-container attr versitygw libchdb clickhouse kotlinc:kotlin scalac:scala groovyc:groovy
	@$(GO) run ./tools/test-full $(PACKAGES)

check-tables: ## compare the exported tables of every JDK with what the probe reads, without starting a JVM (root)
	@$(GO) build -o bin/check-tables ./tools/check-tables; rc=0; \
	for n in $$(bin/check-tables -tested); do where=$$(tools/jdk-root $$n) && set -- $$where && bin/check-tables "$$2$$1" || rc=1; done; \
	for r in /usr/lib/jvm/*/release; do [ ! -e "$$r" ] || bin/check-tables "$${r%/release}" || rc=1; done; exit $$rc

test-jdks: build ## end-to-end tests on every JDK that heapcam records (JDKS=11,27 PARTS=pairs select; resumable; root)
	@$(GO) run ./tools/test-jdks -jdks "$(JDKS)" -parts "$(PARTS)"

test-wine: ## what a Windows can show without one: portable tests, service, the probe's DLL (wine; several minutes)
	@tools/test-wine

# The root for arm64 stays in ARM64_ROOT (350 MB of downloads, once; as root). JDK 21 and 25, three collectors, two depths; then two larger pages.
ARM64_ROOT ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/heapcam-arm64
test-arm64: build probe-arm64 ## what an arm64 can show without one: JVMs, the ring, sizes of pages (qemu-user; half an hour)
	@tools/setup qemu-aarch64-static:qemu-user-static && mkdir -p "$(dir $(ARM64_ROOT))" && tools/arm64-root "$(ARM64_ROOT)"
	HEAPCAM_ARM64_ROOT="$(ARM64_ROOT)" $(GO) test ./probe -run 'TestAnyLibc|TestLibcNames|TestRingStress|TestLitmus' -count=1 -v
	for page in "" 16384 65536; do HEAPCAM_PAGE=$$page HEAPCAM_ARM64_ROOT="$(ARM64_ROOT)" HEAPCAM_BIN=$(CURDIR)/bin/heapcam \
	    $(GO) test ./internal/e2e -run 'TestArm64$$' -count=1 -v -timeout 60m || exit 1; done

bench: build ## benchmarks of the Go packages
	$(GO) test -run '^$$' -bench . -benchtime 1s ./trace ./heap ./ringstore

bench-analysis: build ## the reading path: replay, sync points, grouping of ten million objects, 50 million live ones, and beside it others' tools
	HEAPCAM_FULL=1 $(GO) test -run '^$$' -bench 'FullDepth|Survivors|SyncPoint|Group|ListMode' -benchtime 3x -timeout 30m ./heap ./analysis
	$(GO) run ./bench/compare

bench-overhead: build ## what recording costs real programs (PROGRAM= JDK= GC= ROUNDS= SCALE= select; resumable; appends to bench/results)
	$(GO) run ./bench -program "$(PROGRAM)" -jdk "$(JDK)" -gc "$(GC)" -rounds $(or $(ROUNDS),6) -scale $(or $(SCALE),1)

bench-store: ## append, recovery and pull of the store beside dd and a copy (1 GiB on the disk of TMPDIR)
	@tools/bench-store

bench-compression: build ## bytes per object of each mode of compression, on the programs of bench/workloads
	@d=$$(mktemp -d) && trap 'rm -rf "$$d"' EXIT && bench/compression/record.sh "$$d" >/dev/null && $(GO) run ./bench/compression "$$d"/*/*

soak: build ## 30 minutes and 500 rounds of kills of a process that writes a ring, 30 minutes of JVMs that come and go below one agent, 90 minutes of attaching and detaching with classes that come and go (ROUNDS= FOR= ATTACH_FOR= for others)
	HEAPCAM_SOAK=$(or $(ROUNDS),500) HEAPCAM_SOAK_FOR=$(or $(FOR),30m) $(GO) test ./ringstore -run 'TestSoak$$' -count=1 -v -timeout 120m
	HEAPCAM_BIN=$(CURDIR)/bin/heapcam HEAPCAM_CHURN_FOR=$(or $(FOR),30m) $(GO) test ./internal/e2e -run 'TestChurn$$' -count=1 -v -timeout 120m
	HEAPCAM_BIN=$(CURDIR)/bin/heapcam HEAPCAM_ATTACH_FOR=$(or $(ATTACH_FOR),90m) $(GO) test ./internal/e2e -run 'TestAttachSoak$$' -count=1 -v -timeout 180m

packages: build ## deb and rpm into dist/, for arm64 too where the cross compiler is (the same commit gives the same bytes)
	@VERSION=$(VERSION) tools/packages

dist: build ## archives for linux, darwin and windows, amd64 and arm64, into dist/ (linux records; arm64 where the cross compiler is; windows-amd64 with the DLL and as MSI where mingw and wixl are)
	@VERSION=$(VERSION) tools/packages archives

images: build ## programs for the container image, bin/linux-amd64/heapcam and bin/linux-arm64/heapcam (the second where the cross compiler is)
	@VERSION=$(VERSION) tools/packages images

web: ## the viewer's libraries anew from npm, as web/package-lock.json pins them (they are committed; go build needs no npm)
	@cd web && npm ci --omit=dev --silent && mkdir -p assets/vendor && cp node_modules/uplot/dist/uPlot.iife.min.js assets/vendor/uplot.js && \
	cp node_modules/uplot/dist/uPlot.min.css assets/vendor/uplot.css && cp node_modules/uplot/LICENSE assets/vendor/uplot.LICENSE

screenshots: build ## the pictures of the viewer in docs/images/ (needs chromium)
	@tools/screenshots

pace: build ## how soon the viewer's page answers: a small leak, a GC storm, ten million objects (OF= another; needs chromium)
	HEAPCAM_PACE=1 HEAPCAM_PACE_OF=$(OF) HEAPCAM_BIN=$(CURDIR)/bin/heapcam $(GO) test ./web -run 'TestPace$$' -count=1 -v -timeout 60m

answers: build ## what each answer of the viewer costs, in processor time (OF= the recording)
	HEAPCAM_ANSWERS=1 HEAPCAM_PACE_OF=$(OF) HEAPCAM_BIN=$(CURDIR)/bin/heapcam $(GO) test ./web -run 'TestAnswerCost$$' -count=1 -v -timeout 60m

lint: setup ## gofmt, go.mod, vet, staticcheck, dropped errors, sizes of lines, functions and files, layers, C warnings, prose
	@tools/lint

clean: ## remove what the build made
	rm -rf bin dist probe/lib/*.so probe/build
