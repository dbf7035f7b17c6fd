# Two commands on a fresh machine with Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
RUN ?= runs/demo
BIN = $(VENV)/bin

.PHONY: demo test test-long slow lint docs clean

demo: $(VENV)/.installed
	$(BIN)/superconext train data/sample/few.tsv --test data/sample/test.tsv --unlabelled data/sample/unlabelled.txt --out $(RUN) --force

test: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto --dist loadfile

test-long: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto --dist loadfile -m "long and not slow"

slow: $(VENV)/.installed
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt codespell ruff mypy import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell

docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt sphinx myst-parser furo
	rm -rf build/pages && mkdir -p build && cp -Rp docs build/pages
	$(BIN)/python scripts/reference_pages.py build/pages/reference
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -c docs build/pages build/docs

clean:
	rm -rf $(VENV) build *.egg-info

$(VENV)/.installed: setup.cfg pyproject.toml constraints.txt
	@echo "installing into $(VENV): 1.6 GB, which takes some minutes"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train,plots,test]'
	touch $@
