VENV ?= .venv
PYTHON ?= python3.11
BIN := $(VENV)/bin

PROCESSES ?= 2

.PHONY: setup lock run serve test nightly quick lint bench models

setup: ## install everything that running and testing needs
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -r requirements-dev.txt

lock: ## pin what the requirements themselves require, for every Python and platform at once: constraints.txt
	$(BIN)/pip install -q "uv==0.13.9"
	cat requirements.txt requirements-dev.txt | grep -v "^-" | $(BIN)/uv pip compile -q --upgrade --universal \
		--python-version 3.11 --no-annotate --custom-compile-command "make lock" --output-file constraints.txt -

run: ## start the app for somebody who changes it: it follows the files
	$(BIN)/streamlit run app.py --server.fileWatcherType poll

serve: ## start several processes behind one address, http://localhost:8501, with haproxy: make serve PROCESSES=2
	$(BIN)/python deploy/serve.py --processes $(PROCESSES)

test: ## pass the gate, in eight minutes at most
	$(BIN)/python -m pytest

nightly: ## pass what is long by nature, on a Ray cluster and on the newest Python at hand, too
	-command -v haproxy /usr/sbin/haproxy >/dev/null || apt-get install -y -qq haproxy # without it its test is skipped
	$(BIN)/pip install -q -r requirements-ray.txt
	$(BIN)/python -m pytest -m nightly

quick: ## pass the tests of the engine alone, which take a minute at most
	$(BIN)/python -m pytest tests/core -x

lint: ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo

bench: ## print the speed tables: the engine and training against peers, pages in a browser, whole runs
	$(BIN)/pip install -q "transformer-lens==3.9.0"
	$(BIN)/python -m tests.benchmarks.engine
	$(BIN)/python -m tests.benchmarks.keystroke
	$(BIN)/python -m tests.benchmarks.controls
	$(BIN)/python -m tests.benchmarks.lab
	$(BIN)/python -m tests.benchmarks.drawn
	$(BIN)/python -m tests.benchmarks.training
	$(BIN)/python -m tests.benchmarks.runs
	$(BIN)/python -m tests.benchmarks.layouts
	$(BIN)/python -m tests.benchmarks.film
	$(BIN)/python -m tests.benchmarks.visitors

RECIPES := "sentiment" "sentiment zh" "bert" "gpt" "gpt gpt-today" "gpt gpt-draft" "lm gpt" "gpt_poem" "lm gru" "lm lstm" "lm rnn" \
	"seq2seq" "seq2seq --plain" "translation en-fr" "translation en-de" "translation en-zh" "translation zh-en" \
	"lens bert" "lens gpt" "lens gpt-today" "lens gpt-draft" "lens gpt-char" "lens gpt-poem"

models: ## train every shipped model from the data in DATA, one after the other; OPTIONS=--quick tries all recipes out
	@test -n "$(DATA)" || { echo "make models DATA=DIR: DIR holds the data, in it or in its subfolders"; exit 2; }
	for recipe in $(RECIPES); do $(BIN)/python -m transformer_core.recipes.$$recipe --data $(DATA) $(OPTIONS) || exit; done
