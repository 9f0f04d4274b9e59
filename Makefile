# Two commands do all: `make run` (the main job) and `make test`. Both create .venv on first use.
PYTHON ?= python3
BIN := .venv/bin
# Tests compile the same programs in many processes: each is compiled once.
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.venv/programs
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0.2
# So that two workers end together.
LONG := tests/audit/ tests/end_to_end/ tests/conformance/ tests/federate/
LONGEST_FIRST := $(LONG) $(filter-out $(LONG) tests/__pycache__/ tests/data/ tests/plugins/, $(wildcard tests/*/))
# Tests that need neither extras nor programs beside Python.
CORE := policy privacy wireless scenario runs planner
WITH_LOWEST := tests/golden $(addprefix tests/unit/,$(CORE)) tests/end_to_end/test_run_command.py \
	tests/end_to_end/test_plan_command.py --ignore tests/unit/policy/test_server_optimizers.py
MEASURED := tests/unit tests/properties tests/golden tests/conformance

.PHONY: run test test-full test-federation test-lowest test-wheel format lint layers types pytest coverage docs bench \
	bench-peers tutorials dist sbom clean

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
	$(BIN)/codespell
	$(BIN)/hadolint Dockerfile .devcontainer/Dockerfile

layers: .venv/tested
	$(BIN)/lint-imports

types: .venv/tested
	$(BIN)/mypy

pytest: .venv/tested
	$(BIN)/pytest -n 2 --dist loadscope -m "not slow"

# The site, in build/site; index.html there opens without a server.
docs: .venv/documented
	$(BIN)/python -m docs.site

# Which lines the quick tests run, without those that start processes; pages in build/coverage/html.
coverage: .venv/tested
	$(BIN)/pytest -n 2 --dist loadscope -m "not slow" --cov --cov-report=term --cov-report=html $(MEASURED)

# Tests of the core with the oldest versions that pyproject.toml admits, in an environment of their own.
test-lowest: build/lowest/installed
	JAX_COMPILATION_CACHE_DIR=$(CURDIR)/build/lowest/programs build/lowest/env/bin/python -m pytest \
		-m "not slow" -p no:cacheprovider -o filterwarnings= -q $(WITH_LOWEST)

# The wheel under other versions of Python: make test-wheel PYTHONS="python3.12 python3.13"
PYTHONS ?= $(PYTHON)
test-wheel: .venv/tested
	FAIRWAVE_PYTHONS="$(PYTHONS)" $(BIN)/pytest -m slow tests/end_to_end/test_wheel.py -k elsewhere

# With FAIRWAVE_HOME_URL, the address of the repository, packages carry addresses; without it, none.
dist: .venv/tested
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

# The bill of materials of an installation without extras, in CycloneDX's format, checked against its schema.
sbom: build/tools/installed .venv/tested
	rm -rf build/sbom
	$(PYTHON) -m venv --without-pip build/sbom/env
	$(BIN)/python -m pip --python build/sbom/env/bin/python install --quiet --constraint constraints.txt .
	build/tools/bin/cyclonedx-py environment build/sbom/env/bin/python --pyproject pyproject.toml --validate \
		--output-reproducible --output-format JSON --output-file build/sbom/fairwave.cdx.json

build/tools/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv build/tools
	build/tools/bin/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	build/tools/bin/python -m pip install --quiet --constraint constraints.txt --group sbom --group lowest
	@touch $@

build/lowest/installed: build/tools/installed
	rm -rf build/lowest && mkdir -p build/lowest
	build/tools/bin/uv pip compile --quiet --no-header --no-annotate --resolution lowest-direct pyproject.toml \
		--python-version 3.11 --output-file build/lowest/versions.txt
	grep -iE '^(hypothesis|pytest|jsonschema|pyyaml)==' constraints.txt > build/lowest/tests.txt
	$(PYTHON) -m venv --without-pip build/lowest/env
	build/tools/bin/uv pip install --quiet --python build/lowest/env/bin/python \
		--requirement build/lowest/versions.txt --requirement build/lowest/tests.txt
	build/tools/bin/uv pip install --quiet --python build/lowest/env/bin/python --no-deps --editable .
	@touch $@

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
