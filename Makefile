# Two commands matter: `make run` starts a node, `make test` checks everything. Each sets up what it needs in .venv first:
# a node and its registry need 80 MB, Spark and what the suite needs beside it are fifteen times as much.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NODE := $(VENV)/.node
STREAMS := $(VENV)/.streams
SETUP := $(VENV)/.setup
INSTALL := install --disable-pip-version-check
PIP := $(BIN)/python -m pip $(INSTALL)
FOR_NODE := --quiet --no-compile -r requirements/runtime.txt -r requirements/platform.txt --editable .
# By both cores, where pip would take one; some libraries carry files for other Pythons.
COMPILE := $(BIN)/python -m compileall -q -j 2
COMPILED := > /dev/null || true
PLUGIN := plugins/pytest-ottla/pyproject.toml plugins/pytest-ottla/pytest_ottla.py

# Where Python is told not to keep what it compiled (containers often say so), each of the suite's many processes would
# compile its libraries again, and a node would do so in the midst of its work.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test streams setup lint types contract suite cores wire services peers pipelines oracles queries matrix wheel bench faults clean

run: $(NODE)
	@exec $(BIN)/ottla start

test: setup lint suite

streams: $(STREAMS)

setup: $(SETUP)

# Quick when nothing changed: a stamp is newer than every file that decides what is installed. The pip of the Python that is
# there already fills the new environment: to put another one into it first would take a third of the time.
$(NODE): requirements/runtime.txt requirements/platform.txt pyproject.toml tools/carry_plugin.py $(PLUGIN)
	@echo "setting up $(VENV) for a node and its registry: 80 MB, a few seconds, once"
	@test -x $(BIN)/python || $(PYTHON) -m venv --without-pip $(VENV) || \
	  { echo "make: $(PYTHON) cannot make a virtual environment; on Debian: apt install python3-venv"; exit 1; }
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: ottla needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; rm -rf $(VENV); exit 1; }
	@if $(PYTHON) -m pip --python $(BIN)/python --version > /dev/null 2>&1; then \
	  $(PYTHON) -m pip --python $(BIN)/python $(INSTALL) $(FOR_NODE) pip; \
	else \
	  $(BIN)/python -m ensurepip > /dev/null && $(BIN)/python -m pip $(INSTALL) $(FOR_NODE); \
	fi
	@touch $(NODE)

$(STREAMS): $(NODE) requirements/streams.txt requirements/connect.txt
	@echo "setting up $(VENV) for streams and connectors: Spark is 500 MB to fetch and 1 GB on the disk, once"
	@$(PIP) --no-compile -r requirements/streams.txt -r requirements/connect.txt
	@$(COMPILE) $(VENV)/lib $(COMPILED)
	@touch $(STREAMS)

$(SETUP): $(STREAMS) requirements/dev.txt
	@echo "setting up $(VENV) for the suite"
	@$(PIP) --no-compile -r requirements/dev.txt
	@$(COMPILE) src tests $(VENV)/lib $(COMPILED)
	@touch $(SETUP)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

contract: setup
	$(BIN)/lint-imports

# Six at a time, as servers and their clients mostly wait for each other. None is nicer than the others: beside somebody
# else's work a nice one would get next to nothing, and Spark gives its Python workers ten seconds to begin.
suite: setup
	@$(MAKE) --no-print-directory -j6 --output-sync=target pipelines oracles wire services cores peers queries types contract

# What failed beside all the others is run once more by itself, and both are in the output: the suite judges what is
# wrong, not what was late. A test that is seen there is to be mended all the same.
CHECK = $(BIN)/pytest -o cache_dir=.pytest_cache/$@ -m "not matrix"
define checked
$(CHECK) $(1) || { test $$? -eq 1 && echo "$@: what failed, once more by itself" && $(CHECK) --last-failed $(1); }
endef

# Brokers by the wire, and what stands around them, each in a run of its own.
SERVICES := $(wildcard $(foreach each,acl_door connect* http* java_connect mirror* platform redrive registry* schema* sql* stream*,\
  tests/wire/test_$(each).py))
wire: setup
	$(call checked,tests/wire $(foreach each,$(SERVICES),--ignore $(each)))

services: setup
	$(call checked,$(SERVICES))

peers: setup
	$(call checked,tests/peer tests/platform tests/faults)

cores: setup
	$(call checked,tests/rules tests/sim tests/golden bench/tests)

# What Spark's columns give beside Python's and Java's values, and connectors; applications have a run of their own, and
# SQL's queries one that begins when the shortest of the others is done.
COLUMNS := $(foreach each,oracle expressions functions serdes lenient_json sql_functions avro source,tests/spark/test_$(each).py)
QUERIES := $(foreach each,history joins kill_nine queries run server two_servers,tests/spark/test_sql_$(each).py)
pipelines: setup
	$(call checked,tests/spark --ignore tests/spark/connect $(foreach each,$(COLUMNS) $(QUERIES),--ignore $(each)))

queries: setup
	$(call checked,$(QUERIES))

oracles: setup
	$(call checked,tests/oracle tests/spark/connect $(COLUMNS))

# What takes too long for every change: the wheel with the rules of the sources; properties with all of their examples;
# every application killed at every step, lost, and cut off from its brokers; on a cluster of Spark's too. An hour.
matrix: setup
	$(BIN)/pytest -m matrix tests/rules tests/wire tests/peer tests/faults tests/platform tests/oracle
	OTTLA_THOROUGH=1 $(BIN)/pytest -m "not matrix" tests/rules tests/sim tests/wire/test_garbage.py tests/wire/test_kill_nine.py
	OTTLA_ALL_KILLS=1 OTTLA_ON_A_CLUSTER=1 $(BIN)/pytest tests/spark

# What is published: the path of a record is compiled by mypyc, from a copy, so that no compiled file ever stands before
# its source here. `WHEEL_ENV` is an environment with nothing but the wheel and what it needs.
WHEEL := .wheel
WHEEL_ENV := $(WHEEL)/env
SOURCES := $(shell find src -name '*.py')

wheel: $(WHEEL)/.made
	@ls $(WHEEL)/*.whl

$(WHEEL)/.made: $(SETUP) $(SOURCES) tools/carry_plugin.py $(PLUGIN)
	rm -rf $(WHEEL) && mkdir -p $(WHEEL)/source/tools
	cp -r pyproject.toml README.md LICENSE src plugins $(WHEEL)/source
	cp tools/carry_plugin.py $(WHEEL)/source/tools
	HATCH_BUILD_HOOKS_ENABLE=1 $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps \
	  --wheel-dir $(WHEEL) $(WHEEL)/source || \
	  { echo "make wheel: it takes a C compiler and Python's headers; on Debian: apt install gcc python3-dev"; exit 1; }
	$(BIN)/python -m venv $(WHEEL_ENV)
	$(WHEEL_ENV)/bin/pip install --quiet --disable-pip-version-check -r requirements/runtime.txt -r requirements/platform.txt $(WHEEL)/*.whl
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
