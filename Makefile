# Each target works from a fresh clone: it runs the set-up when that has not run.
GO ?= go
SHELL := bash
.SHELLFLAGS := -o pipefail -c
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: setup demo test test-fast test-slow test-race chaos lint names bench results bench-peers bench-peers-quick \
	gpu memory deployed portable test-libtorch doctor clean

# Finds or installs libtorch, adapts gotch in the user's cache, writes go.work, and builds once. Done already, it takes
# seconds.
setup:
	$(GO) run ./cmd/kelvin setup

demo: setup
	$(GO) run ./examples/logistic

# The last lines name the five slowest packages.
test: setup
	$(GO) test -timeout 30m ./... 2>&1 | $(GO) run ./internal/lint slowest

# The tests of the rooms one works in: ROOMS="./torch ./ppl", else the folders with Go files that differ from main.
BASE ?= $(shell git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main)
ROOMS ?= $(sort $(patsubst %,./%,$(dir $(wildcard $(shell git diff --name-only $(BASE) -- '*.go'; \
	git ls-files --others --exclude-standard -- '*.go')))))
test-fast:
	@if [ -z "$(ROOMS)" ]; then echo "no room differs from main: name some, ROOMS=./ppl"; else \
		$(GO) test -short $(ROOMS) 2>&1 | $(GO) run ./internal/lint slowest; fi

# The statistical suites that take longer, and the tests under the race detector.
test-slow: setup
	$(GO) test -tags slow -timeout 60m ./...
	$(MAKE) test-race

# RACE=./torch tests one package.
RACE ?= ./...
test-race: setup
	$(GO) test -race -timeout 60m $(RACE)

# All tests with the libtorch of another PyTorch wheel, `make test-libtorch VERSION=2.5.1`, which pip downloads. It has
# caches and a go.work of its own, in kelvin-libtorch of the user's cache folder (2 GB); the checkout stays as it is.
VERSION ?=
test-libtorch:
	$(GO) run ./internal/wheeltest -version '$(VERSION)'

# The rooms that use models without libtorch are built for other platforms, and their tests run where there is an
# emulator: qemu-aarch64 for arm64, node for WebAssembly. TestBrowser wants chromium.
PORTABLE = ./serve ./store ./data ./diag ./draws ./infer/hmc/kernel ./infer/native/portable ./cmd/kelvin
portable: export CGO_ENABLED = 0
portable: export GOWORK = off
portable:
	for p in linux/amd64 linux/arm64 darwin/arm64 windows/amd64; do \
		GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build $(PORTABLE) || exit 1; done
	GOOS=js GOARCH=wasm $(GO) build $(filter-out ./cmd/kelvin,$(PORTABLE))
	if command -v qemu-aarch64; then GOARCH=arm64 $(GO) test -exec qemu-aarch64 ./serve ./infer/native/portable; fi
	if command -v node; then GOOS=js GOARCH=wasm $(GO) test -exec "$$($(GO) env GOROOT)/lib/wasm/go_js_wasm_exec" \
		-run 'Stored|Anywhere|Service$$|Refuses|With|Temperature' ./serve; fi
	$(GO) test -tags slow -run Browser ./serve

# What kills, damage and misuse do, as docs/reliability.md has it, which this writes. ONLY=kills runs the checks of that
# name.
ONLY ?=
chaos: setup
	$(GO) run ./internal/chaos -only '$(ONLY)'

lint: setup
	@files="$$(gofmt -l .)"; if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi
	$(GO) run ./internal/lint columns
	$(GO) run ./internal/lint docs
	$(GO) run ./internal/lint names
	$(GO) run ./internal/lint goroutines
	$(GO) run ./internal/lint writes
	$(GO) vet ./...
	$(GO) vet -tags slow ./...
	$(GO) run $(STATICCHECK) -tags slow ./...

# How many names each public package exports; fails above the limit.
names:
	$(GO) run ./internal/lint names

# Kelvin against the same operations in C++, compiled models against hand-written log posteriors, samplers against the
# gradient and the noise alone, each in one run; the kernels in plain Go.
bench: setup
	$(GO) run ./bench/compare
	$(GO) run ./bench/language
	$(GO) run ./bench/sgmcmc
	$(GO) run ./bench/sgmcmc -libtorch
	$(GO) run ./bench/curvature
	$(GO) test -run '^$$' -bench . ./infer/hmc/kernel

# Runs the benchmarks of docs/results.md and writes their tables there, with machine, date and commit: on a quiet
# machine. ONLY=language runs one of them.
results: setup
	$(GO) run ./bench/results -only '$(ONLY)'

# What needs a GPU, in one go: what is found, the tests, the tables of docs/results.md, and ResNet-20 of its published
# size with filter response normalisation by SGD and by SGHMC at T = 1 and 0.01, each for EPOCHS passes over 20,000
# images. The table says how many passes of one of them take five minutes. PYTHON is one with PyTorch, DATA a folder of
# CIFAR-10; without it the images are made up.
EPOCHS ?= 16
gpu: setup
	$(GO) run ./cmd/kelvin doctor
	$(GO) test -count=1 ./internal/cuda ./torch ./bench/gpu
	$(GO) test -count=1 -run TestDevices ./examples/papers/atmc
	$(if $(PYTHON),PATH="$(dir $(PYTHON)):$$PATH") $(GO) run ./bench/results -only gpu
	for run in "-only SGD" "-only SGHMC -prepared -temperature 1" "-only SGHMC -prepared -temperature 0.01"; do \
		$(GO) run ./examples/papers/atmc -device cuda $(if $(DATA),-data $(DATA)) -dir "out/atmc-gpu/$$run" -net resnet20 \
		-norm frn -depth 20 -filters 16 -whole -augment=false -images 20000 -tests 10000 -batch 128 -epochs $(EPOCHS) \
		-cycle $$(($(EPOCHS) / 8)) -start $$(($(EPOCHS) / 2)) -seeds 1 -momentum-sghmc 0.98 $$run || exit 1; done

# Kelvin beside Stan, nutpie, NumPyro, BlackJAX, Pyro and posteriors, which the first run installs in the user's cache;
# POSTERIORDB is a checkout of posteriordb. bench-peers-quick is shorter.
bench-peers: setup
	$(GO) run ./bench/compiled
	$(GO) run ./bench/peers

bench-peers-quick: setup
	$(GO) run ./bench/compiled -seconds 0.1 -points 20
	$(GO) run ./bench/peers -quick

# A million gradient evaluations, and ten million compiled ones in each tier: fails when resident memory grows by more
# than 50 MB.
memory: setup
	$(GO) run ./bench/memory
	$(GO) run ./bench/memory -tier vm -n 10000000
	$(GO) run ./bench/memory -tier native -n 10000000

# A program in a folder with libtorch's libraries and nothing else: no compiler, no Go, no headers. It needs root.
deployed: setup
	$(GO) test -tags slow -run TestDeployed -count=1 -v ./cmd/kelvin

doctor:
	$(GO) run ./cmd/kelvin doctor

clean:
	rm -rf out
