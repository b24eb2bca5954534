# Everything is set up by the targets themselves: Python >= 3.11 and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUTPUT ?= outputs
DATA ?= grammar
GPU_PYTHON ?= $(firstword $(wildcard $(BIN)/python) $(PYTHON))
PIP_ARGS ?=
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-all test-browser chaos fuzz audit lint wheel gpu-bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/core.stamp
	$(BIN)/attnlab run experiment=demo output=$(OUTPUT)

test: $(VENV)/dev.stamp
	$(BIN)/ruff check src tests experiments
	$(BIN)/ruff format --check src tests experiments/*/*.py
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

test-all: $(VENV)/dev.stamp
	$(BIN)/pytest -n 2 --dist worksteal

# Pages in a real browser: Debian's chromium, installed where that is possible. Without one the tests say why they skip.
test-browser: $(VENV)/browser.stamp
	command -v chromium > /dev/null || apt-get install -y chromium || echo "no chromium: the tests are skipped"
	$(BIN)/pytest tests/browser -rs

# Random text files, configs, command lines and damaged run folders: 10,000 cases and more, counted at the end.
fuzz: $(VENV)/dev.stamp
	ATTNLAB_FUZZ=full $(BIN)/pytest tests/fuzz --timeout 3600

# Known vulnerabilities of what is installed. pip-audit has an environment of its own, so that it changes nothing here. Where
# its index does not answer it says of every package that it is not found, and finds nothing wrong with it.
audit: $(VENV)/dev.stamp
	@$(BIN)/python -m venv $(VENV)/audit
	@if ! $(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) pip-audit; \
	then echo "audit skipped: pip-audit cannot be installed"; \
	else $(VENV)/audit/bin/pip-audit --skip-editable --path $(VENV)/lib/python3.*/site-packages > $(VENV)/audit.txt 2>&1; \
	status=$$?; \
	if grep -q "could not be audited: numpy" $(VENV)/audit.txt; then echo "audit skipped: its index does not answer"; \
	else cat $(VENV)/audit.txt; exit $$status; fi; fi

# Signals at 60 moments of small sweeps and the faults of docs/faults.md: 6 to 8 minutes on 2 free cores. Prints the seed
# of its moments; CHAOS_SEED=N repeats them.
chaos: $(VENV)/dev.stamp
	CHAOS_MOMENTS=60 $(BIN)/pytest -v -n 0 tests/chaos/test_campaign.py tests/chaos/test_faults.py

lint: $(VENV)/dev.stamp
	$(BIN)/ruff format src tests
	$(BIN)/ruff check --fix src tests
	$(BIN)/mypy

wheel: $(VENV)/dev.stamp
	$(BIN)/python -m build --wheel --outdir dist .

# Runs side by side on one GPU, in at most 8 minutes. Installs nothing: GPU_PYTHON needs torch and the core packages.
gpu-bench:
	PYTHONPATH=src $(GPU_PYTHON) -m attnlab bench gpu --data $(DATA) --output $(OUTPUT) --warmup 30 --write docs/performance.md

clean:
	rm -rf $(VENV) dist .pytest_cache .ruff_cache .mypy_cache .hypothesis

# constraints.txt holds every version that was tested. PIP_ARGS can name an index with CPU builds of torch.
$(VENV)/core.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e ".[wandb]"
	touch $@

$(VENV)/dev.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/core.stamp

$(VENV)/browser.stamp: $(VENV)/dev.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e ".[browser]"
	touch $@

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "attnlab needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
