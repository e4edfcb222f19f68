# Two commands do everything: `make demo` and `make test`. Both build .venv first if it is missing.
PYTHON ?= python3
BIN := .venv/bin
CONSTRAINTS := constraints.txt

.PHONY: demo test lint format bench docs clean

demo: .venv/installed
	$(BIN)/heedful demo --out runs/demo

test: .venv/installed-dev lint
	$(BIN)/python -m pytest -n 2

lint: .venv/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: .venv/installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml $(CONSTRAINTS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[plot]'
	touch $@

.venv/installed-dev: .venv/bin/python pyproject.toml $(CONSTRAINTS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[dev]'
	touch $@ .venv/installed

.venv/installed-bench: .venv/installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[bench]'
	touch $@

bench: .venv/installed-bench
	$(BIN)/python benchmarks/core.py

# The pages that are made by a run. Timings want a quiet machine.
docs: .venv/installed-bench
	$(BIN)/python benchmarks/silent_failures.py --docs
	$(BIN)/python benchmarks/parity.py --docs
	$(BIN)/python benchmarks/core.py --docs
	$(BIN)/python benchmarks/recurrent.py --docs

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
