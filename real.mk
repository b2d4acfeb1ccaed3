# Programs of others that tests meet for real: `make tools` once, then `make test-real`.
# Tests that need them are built with the tag real and look in OMA_REAL_DIR.

OMA_REAL_DIR   ?= $(CURDIR)/.real
AIMOCK_VERSION := 1.43.0
# The reference servers of MCP, the protocol's conformance suite (0.1.14 and later need node 22), and the SDK that the tiny
# external agent in testdata/real/acp is made of.
MCP_SERVERS_VERSION     := 2026.8.31
MCP_CONFORMANCE_VERSION := 0.1.13
ACP_SDK_VERSION         := 2.4.0
# External agents that people use. They have half a gigabyte: OMA_REAL_ACP=0 does without.
OMA_REAL_ACP            ?= 1
OPENCODE_VERSION        := 1.18.33
CODEX_ACP_VERSION       := 0.16.0
# Later versions of Ollama do not build from the module alone: their C++ headers are left out of it.
OLLAMA_VERSION := v0.6.8
# Where the server listens while the model is put into its store.
OLLAMA_PORT    ?= 11987

export OMA_REAL_DIR OMA_REAL_ACP

aimock := $(OMA_REAL_DIR)/.aimock-$(AIMOCK_VERSION)
ollama := $(OMA_REAL_DIR)/.ollama-$(OLLAMA_VERSION)
tiny   := $(OMA_REAL_DIR)/.model
mcp    := $(OMA_REAL_DIR)/.mcp-$(MCP_SERVERS_VERSION)-$(MCP_CONFORMANCE_VERSION)
acp    := $(OMA_REAL_DIR)/.acp-$(ACP_SDK_VERSION)
agents := $(if $(filter 1,$(OMA_REAL_ACP)),$(OMA_REAL_DIR)/.agents-$(OPENCODE_VERSION)-$(CODEX_ACP_VERSION))
npm     = npm install --prefix $(OMA_REAL_DIR) --no-audit --no-fund -E

.PHONY: tools test-real
tools: ## install the programs of others that tests meet for real
tools: $(aimock) $(mcp) $(acp) $(agents) $(ollama) $(tiny)

# Absent parts are skipped, and said so; with OMA_REAL_REQUIRED=1 they are failures.
test-real: ## the tests against programs of others, where `make tools` has put them
	@test -e $(aimock) && test -e $(mcp) && test -e $(acp) && test -e $(ollama) && test -e $(tiny) || echo "NOT TESTED AGAINST EVERY REAL PART: run make tools" >&2
	$(GO) test -tags real -count=1 -run TestReal ./runtime/openai ./runtime/mcp ./runtime/acp ./runtime/sandbox ./cmd/oma

$(OMA_REAL_DIR)/.gitignore:
	mkdir -p $(OMA_REAL_DIR)/bin $(OMA_REAL_DIR)/home $(OMA_REAL_DIR)/model
	echo '*' > $@

$(aimock): | $(OMA_REAL_DIR)/.gitignore
	$(npm) @copilotkit/aimock@$(AIMOCK_VERSION)
	touch $@

$(mcp): | $(OMA_REAL_DIR)/.gitignore
	$(npm) $(foreach s,everything filesystem,@modelcontextprotocol/server-$(s)@$(MCP_SERVERS_VERSION)) @modelcontextprotocol/conformance@$(MCP_CONFORMANCE_VERSION)
	touch $@

$(acp): | $(OMA_REAL_DIR)/.gitignore
	$(npm) @agentclientprotocol/sdk@$(ACP_SDK_VERSION)
	touch $@

$(OMA_REAL_DIR)/.agents-$(OPENCODE_VERSION)-$(CODEX_ACP_VERSION): | $(OMA_REAL_DIR)/.gitignore
	$(npm) opencode-ai@$(OPENCODE_VERSION) @zed-industries/codex-acp@$(CODEX_ACP_VERSION)
	touch $@

# Some four minutes of processor time, once. Needs a C and a C++ compiler.
$(ollama): | $(OMA_REAL_DIR)/.gitignore
	cd $(OMA_REAL_DIR) && CGO_ENABLED=1 GOFLAGS=-mod=mod GOBIN=$(OMA_REAL_DIR)/bin nice -n 19 go install github.com/ollama/ollama@$(OLLAMA_VERSION)
	touch $@

$(tiny): testdata/real/bigram/main.go testdata/real/bigram/Modelfile $(ollama)
	cp testdata/real/bigram/Modelfile $(OMA_REAL_DIR)/model/
	$(GO) run ./testdata/real/bigram $(OMA_REAL_DIR)/model/tiny.gguf
	cd $(OMA_REAL_DIR)/model && \
	export HOME=$(OMA_REAL_DIR)/home OLLAMA_MODELS=$(OMA_REAL_DIR)/models OLLAMA_HOST=127.0.0.1:$(OLLAMA_PORT) && \
	{ $(OMA_REAL_DIR)/bin/ollama serve > $(OMA_REAL_DIR)/ollama.log 2>&1 & server=$$!; trap "kill $$server" EXIT; \
	  for i in 1 2 3 4 5 6 7 8 9 10; do $(OMA_REAL_DIR)/bin/ollama list > /dev/null 2>&1 && break; sleep 1; done; \
	  $(OMA_REAL_DIR)/bin/ollama create tiny -f Modelfile; }
	touch $@
