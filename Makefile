# The two commands are `make demo` and `make test`. Everything else is for developers.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
OUT ?= out/demo

.PHONY: demo test full lint bench clean

demo: $(VENV)/.demo
	$(BIN)/spectheory audit nsd --set top_p=0.9 --out $(OUT)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not full"

full: $(VENV)/.dev
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	$(BIN)/python -m pytest benchmarks --benchmark-columns=min,median,rounds --benchmark-group-by=group

# One stamp per set of extras; a changed pyproject or constraints file reinstalls.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade "pip>=24"

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e ".[plot]"
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) out dist build
