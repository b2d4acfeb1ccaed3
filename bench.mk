# The program beside the floor of the machine, on the same declared work and the same scripted upstream.
#
#   make bench-peers BENCH_DIR=../bench [BENCH_CASES=chain2,read200] [BENCH_RUNS=9]
#
# BENCH_DIR is a folder with three programs in a folder each: mockllm, an OpenAI-compatible upstream that answers at
# once; floor, the least a Go program can do; and runbench, which runs programs in turns and prints medians and ratios.
# The first row of every table is the floor, so that "wall ×" is the ratio that counts.

BENCH_CASES ?=
BENCH_RUNS  ?= 9
# Further flags of runbench, such as -json FILE to keep every sample, or -peer for another program.
BENCH_FLAGS ?=

bench_bin = $(CURDIR)/bin/bench

.PHONY: bench-peers bench-children
bench-peers: build ## compare with the machine's floor; needs BENCH_DIR, see bench.mk
	@test -d "$(BENCH_DIR)/runbench" || { echo "bench-peers: give BENCH_DIR=FOLDER, see bench.mk" >&2; exit 2; }
	@mkdir -p $(bench_bin)
	for p in mockllm runbench floor; do (cd "$(BENCH_DIR)/$$p" && $(GO) build -trimpath -o $(bench_bin)/$$p .) || exit 1; done
	$(GO) build -trimpath -o $(bench_bin)/generate ./testdata/bench/generate
	$(bench_bin)/runbench -mock $(bench_bin)/mockllm -n $(BENCH_RUNS) $(if $(BENCH_CASES),-cases $(BENCH_CASES)) $(BENCH_FLAGS) \
	  -peer 'script/floor=$(bench_bin)/floor' \
	  -peer 'exec/oma=$(bench_bin)/generate $(CURDIR)/bin/oma' \
	  -peer 'exec/oma-no-journal=$(bench_bin)/generate $(CURDIR)/bin/oma --no-journal'

# What is measured stands against the same program, started or asked by bare means: x-bare.
bench-children: ## what commands, bash and its walls, MCP servers and ACP agents cost over the bare program
	$(GO) test -run '^$$' -bench 'Bash$$|Stdio|TurnBare|Command$$' -benchtime 2s ./runtime/custom ./runtime/sandbox ./runtime/mcp ./runtime/acp
