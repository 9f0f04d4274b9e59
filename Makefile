# Two commands do all: `make run` (the main job) and `make test`. Both create .venv on first use.
PYTHON ?= python3
BIN := .venv/bin
# Tests compile the same programs in many processes: each is compiled once.
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.venv/programs
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0.2
# So that two workers end together.
LONG := tests/audit/ tests/end_to_end/ tests/conformance/ tests/federate/
LONGEST_FIRST := $(LONG) $(filter-out $(LONG) tests/__pycache__/ tests/data/ tests/plugins/, $(wildcard tests/*/))

.PHONY: run test test-full test-federation format lint layers types pytest docs bench bench-peers tutorials clean

run: .venv/installed
	$(BIN)/fairwave run paper --rounds 50
	$(BIN)/fairwave report runs/paper

test: format lint layers types pytest

test-full: .venv/tested .venv/documented
	$(BIN)/pytest -n 2 --dist loadscope --no-loadscope-reorder -m "slow and not alone" $(LONGEST_FIRST)

test-federation: .venv/tested
	$(BIN)/pytest -m alone

format: .venv/tested
	$(BIN)/ruff format --check .

lint: .venv/tested
	$(BIN)/ruff check .

layers: .venv/tested
	$(BIN)/lint-imports

types: .venv/tested
	$(BIN)/mypy

pytest: .venv/tested
	$(BIN)/pytest -n 2 --dist loadscope -m "not slow"

# The site, in build/site; index.html there opens without a server.
docs: .venv/documented
	$(BIN)/python -m docs.site

bench: .venv/tested
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/private_training.py

# Every peer has an environment of its own under build/peers, made on first use. Leave the machine alone meanwhile.
bench-peers: .venv/tested
	$(BIN)/python benchmarks/compare.py

# The tutorials are run, and written to build/tutorials as pages that load nothing from elsewhere.
tutorials: .venv/taught
	$(BIN)/python docs/tutorial_pages.py

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "fairwave needs Python 3.11 or newer; try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

.venv/tested: .venv/installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev
	@touch $@

.venv/taught: .venv/installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group tutorials
	@touch $@

.venv/documented: .venv/installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs
	@touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
