# Two commands do all: `make run` (the main job) and `make test`. Both create .venv on first use.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test format lint layers types pytest bench clean

run: .venv/installed
	$(BIN)/fairwave plan paper --policies all --plot plan.svg

test: format lint layers types pytest

format: .venv/installed
	$(BIN)/ruff format --check .

lint: .venv/installed
	$(BIN)/ruff check .

layers: .venv/installed
	$(BIN)/lint-imports

types: .venv/installed
	$(BIN)/mypy

pytest: .venv/installed
	$(BIN)/pytest -n 2 --dist loadscope

bench: .venv/installed
	$(BIN)/python benchmarks/plan.py

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "fairwave needs Python 3.11 or newer; try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group dev
	@touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist plan.svg
