# The verbs that a person and CI share. PYTHON chooses the interpreter of the environment (3.10 to 3.12).
PYTHON ?= python3
BIN := .venv/bin
MARK := .venv/.ready
ENGINES := .venv/.engines
PEERS := .venv-peers/.ready
# Patterns of workloads, quoted against the shell; `python -m bench --help` has the other options.
BENCH = $(if $(WORKLOAD),--workloads $(foreach w,$(WORKLOAD),'$(w)')) $(if $(SECONDS),--seconds $(SECONDS))

.PHONY: help demo test test-compose check format gate bench bench-peers requirements clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(MARK): requirements/serve.txt requirements/dev.txt pyproject.toml client/pyproject.toml tools/environment
	@PYTHON="$(PYTHON)" tools/environment .venv

$(ENGINES): $(MARK) requirements/engines.txt
	@echo "tricade: installing TensorRT for RTX, which compiles engines without a GPU"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/engines.txt
	@touch $(ENGINES)

$(PEERS): requirements/peers.txt | $(MARK)
	@echo "tricade: installing other ways to serve into .venv-peers"
	@$(BIN)/python -m venv --clear .venv-peers
	@.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/peers.txt
	@.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e client -e .
	@touch $(PEERS)

demo: $(MARK) ## environment, models, repository, Triton, one call, an annotated picture [IMAGE=path]
	@$(BIN)/python tools/demo.py $${IMAGE:+"$$IMAGE"}

test: $(ENGINES) ## unit, contract and live tests
	@$(BIN)/python -m pytest tests/unit tests/contract tests/live

test-compose: $(MARK) ## the images and compose.yaml on a real Docker engine
	@$(BIN)/python -m pytest tests/compose

check: $(MARK) ## formatting, lint, types
	@$(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy

format: $(MARK) ## rewrite the sources as `check` wants them
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

gate: $(MARK) ## one call against two calls and one process: ratios that must not get worse, a minute
	@$(BIN)/python -m bench.gate

bench: $(MARK) ## one call against one process and two calls, two minutes [WORKLOAD='squares-* …' SECONDS=1]
	@$(BIN)/python -m bench $(BENCH)

bench-peers: $(PEERS) ## the same against other ways to serve, half an hour [WORKLOAD=… SECONDS=…]
	@$(BIN)/python -m bench --peers --output out/bench-peers.json $(BENCH)

requirements: ## pin again what requirements/*.in names (needs uv)
	@for f in serve dev engines peers; do uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header \
	  --no-annotate --python-version 3.10 requirements/$$f.in -o requirements/$$f.txt --upgrade; done

clean: ## remove the environment and what was built
	@rm -rf .venv .venv-peers out models .mypy_cache .ruff_cache .pytest_cache .hypothesis
