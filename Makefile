# Every target makes the environment it needs, once per Python and purpose, from nothing but make and a Python 3.11+:
#   make test                      the first suitable Python found
#   make test PYTHON=python3.13    another one; it has its own environment
#   make test ARGS="-k scan -x"    further words for pytest (for the program, in demo and bench)

.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
unexport PYTHONDONTWRITEBYTECODE          # tests start many processes, each of which would compile all sources again

ARGS ?=
JOBS ?= 2

PROBE := import sys; sys.version_info >= (3, 11) or sys.exit(1); print("%d.%d" % sys.version_info[:2])
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c '$(PROBE)' >/dev/null 2>&1 && { echo $$p; break; }; done)
endif
VERSION := $(shell $(PYTHON) -c '$(PROBE)' 2>/dev/null)
VENV := .venv/$(VERSION)
DEV := $(VENV)-dev
PEER := $(VENV)-peer
BENCH := $(VENV)-bench
DEMO := $(VENV)-demo
LIBRARIES := $(VENV)-libraries
EFFECTS := $(VENV)-effects
GPU := $(VENV)-gpu
ORYX := $(VENV)-oryx
LOWEST := $(VENV)-lowest

DOCS := $(VENV)-docs
RELEASE := $(VENV)-release
SITE ?= build/site

.PHONY: help test lowest sweep mutants branches check docs fuzz demo bench peer gpu libraries effects release clean

help:          ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile

test: $(DEV)/ready          ## all tests, doctests and examples of the documentation, on CPU, but those of `make check`
	$(DEV)/bin/pytest --ignore tests/typing -n $(JOBS) --durations=10 $(ARGS)

lowest: $(LOWEST)/ready          ## the same, with the lowest versions of the packages that pyproject.toml allows (Python 3.11)
	$(LOWEST)/bin/pytest --ignore tests/typing -n $(JOBS) --durations=10 $(ARGS)

sweep: $(DEV)/ready          ## the long comparisons with oracles, over special values and random programs
	HANDLAX_DISABLE_MOST_OPTIMIZATIONS=0 $(DEV)/bin/pytest -m sweep -n $(JOBS) --durations=10 $(ARGS)

check: $(DEV)/ready          ## lint, types, documentation
	$(DEV)/bin/ruff check .
	$(DEV)/bin/mypy
	$(DEV)/bin/pytest -q tests/typing
	$(DEV)/bin/python tools/check_docs.py
	$(DEV)/bin/python tools/late_operations.py --check
	$(DEV)/bin/python tools/reference.py --check
	$(DEV)/bin/python tools/architecture.py --check
	$(DEV)/bin/python tools/handler_choice.py --check
	$(DEV)/bin/python tools/mutants_page.py --check
	$(DEV)/bin/python tools/readme_picture.py --check

docs: $(DOCS)/ready          ## the site of the documentation, in build/site
	$(DOCS)/bin/sphinx-build -q -W --keep-going -b html docs $(SITE) $(ARGS)

mutants: $(DEV)/ready          ## the code broken at one place at a time, and whether a test sees it
	$(DEV)/bin/python -m handlax.testing.mutants effects interpreters lowering handlax --count 500 \
	    --without lowering/compile/eager_rates.py --results tests/mutants/results.jsonl $(ARGS)
	$(DEV)/bin/python tools/mutants_page.py

branches: $(DEV)/ready          ## the branches that no test takes (Python 3.12 or 3.13)
	rm -rf .branches
	PYTHONPATH=$(CURDIR)/tools $(DEV)/bin/pytest -p branch_coverage -n $(JOBS) $(ARGS)
	$(DEV)/bin/python tools/branch_coverage.py

fuzz: $(DEV)/ready          ## random bytes for the readers and the arguments of the package, guided by coverage
	$(DEV)/bin/python -m handlax.testing.fuzzing --corpora tests/corpora $(ARGS)

demo: $(DEMO)/ready          ## a program, and a user's effect that crosses its transformations
	$(DEMO)/bin/python examples/demo.py $(ARGS)

bench: $(BENCH)/ready          ## time and memory, side by side with JAX
	$(BENCH)/bin/python -m benchmarks $(ARGS)

peer: $(PEER)/ready          ## the tests that compare with JAX
	HANDLAX_DISABLE_MOST_OPTIMIZATIONS=0 $(PEER)/bin/pytest -m peer -n $(JOBS) $(ARGS)

gpu: $(GPU)/ready          ## the tests and the benchmark that need an NVIDIA GPU
	XLA_PYTHON_CLIENT_PREALLOCATE=false HANDLAX_DISABLE_MOST_OPTIMIZATIONS=0 \
	    $(GPU)/bin/pytest tests/gpu -m gpu -n $(JOBS) $(ARGS)
	XLA_PYTHON_CLIENT_PREALLOCATE=false $(GPU)/bin/python -m benchmarks --platform gpu --write

libraries: $(LIBRARIES)/ready          ## libraries written for JAX, on handlax and on JAX
	$(LIBRARIES)/bin/python tools/libraries.py $(ARGS)
	$(LIBRARIES)/bin/pytest -q -p handlax.as_jax.pytest_plugin tests/docs/test_pages.py -k models-under-handlers

effects: $(EFFECTS)/ready $(ORYX)/ready          ## programs with effects, on handlax and on other systems
	$(EFFECTS)/bin/python -m benchmarks.effects_beside --write --python oryx=$(ORYX)/bin/python

release: $(RELEASE)/ready          ## wheel, source archive and notes, each tried with every Python, in build/release
	$(RELEASE)/bin/python tools/release.py $(ARGS)

clean:          ## remove environments, caches and builds
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

$(DEV)/ready: EXTRAS := test,check
$(LOWEST)/ready: EXTRAS := test
$(LOWEST)/ready: PINS = $$($(PYTHON) tools/lowest_versions.py direct save)
$(PEER)/ready: EXTRAS := test,peer
$(BENCH)/ready: EXTRAS := bench
$(GPU)/ready: EXTRAS := test,bench,gpu
$(DEMO)/ready: EXTRAS := demo
$(DOCS)/ready: EXTRAS := docs
$(RELEASE)/ready: EXTRAS := release
$(LIBRARIES)/ready: EXTRAS := test,libraries
$(EFFECTS)/ready: EXTRAS := effects

# oryx works on JAX up to 0.4.38, which handlax's jaxlib excludes.
$(ORYX)/ready:
	@echo "making $(@D) with $(PYTHON) (once)"
	@test -x $(@D)/bin/pip || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check oryx==0.2.9 jax==0.4.38 jaxlib==0.4.38
	@touch $@

# The stamp is written last: an installation that was cut off is made again.
$(VENV)-%/ready: pyproject.toml
	@test -n '$(VERSION)' || { \
	    echo 'handlax needs Python 3.11 or newer; $(or $(PYTHON),no python3 on the path) is not.' \
	         'Name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo '$(PYTHON) cannot make environments: its modules venv and ensurepip are missing.' \
	         'On Debian and Ubuntu: apt-get install python$(VERSION)-venv; or name another one with PYTHON=...' >&2; exit 1; }
	@echo "making $(@D) with $(PYTHON) (once)"
	@rm -f $@
	@test -x $(@D)/bin/pip || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]' $(PINS)
	@touch $@
