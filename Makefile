# Everything runs in the project's own virtual environment, which is set up at the first run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# A fixed number, because a container may often use fewer cores than it sees.
WORKERS ?= 2

.PHONY: help demo test check words e2e bench picture crds image lint types imports format clean

help:
	@echo "make demo     jobs, controllers and a scheduler in one process, with a live table (needs no cluster)"
	@echo "make test     unit, property, contract and scenario tests (no cluster, no network), WORKERS=$(WORKERS) at a time"
	@echo "make check    format, lint, types, layers, retired words"
	@echo "make words    retired words in code and docs, with the word to use instead"
	@echo "make e2e      end-to-end tests on a real kube-apiserver and etcd (built with Go the first time)"
	@echo "make bench    measure; results are kept as JSON in benchmarks/results/"
	@echo "make picture  draw docs/demo.svg, the picture of the demo in the README"
	@echo "make crds     write manifests/crds/ from volcano_py/api and tools/crds"
	@echo "make image    build the container image with buildah and try it (needs root, no daemon)"

$(STAMP): pyproject.toml
	@test -d $(VENV) || { echo "making $(VENV) with $$($(PYTHON) --version)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing dependencies into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(STAMP)
	@$(BIN)/volcano-py demo

# Allows bytecode files: without them, the processes that tests start would spend some twenty seconds on compiling.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.architecture.retired_words

words: $(STAMP)
	@$(BIN)/python -m tests.architecture.retired_words

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

e2e: $(STAMP)
	$(BIN)/python -m tests.controlplane.build
	$(BIN)/python -m pytest tests/e2e tests/contract -m e2e $(E2E)

bench: $(STAMP)
	$(BIN)/python -m benchmarks

# The picture of the demo in the README; tests/packaging/test_picture.py says when it is out of date.
picture: $(STAMP)
	$(BIN)/python -m benchmarks.picture

# tests/tools/test_crds.py says when they are out of date.
crds: $(STAMP)
	@$(BIN)/python -m tools.crds

image:
	@manifests/image/build.sh

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
