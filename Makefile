# `make` lists the targets. Each sets up what it needs, so any of them may come first.
#
# PYTHON chooses the Python of the virtual environment, for example
# `make PYTHON=python3.12 test`; without it the first that suits is taken.

PYTHON ?=

VENV := .venv
VENV_TF215 := .venv-tf215
VENV_LOCK := .venv-lock

ENVIRONMENT := tools/python.sh tools/environment.py $(if $(PYTHON),'--python=$(PYTHON)')
CENSUS := $(VENV)/bin/python -m pipeline run --flagfile=examples/census/census.flags

# For example: make bench BENCH_OPTIONS='--flights=FILE.csv.gz --parts=peers,scaling'
BENCH_OPTIONS :=

# Outside a git checkout ruff doesn't heed .gitignore.
RUFF_OPTIONS := --config='extend-exclude=[".venv*"]'

# Hashes, so that an environment gets the very files that were tested. The project's
# metadata is read anew, for uv keeps it without a look at the variable that chooses
# the TensorFlow release. Pins stay unless they must move; to move them all:
# `make lock LOCK_OPTIONS=--upgrade`.
LOCK_OPTIONS :=
COMPILE := $(VENV_LOCK)/bin/uv pip compile --quiet --universal --python-version=3.10 \
    --generate-hashes --no-header --extra=test --refresh-package=estimator-pipeline \
    $(LOCK_OPTIONS) setup.py

MAKE_UV := test -x $(VENV_LOCK)/bin/uv || { tools/python.sh -m venv $(VENV_LOCK) && \
    $(VENV_LOCK)/bin/python -m pip install --quiet 'uv>=0.9'; }

# A file's tests stay in one process, so that they share its fixtures.
PYTEST_OPTIONS := --numprocesses=auto --maxprocesses=4 --dist=loadfile

# Both halves run even when the first fails. pytest exits 5 when it found nothing to
# run, which is no failure of a half, but is one when the other half is empty as well.
# What failed is run once more, with nothing beside it: tests that watch real processes
# may lose against a busy machine. What fails twice fails the half.
define RUN_TESTS
@half() { \
    $(1)/bin/python -m pytest $(PYTEST_OPTIONS) -m "$$1"; code=$$?; \
    test $$code -eq 1 || return $$code; \
    echo "Once more, what failed:" >&2; \
    $(1)/bin/python -m pytest --last-failed --last-failed-no-failures=none -m "$$1"; }; \
fast=0; half 'not slow' || fast=$$?; slow=0; half slow || slow=$$?; \
case "$$fast $$slow" in '0 0'|'0 5'|'5 0') exit 0;; esac; \
echo "The fast tests exited with $$fast, the slow ones with $$slow." >&2; exit 1
endef

.DEFAULT_GOAL := help
# Two environments made at once would both write the project's build files.
.NOTPARALLEL:
.PHONY: help environment environment-tf215 run test test-fast test-slow test-all \
    test-tf215 matrix bench prism lint format lock clean distclean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' Makefile

environment: ## Make .venv, unless it is there and whole
	@$(ENVIRONMENT) --venv=$(VENV) --lock=requirements.lock

environment-tf215: ## Make .venv-tf215 (TensorFlow 2.15.1, Python 3.10 or 3.11)
	@$(ENVIRONMENT) --venv=$(VENV_TF215) --lock=requirements-tf215.lock --tensorflow=2.15

run: environment ## Train, export and check the Census models, into work/census
	$(CENSUS) --model=wide_deep
	$(CENSUS) --model=keras_wide_deep

test: lint test-fast ## Check the style, then run the fast tests (10 minutes on two cores)

test-fast: environment ## Run the fast tests
	@$(VENV)/bin/python -m pytest $(PYTEST_OPTIONS) -m 'not slow'

test-slow: environment ## Run the slow tests
	@$(VENV)/bin/python -m pytest $(PYTEST_OPTIONS) -m slow

test-all: lint ## Check the style, then run all tests, the fast ones first
	$(call RUN_TESTS,$(VENV))

test-tf215: environment-tf215 ## Run all tests under TensorFlow 2.15.1
	$(call RUN_TESTS,$(VENV_TF215))

# Environments of its own, one after the other; see tools/matrix.py for its options.
MATRIX_OPTIONS :=

matrix: ## Test compatibility under each TensorFlow and Python; prints README's table
	@$(MAKE_UV)
	@tools/python.sh tools/matrix.py --uv=$(VENV_LOCK)/bin/uv $(MATRIX_OPTIONS)

bench: environment ## Measure the stages and models against other ways to do the same
	@$(VENV)/bin/python -m benchmarks $(BENCH_OPTIONS)

# The module's own version is older than Beam's Python package; the protocol between
# them is the same.
PRISM_VERSION := v2.73.0

prism: ## Build Beam's portable engine from its Go module, into work/prism
	@mkdir -p work/prism
	GOBIN=$(CURDIR)/work/prism go install \
	    github.com/apache/beam/sdks/v2/go/cmd/prism@$(PRISM_VERSION)

lint: environment ## Check the style
	@$(VENV)/bin/ruff check $(RUFF_OPTIONS) .
	@$(VENV)/bin/ruff format $(RUFF_OPTIONS) --check .

format: environment ## Correct the style where a tool can
	@$(VENV)/bin/ruff check $(RUFF_OPTIONS) --fix-only .
	@$(VENV)/bin/ruff format $(RUFF_OPTIONS) .

# An environment of its own: a broken lock file must not keep one from making a new one.
lock: ## Write the lock files anew from setup.py and requirements*.in
	@$(MAKE_UV)
	ESTIMATOR_PIPELINE_TENSORFLOW=2.21 $(COMPILE) requirements.in \
	    --output-file=requirements.lock
	ESTIMATOR_PIPELINE_TENSORFLOW=2.15 $(COMPILE) requirements-tf215.in \
	    --output-file=requirements-tf215.lock

clean: ## Remove work/ and caches, not the virtual environments
	rm -rf work build dist .pytest_cache .hypothesis .ruff_cache
	find . -path './.*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## Remove the virtual environments too
	rm -rf $(VENV) $(VENV_TF215) $(VENV_LOCK) *.egg-info
