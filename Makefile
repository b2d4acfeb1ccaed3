# make check is exactly what CI runs. make help lists the rest.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --short HEAD 2>/dev/null)
LDFLAGS  = -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
export CGO_ENABLED ?= 0

include real.mk bench.mk

.PHONY: help build test race lint check examples crash bench bench-journal clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

build: ## the static binary, in bin/oma
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/oma ./cmd/oma

test: ## every hermetic test
	$(GO) test ./...

race: ## every hermetic test with the race detector
	GORACE=atexit_sleep_ms=0 CRASH_ROUNDS=0 CGO_ENABLED=1 $(GO) test -race ./...

lint: ## formatting and vet
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	GOOS=darwin $(GO) vet ./...

check: lint test race examples test-real ## exactly what CI runs

examples: build ## validate and run every example with its cassette
	@./examples/check.sh bin/oma

crash: ## kill runs at every event, many times, and go on with them
	CRASH_ROUNDS=30 $(GO) test -count=1 -timeout 60m -run 'Killed|Stopped' -v ./cmd/oma ./runtime ./runtime/journal

bench: ## Go benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-journal: ## what the event log adds to a run, and what its records and going on cost
	$(GO) test -run '^$$' -bench 'Journal|Resume|Append|Batch|Records' ./cmd/oma ./runtime ./runtime/journal

clean: ## remove what was built
	rm -rf bin
