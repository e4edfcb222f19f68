# Two commands do everything: `make demo` and `make test`. Both build .venv first if it is missing.
PYTHON ?= python3
BIN := .venv/bin
CONSTRAINTS := constraints.txt

.PHONY: demo test browser sanitize fuzz lint format bench docs reference trust site translators clean

demo: .venv/installed
	$(BIN)/heedful demo --out runs/demo

test: .venv/installed-dev lint browser
	$(BIN)/python -m pytest -n 2 --dist worksteal

# For the tests of the page. Where it is missing and cannot be installed, they are skipped.
browser:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	{ [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -qq --no-install-recommends chromium; } >/dev/null 2>&1 \
	|| echo "There is no browser, so the tests of the page are skipped; on Debian, install chromium."

# The layers in C under gcc's sanitizers.
sanitize: .venv/installed-dev
	$(BIN)/python tests/sanitize.py

# An hour of changed inputs for everything that reads untrusted ones; findings are in runs/fuzz.
fuzz: .venv/installed-dev
	$(BIN)/python benchmarks/fuzz.py --minutes 60

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

# docs/reference/ is generated from the docstrings, the settings and the commands.
reference: .venv/installed-dev
	$(BIN)/python docs/build_reference.py

# docs/trust.md lists the promises of the package with the tests that hold them.
trust: .venv/installed-dev
	$(BIN)/python docs/build_trust.py

# The course and the documentation as web pages.
site: .venv/installed
	$(BIN)/heedful learn site public

# The translators in src/heedful/models/: half an hour each on one CPU core.
translators: .venv/installed
	for direction in ko-en en-ko; do $(BIN)/heedful demo --level course --direction $$direction --out runs/$$direction || exit 1; done
	$(BIN)/python benchmarks/ship_translators.py runs/ko-en runs/en-ko

clean:
	rm -rf .venv build dist public .mypy_cache .ruff_cache .pytest_cache .hypothesis
