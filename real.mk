# Programs of others that tests meet for real: `make tools` once, then `make test-real`.
# Tests that need them are built with the tag real and look in OMA_REAL_DIR.

OMA_REAL_DIR   ?= $(CURDIR)/.real
AIMOCK_VERSION := 1.43.0
# Later versions of Ollama do not build from the module alone: their C++ headers are left out of it.
OLLAMA_VERSION := v0.6.8
# Where the server listens while the model is put into its store.
OLLAMA_PORT    ?= 11987

export OMA_REAL_DIR

aimock := $(OMA_REAL_DIR)/.aimock-$(AIMOCK_VERSION)
ollama := $(OMA_REAL_DIR)/.ollama-$(OLLAMA_VERSION)
tiny   := $(OMA_REAL_DIR)/.model

.PHONY: tools test-real
tools: ## install the programs of others that tests meet for real
tools: $(aimock) $(ollama) $(tiny)

# Absent parts are skipped, and said so; with OMA_REAL_REQUIRED=1 they are failures.
test-real: ## the tests against programs of others, where `make tools` has put them
	@test -e $(aimock) && test -e $(ollama) && test -e $(tiny) || echo "NOT TESTED AGAINST EVERY REAL PART: run make tools" >&2
	$(GO) test -tags real -count=1 -run TestReal ./runtime/openai ./cmd/oma

$(OMA_REAL_DIR)/.gitignore:
	mkdir -p $(OMA_REAL_DIR)/bin $(OMA_REAL_DIR)/home $(OMA_REAL_DIR)/model
	echo '*' > $@

$(aimock): | $(OMA_REAL_DIR)/.gitignore
	npm install --prefix $(OMA_REAL_DIR) --no-audit --no-fund -E @copilotkit/aimock@$(AIMOCK_VERSION)
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
