# `make demo` and `make test` set everything up on a fresh machine; see `make help`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help setup demo test test-slow docs check format clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## make the virtual environment and install openima into it

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

demo: $(READY) ## show openima at work on a real graph that needs no download
	$(BIN)/openima demo

test: $(READY) ## run the tests, warnings as errors
	$(BIN)/python -m pytest -m "not slow"

test-slow: $(READY) ## run the tests that take longer
	$(BIN)/python -m pytest -m slow

docs: $(READY) ## build the documentation into site/, warnings as errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

check: $(READY) ## format, lint, strict types, documentation, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) docs
	$(MAKE) test

format: $(READY) ## rewrite the code in the project's style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove the virtual environment, the site and caches
	rm -rf .venv site .mypy_cache .pytest_cache .ruff_cache
