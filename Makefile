# Every target sets up what it needs: on a fresh clone, `make demo` and `make test` are enough. Only
# tests need more than .venv, an OpenCL device and a C++ compiler, and only for them is apt asked.
.DEFAULT_GOAL := help
.PHONY: help setup demo demo-inference test prove lint conformance variants matrices opencl torch jax ray libraries interop bench floors crash fuzz numbers soak soak-input pictures browser view-figures site wheels release docs api coverage reference clean

VENV    := .venv/bin
STAMP   := .venv/.opdock-setup
TESTED  := .venv/.opdock-tests
MEMBERS := pyproject.toml constraints.txt tools/make_venv.sh core/pyproject.toml \
           $(wildcard backends/*/pyproject.toml) $(wildcard plugins/*/pyproject.toml)
# Two workers: what the target machine has; more if it has more.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -lt 8 ] && echo $$n || echo 8)
ARGS    ?=
export OPDOCK_PYTHON OPDOCK_CONSTRAINTS

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

$(STAMP): $(MEMBERS)
	./tools/make_venv.sh
	@touch $@

$(TESTED): $(STAMP) tools/setup_opencl.sh tools/setup_compiler.sh tools/setup_disks.sh
	./tools/setup_opencl.sh
	./tools/setup_compiler.sh
	./tools/setup_disks.sh
	@touch $@

setup: $(STAMP)  ## .venv with every workspace member editable (fast the second time)

demo: $(STAMP)  ## train a digit classifier and explain where each op ran
	$(VENV)/python examples/digits.py $(ARGS)

demo-inference: $(STAMP)  ## train, freeze, fold and quantize a classifier, and label images with it
	$(VENV)/python examples/label_digits.py $(ARGS)

test: $(TESTED)  ## every test but the exhaustive ones (ARGS="-k words" for some)
	$(VENV)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

prove: $(TESTED)  ## the exhaustive tests: whole suites where `make test` takes samples
	$(VENV)/python -m pytest -n $(WORKERS) --dist worksteal -m prove $(ARGS)

lint: $(STAMP)  ## ruff, its format, and mypy --strict on the core and the backends
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy

conformance: $(STAMP)  ## the conformance suite on the CPU and on the example backend
	$(VENV)/opdock conformance --device cpu:0 $(ARGS)
	$(VENV)/opdock conformance --device echo:0 $(ARGS)

variants: $(STAMP)  ## the CPU backend without parts of it, with older instructions, on 1, 2 and 4 threads
	WORKERS=$(WORKERS) ./tools/prove_cpu.sh $(ARGS)

# A page for torch or jax needs `make torch` or `make jax` first: make matrices MATRICES=torch
MATRICES ?= cpu echo opencl
matrices: $(TESTED)  ## write what each backend computes into docs/conformance/
	for name in $(MATRICES); do \
	  $(VENV)/opdock conformance --device $$name:0 --markdown docs/conformance/$$name.md \
	    --badge docs/conformance/$$name.svg $(ARGS) || exit 1; \
	done

opencl: $(TESTED)  ## prove the OpenCL backend on this machine's first device
	$(VENV)/opdock conformance --device opencl:0 --baseline backends/opencl/conformance.json $(ARGS)

bench: $(STAMP)  ## time the suite into docs/benchmarks.md (ARGS="--full --peer torch=PYTHON --plot")
	$(if $(findstring --plot,$(ARGS)),$(VENV)/python -m pip --disable-pip-version-check install --quiet -c $(or $(OPDOCK_CONSTRAINTS),constraints.txt) --group bench)
	$(VENV)/python benchmarks/run.py --write docs/benchmarks.md $(ARGS)

# Ratios of the processors' time to NumPy's, by turns on one core: what else the machine does is in both.
floors: $(STAMP)  ## is an op three times slower beside NumPy than when benchmarks/floors_numpy.json was written?
	$(VENV)/python benchmarks/ops.py --floor benchmarks/floors_numpy.json --peer numpy=$(VENV)/python \
	  --threads 1 --processor $(ARGS)

docs: $(STAMP)  ## run every program in README and docs, and check what they quote
	$(VENV)/python -m pytest tests/test_docs.py $(ARGS)

# PyTorch is large, so only this target installs it: its CPU build where pip finds one.
torch: $(STAMP)  ## install PyTorch and opdock-torch, and prove that backend
	$(VENV)/python -m pip --disable-pip-version-check install --quiet --no-build-isolation \
	  -c $(or $(OPDOCK_CONSTRAINTS),constraints.txt) torch==2.13.0 -e plugins/torch
	$(VENV)/python -m pytest tests/plugins/torch $(ARGS)

# The CPU build; for a GPU or a TPU install JAX's own extra behind it: pip install "jax[cuda13]".
jax: $(STAMP)  ## install JAX and opdock-jax, and prove that backend
	$(VENV)/python -m pip --disable-pip-version-check install --quiet --no-build-isolation \
	  -c $(or $(OPDOCK_CONSTRAINTS),constraints.txt) jax==0.10.2 -e plugins/jax
	$(VENV)/python -m pytest tests/plugins/jax $(ARGS)

