# Two commands matter: `make run` starts a node, `make test` checks everything. Both set up their own .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup
PIP := $(BIN)/pip install --quiet --disable-pip-version-check

.PHONY: run test setup lint types contract suite cores servers pipelines wheel bench faults clean

run: setup
	@exec $(BIN)/ottla start

test: setup lint types contract suite

setup: $(STAMP)

# Quick when nothing changed: the stamp is newer than every file that decides what is installed.
$(STAMP): requirements/runtime.txt requirements/streams.txt requirements/dev.txt pyproject.toml
	@echo "setting up $(VENV), with all that the suite and streams need: about a minute, once"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "make setup: $(PYTHON) cannot make a virtual environment; on Debian: apt install python3-venv"; exit 1; }
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make setup: ottla needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PIP) -r requirements/dev.txt
	@$(PIP) --no-deps --editable .
	@$(BIN)/python -m compileall -q src
	@touch $(STAMP)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

contract: setup
	$(BIN)/lint-imports

# Three at a time. Servers and their clients mostly wait for each other, and some of their tests look at the clock; cores
# and Spark take what they leave of the processors.
suite: setup
	@$(MAKE) --no-print-directory -j3 --output-sync=target servers cores pipelines

servers: setup
	$(BIN)/pytest tests/wire tests/peer tests/faults

cores: setup
	nice -n 5 $(BIN)/pytest tests/rules tests/sim tests/golden bench/tests

pipelines: setup
	nice -n 10 $(BIN)/pytest tests/oracle tests/spark

# What is published: the path of a record is compiled by mypyc, from a copy, so that no compiled file ever stands before
# its source here. `WHEEL_ENV` is an environment with nothing but the wheel and what it needs.
WHEEL := .wheel
WHEEL_ENV := $(WHEEL)/env
SOURCES := $(shell find src -name '*.py')

wheel: $(WHEEL)/.made
	@ls $(WHEEL)/*.whl

$(WHEEL)/.made: $(STAMP) $(SOURCES)
	rm -rf $(WHEEL) && mkdir -p $(WHEEL)/source
	cp -r pyproject.toml README.md LICENSE src $(WHEEL)/source
	HATCH_BUILD_HOOKS_ENABLE=1 $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps \
	  --wheel-dir $(WHEEL) $(WHEEL)/source || \
	  { echo "make wheel: it takes a C compiler and Python's headers; on Debian: apt install gcc python3-dev"; exit 1; }
	$(BIN)/python -m venv $(WHEEL_ENV)
	$(WHEEL_ENV)/bin/pip install --quiet --disable-pip-version-check -r requirements/runtime.txt $(WHEEL)/*.whl
	@touch $@

bench: wheel
	$(BIN)/python -m bench --ottla $(WHEEL_ENV)/bin/ottla

# Breaks a cluster of three for so long: make faults MINUTES=30 FAULT=kill,pause AGAINST=kafka SEED=3
MINUTES ?= 5
faults: setup
	$(BIN)/python -m tests.faults --minutes $(MINUTES) $(if $(FAULT),--fault $(FAULT)) \
	  $(if $(AGAINST),--against $(AGAINST)) $(if $(SEED),--seed $(SEED)) $(if $(CLIENTS),--clients $(CLIENTS))

clean:
	rm -rf $(VENV) .wheel .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
