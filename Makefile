# Everything that a fresh clone needs: `make help`.
SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# The first interpreter that is new enough.
PYTHON ?= $(shell for p in python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
WORKERS ?= 2
# A second environment: what the first one has, but with the newest Triton.
NEWEST := $(VENV)-newest-triton
ARGS ?=

.PHONY: help demo test test-all test-triton lint bench docs clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(INSTALLED) ## the main job on real data: graphs and a physical problem, checked
	$(BIN)/python examples/demo.py

test: $(INSTALLED) ## the tests (ARGS='-k name' for some of them)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-all: $(INSTALLED) ## the tests, the whole sweep of expressions and formats included
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not gpu" $(ARGS)
	$(MAKE) test-triton

test-triton: $(NEWEST)/.installed ## all that compiles and runs kernels for GPUs, with the newest Triton
	$(NEWEST)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not gpu" \
		tests/unit/backends/triton tests/unit/passes tests/unit/runtime $(ARGS)
	$(NEWEST)/bin/python -m pytest -n $(WORKERS) --dist worksteal tests/numeric/test_tiles.py $(ARGS)

lint: $(INSTALLED) ## ruff and pyright (strict)
	$(BIN)/ruff check
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(INSTALLED) ## the benchmarks: ratios to peers measured in the same run
	$(BIN)/python benchmarks/run.py $(ARGS)

docs: $(INSTALLED) ## write docs/walk.md anew from the compiler's own output
	$(BIN)/python -m pytest tests/test_walk.py --update-golden

clean: ## remove the virtual environment and everything built
	rm -rf $(VENV) $(NEWEST) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Installed again only when pyproject.toml changes; what is there already and fits is kept.
$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: sparsecc needs Python 3.11 or newer (PYTHON=...)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing sparsecc and its tools into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

$(NEWEST)/.installed: $(INSTALLED)
	@test -x $(NEWEST)/bin/python || $(BIN)/python -m venv $(NEWEST)
	@echo "installing the newest triton into $(NEWEST) (once)"
	@$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade triton
	@$(NEWEST)/bin/python -c 'import site, sys; \
		open(site.getsitepackages()[0] + "/first.pth", "w").write("import site; site.addsitedir(%r)\n" % sys.argv[1])' \
		"$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')"
	@$(NEWEST)/bin/python -c 'import triton; print("triton", triton.__version__)'
	@touch $@
