# Every target sets up what it needs: a virtual environment in .venv with the pinned versions of
# constraints.txt. PYTHON chooses the interpreter it is made with.
#
# The constraints hold hashes, so pip checks the hash of every file it installs. pip itself comes
# first, pinned in full, since older ones take hashes from no constraints. A folder has no hash: the
# project is installed alone, and then what it depends on. torch may be a build of the machine's own,
# which pip would pass over for one whose hash an index tells: it is fetched, then checked.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
AUDITOR := $(VENV)/.auditor
QUALITY := $(VENV)/.quality
EXTRAS := $(VENV)/.extras
PIP := $(BIN)/python -m pip install --quiet
DEMO := runs/demo
# Each worker takes neighbours, which share what they trained.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --dist worksteal
TEST := $(PYTEST) -m "not system" --ignore=tests/extras
SEED ?= 1
WORKERS ?= 2

# Tests start again and again, and processes within them: what is compiled is kept.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test quick test-shuffled test-system check format bench faults audit constraints docs examples notebooks site surface release-check coverage mutants clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	sed -n '/^pip==/,/[^\\]$$/p' constraints.txt > $(VENV)/pip.txt
	$(PIP) --requirement $(VENV)/pip.txt
	$(PIP) --constraint constraints.txt hatchling editables
	$(PIP) --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pip download --quiet --no-deps --dest $(VENV)/torch \
		"$$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' constraints.txt)"
	$(PIP) --constraint constraints.txt --no-deps --no-index --find-links $(VENV)/torch torch
	rm -r $(VENV)/torch
	$(PIP) --constraint constraints.txt 'paretocosmos[all]' --group dev
	touch $@

demo: $(READY)  ## COSMOS as published beside the paper's numbers, then the default, from nothing
	rm -rf $(DEMO)
	$(BIN)/paretocosmos demo --out $(DEMO)
	@echo
	@echo "Open $(DEMO)/report/report.html in a browser."

test: $(READY)  ## what is the same on every machine: no process, socket, signal, deadline or sleep
	$(TEST) -n 2 -q

quick: $(READY)  ## the core in a minute or so: no long training, no server, no process of its own
	$(PYTEST) -n 2 -q @tests/quick.txt

test-shuffled: $(READY)  ## the tests in another order: SEED and WORKERS choose
	$(TEST) -n $(WORKERS) -q --random-order-bucket=module --random-order-seed=$(SEED)

test-system: $(EXTRAS)  ## servers, signals, kills, processes, clusters, a browser, heavy extras: may wait, tries a failed test once more
	TRITON_INTERPRET=1 $(PYTEST) -n 2 -q tests/nn/kernels
	$(PYTEST) -n 2 -q -m system --reruns 1 -rR tests

check: $(READY)  ## format check, lint, strict types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## speed against the textbook loop, as ratios of one run
	$(BIN)/python -m benchmarks.tabular
	$(BIN)/python -m benchmarks.multi_mnist

faults: $(READY)  ## kills, damaged files, bad command lines and hostile requests, in full (a quarter of an hour)
	$(BIN)/python -m faults --out results/faults.json

$(EXTRAS): $(READY)
	$(PIP) --constraint constraints.txt --group extras
	touch $@

$(AUDITOR): $(READY)
	$(PIP) --constraint constraints.txt --group audit
	touch $@

audit: $(AUDITOR)  ## look every pinned version up among the known vulnerabilities
	$(BIN)/python scripts/audit.py

constraints:  ## pin what pyproject.toml asks for, with hashes; ARGUMENTS go to the script
	$(PYTHON) -m venv $(VENV)/lock
	sed -n -E '/^(packaging|uv)==/,/[^\\]$$/p' constraints.txt > $(VENV)/lock.txt
	$(VENV)/lock/bin/python -m pip install --quiet --requirement $(VENV)/lock.txt
	$(VENV)/lock/bin/python scripts/write_constraints.py $(ARGUMENTS)

docs: $(READY)  ## write README's numbers and docs/ from the code and results/
	$(BIN)/python scripts/write_docs.py

examples: $(EXTRAS)  ## run the examples, and keep what they print for README and the gallery
	$(BIN)/python scripts/run_examples.py

notebooks: $(EXTRAS)  ## run the notebooks of the docs, and keep their outputs
	$(BIN)/python scripts/run_notebooks.py

site: $(READY)  ## build the documentation into site/, warnings are errors; open site/index.html
	$(BIN)/python -c 'import furo, myst_parser, sphinx_copybutton, sphinx_design' 2> /dev/null || $(PIP) --constraint constraints.txt --group docs
	$(BIN)/python scripts/build_site.py

surface: $(READY)  ## accept the public names and signatures as they are
	$(BIN)/python -m tests.test_surface --write

release-check:  ## build wheel and sdist, install the wheel in a fresh environment and try it there
	$(PYTHON) scripts/release_check.py --constraint constraints.txt

$(QUALITY): $(READY)
	$(PIP) --constraint constraints.txt --group quality
	touch $@

coverage: $(QUALITY)  ## the share of the package's lines that the tests run, 92 % at least; PATHS chooses some, HTML in htmlcov/
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -n 2 --dist worksteal $(or $(PATHS),--ignore=tests/extras)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	$(BIN)/coverage html --quiet
	$(BIN)/coverage json --quiet -o htmlcov/coverage.json
	$(BIN)/python scripts/quality.py --coverage htmlcov/coverage.json --note "$(PATHS)"
	$(if $(PATHS),,$(BIN)/coverage report --format=total --fail-under=92)

mutants: $(QUALITY)  ## change the core line by line and see whether a test notices (an hour)
	$(BIN)/mutmut run --max-children $(WORKERS)
	$(BIN)/python scripts/quality.py --mutants mutants

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage* htmlcov mutants dist
