# Two commands matter: `make run` and `make test`. Both make .venv here on first use and install pinned, hashed packages.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PORT ?= 8501
# Three on two cores: a test that drives a browser waits half of its time.
WORKERS ?= 3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup
# What one worker has compiled, the others and every app and command that a test starts take from the disk.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-all test-peers coverage soak lint bench bench-short lock llm-server sbom clean

run: .venv/run.stamp
	$(BIN)/streamlit run asgi.py --server.port $(PORT)

test: .venv/dev.stamp
	$(PYTEST) -m "not slow"

test-all: .venv/dev.stamp
	$(PYTEST) --timeout=1800 --hypothesis-profile=thorough

# The lines of rag_core that the tests reach, in processes that they start too; fails under nine of ten.
coverage: .venv/dev.stamp
	$(PYTEST) -m "not slow" --cov --cov-report=term --cov-fail-under=90

# Other people's libraries that results are held against, in an environment of their own.
test-peers: .venv-peers/peers.stamp .venv-stacks/stacks.stamp
	.venv-peers/bin/python -m pytest tests/peers

# For twenty minutes each: four browser sessions; a team behind nginx while an admin ingests and imports.
soak: .venv/dev.stamp
	$(BIN)/python scripts/soak.py
	$(BIN)/python scripts/soak_team.py

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# All but `scale`, which takes a quarter of an hour by itself.
bench: .venv/dev.stamp
	for name in $(filter-out scale,$(basename $(notdir $(wildcard benchmarks/[a-z]*.py)))); do \
	  echo "== $$name"; $(BIN)/python -m benchmarks.$$name || exit 1; done

# The short modes of those that have goals, in a few minutes, and their goals as the table of docs/performance.md.
bench-short: .venv/dev.stamp
	$(BIN)/python -m benchmarks --write

.venv/run.stamp: requirements.lock
	@echo "Installing into .venv; the first time takes a few minutes."
	test -d .venv || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	touch $@

.venv/dev.stamp: requirements-dev.lock .venv/run.stamp
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	touch $@

.venv-stacks/stacks.stamp: requirements-stacks.txt
	$(PYTHON) -m venv .venv-stacks
	.venv-stacks/bin/pip install --quiet --disable-pip-version-check -r requirements-stacks.txt
	touch $@

.venv-peers/peers.stamp: requirements-peers.txt requirements-dev.lock
	test -d .venv-peers || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	.venv-peers/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	.venv-peers/bin/pip install --quiet --disable-pip-version-check -r requirements-peers.txt
	touch $@

# A real OpenAI-compatible server with a small model, for development; its judgement is near chance.
llm-server: .venv/dev.stamp
	$(BIN)/python scripts/llm_server.py

# Rewrites both lock files after a change of requirements*.txt. Needs uv on the path: pip install uv.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements.txt -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements-server.txt -o requirements-server.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements-dev.txt -o requirements-dev.lock

# What is installed, for whoever has to check it (CycloneDX): packages with the hashes of the lock, and with licences.
sbom: .venv/run.stamp
	test -d .venv-sbom || $(PYTHON) -m venv .venv-sbom
	.venv-sbom/bin/pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0
	.venv-sbom/bin/cyclonedx-py requirements --of JSON -o sbom.json requirements.lock
	.venv-sbom/bin/cyclonedx-py environment --of JSON -o sbom-licences.json $(BIN)/python

clean:
	rm -rf .venv .venv-sbom .venv-peers .venv-stacks .pytest_cache .mypy_cache .ruff_cache .hypothesis