ray: $(STAMP)  ## install Ray and opdock-ray, and prove clusters of several processes
	$(VENV)/python -m pip --disable-pip-version-check install --quiet --no-build-isolation \
	  -c $(or $(OPDOCK_CONSTRAINTS),constraints.txt) ray==2.60.0 -e plugins/ray
	$(VENV)/python -m pytest tests/plugins/ray $(ARGS)

crash: $(STAMP)  ## kill training runs at random moments; their weights must be those of an undisturbed one
	$(VENV)/python tools/crash_training.py $(ARGS)

fuzz: $(TESTED)  ## read 100,000 hostile files of each kind (ARGS="--formats png --minutes 60", or --guided by coverage)
	$(if $(findstring --guided,$(ARGS)),$(VENV)/python -m pip --disable-pip-version-check install --quiet -c $(or $(OPDOCK_CONSTRAINTS),constraints.txt) --group fuzz)
	$(VENV)/python -m tests.hostile $(ARGS)

numbers: $(TESTED)  ## compute with nan, infinities, least and largest numbers by each form of the CPU's kernels, and run random programs
	$(VENV)/python -W ignore tools/special_values.py $(ARGS)
	for device in $(NUMBERS); do \
	  $(VENV)/python -W ignore tools/random_programs.py --device /device:$$device:0 && \
	  $(VENV)/python -W ignore tools/same_bits.py --device /device:$$device:0 || exit 1; \
	done

# JAX and TORCH need `make jax` and `make torch` first.
NUMBERS ?= CPU OPENCL

browser: $(TESTED)  ## drive TensorBoard's page in Chromium: what the demonstration wrote is there
	./tools/setup_browser.sh
	$(VENV)/python -m pytest -m browser tests/programs/test_pages.py $(ARGS)

pictures: $(TESTED)  ## have Chromium draw the site, TensorBoard and `opdock view`: tests, and the documentation's pictures
	./tools/setup_browser.sh
	$(MAKE) site
	$(VENV)/python -m pytest -m browser tests/programs/test_pages.py tests/programs/test_site.py tests/programs/test_view.py
	$(VENV)/python tools/pictures.py $(ARGS)

view-figures: $(STAMP)  ## time the page of `opdock view` in Chromium into docs/how-to/look-at-programs.md
	./tools/setup_browser.sh
	$(VENV)/python tools/measure_view.py --write docs/how-to/look-at-programs.md $(ARGS)

soak: $(STAMP)  ## open and drop 10,000 sessions, graphs, iterators and threads (ARGS="--minutes 60"): what is left
	$(VENV)/python tools/soak.py $(ARGS)

soak-input: $(STAMP)  ## take a million elements of each kind of dataset (ARGS="--only shuffle"): what memory grew by
	$(VENV)/python tools/soak_input.py $(ARGS)

# They need old versions of others, so they get an environment of their own: build/libraries.
libraries: $(STAMP)  ## run libraries of TensorFlow 1's years on opdock, by their own tests (ARGS="--only NAME")
	$(VENV)/python tools/libraries.py --write docs/reference/libraries.md $(ARGS)

# TensorFlow is large and has dependencies of its own: build/tensorflow.
interop: $(STAMP)  ## install TensorFlow beside, and have each library read what the other writes
	$(VENV)/python tools/interop.py $(ARGS)

site: $(STAMP)  ## build the documentation's site in build/site, to be read without network (ARGS=--serve while it is worked on)
	$(VENV)/python -m pip --disable-pip-version-check install --quiet -c $(or $(OPDOCK_CONSTRAINTS),constraints.txt) --group site
	$(VENV)/python tools/make_site.py $(ARGS)

wheels: $(STAMP)  ## build sdists and wheels of all distributions into build/dist, with an index and sums
	$(VENV)/python tools/make_release.py $(ARGS)

release: $(STAMP)  ## the same, and what is installed with opdock, with licences: sbom.json (CycloneDX), LICENCES.md
	$(VENV)/python -m pip --disable-pip-version-check install --quiet -c $(or $(OPDOCK_CONSTRAINTS),constraints.txt) --group release
	$(VENV)/python tools/make_release.py --sbom $(ARGS)

api: $(STAMP)  ## write the tables of public names (opdock/_api.py, __init__.pyi), and of what defines ops and kernels
	$(VENV)/python tools/make_api.py
	$(VENV)/python tools/make_families.py

coverage: $(STAMP)  ## write the page of TensorFlow 1.15's names (docs/reference/coverage.md)
	$(VENV)/python tools/make_coverage.py

reference: $(STAMP)  ## write the reference pages for authors of plugins (docs/reference/)
	$(VENV)/python tools/make_reference.py

clean:  ## remove .venv and what the tools left
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist logs conformance-report
