# Everything runs in the project's own virtual environment, which is set up at the first run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# A fixed number, because a container may often use fewer cores than it sees.
WORKERS ?= 2
# A simulated schedule is one seed; JOBS= is the number of processes (all cores if it is empty).
SEEDS ?= 10000
FROM ?= 0
SIZE ?= short
JOBS ?=

.PHONY: help demo test simulate check words e2e bench picture crds image release lint types imports format clean

help:
	@echo "make demo     jobs, controllers and a scheduler in one process, with a live table (needs no cluster)"
	@echo "make test     unit, property, contract and scenario tests (no cluster, no network), WORKERS=$(WORKERS) at a time"
	@echo "make simulate the whole system on a virtual clock, with faults: SEEDS=$(SEEDS) FROM=$(FROM) SIZE=$(SIZE) (or full)"
	@echo "make check    format, lint, types, layers, retired words"
	@echo "make words    retired words in code and docs, with the word to use instead"
	@echo "make e2e      end-to-end tests on a real kube-apiserver and etcd (built with Go the first time)"
	@echo "make bench    measure; results are kept as JSON in benchmarks/results/"
	@echo "make picture  draw docs/demo.svg, the picture of the demo in the README"
	@echo "make crds     write manifests/crds/ from volcano_py/api and tools/crds"
	@echo "make image    build the container image with buildah and try it (needs root, no daemon)"
	@echo "make release  write the files of a release into dist/ (as root, or with RELEASE=--without-image)"

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

# Exits with 1 if an invariant is violated; docs/simulation.md says how to go on from there.
simulate: $(STAMP)
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) --from $(FROM) --size $(SIZE) $(if $(JOBS),--jobs $(JOBS))

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
	$(BIN)/python -m pytest tests/e2e tests/contract tests/chart -m e2e $(E2E)

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

# As root for the image; RELEASE="--without-image --allow-dirty" leaves it out, and releases what is not committed.
release: $(STAMP)
	@$(BIN)/python -m tests.controlplane.build kubectl helm
	@PATH="$$($(BIN)/python -m tests.controlplane.binaries):$$PATH" $(BIN)/python -m tools.release $(RELEASE)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
