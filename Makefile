# Sandbox Router. `make` lists the targets; README says what they are for.
# Variables given here (PORT, STATE, NETS, CRASH_AT, ...) reach the program as its environment.
PYTHON ?= python3
UV ?= uv
VENV := .venv
PY := $(VENV)/bin/python
PYTEST_ARGS ?= -n auto --dist loadgroup
PIP := $(PY) -m pip install -qq --disable-pip-version-check --no-input --only-binary :all: --require-hashes

RUN_LOCKS := layers/deps/requirements.txt infra/local/requirements.txt
TEST_LOCKS := tests/requirements.txt
# What a venv was made from: where it is, which Python, which locks.
run_stamp = $$( { echo "$(CURDIR)"; $(PYTHON) -VV; cat $(RUN_LOCKS); } | cksum)
test_stamp = $$(cat $(RUN_LOCKS) $(TEST_LOCKS) | cksum)

.DEFAULT_GOAL := help
.PHONY: help setup setup-test lock run stop test check unit sim openapi clean chaos bench e2e deploy

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: ## .venv with what `make run` needs; instant when the locks did not change
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed; '$(PYTHON)' is $$($(PYTHON) -V 2>/dev/null || echo missing)." \
	    "Name one: make PYTHON=python3.13 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make a venv. On Debian and Ubuntu: apt-get install" \
	    "$$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')" >&2; exit 1; }
	@want="$(run_stamp)"; [ "$$(cat $(VENV)/.run 2>/dev/null)" = "$$want" ] || { \
	  echo "Installing what make run needs into $(VENV) ..."; \
	  $(PYTHON) -m venv --clear $(VENV) && $(PIP) $(RUN_LOCKS:%=-r %) && $(path_file) && echo "$$want" > $(VENV)/.run; }

# Not an editable install: that would need a build backend from the registry at every setup.
path_file = printf '%s\n' "$(CURDIR)/layers/core/python" "$(CURDIR)" \
  > "$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/sandbox_router.pth"

setup-test: setup ## .venv with what the tests need too
	@want="$(test_stamp)"; [ "$$(cat $(VENV)/.test 2>/dev/null)" = "$$want" ] || { \
	  echo "Installing what the tests need into $(VENV) ..."; \
	  $(PIP) $(TEST_LOCKS:%=-r %) && echo "$$want" > $(VENV)/.test; }

lock: ## resolve the *.in files again (needs uv); same versions unless a line asks otherwise
	@for file in $(RUN_LOCKS) $(TEST_LOCKS); do (cd "$$(dirname $$file)" && $(UV) pip compile $(LOCK_ARGS) \
	  --quiet --universal --python-version 3.11 --only-binary :all: --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --output-file requirements.txt requirements.in) || exit 1; done

run: setup ## the router on this machine (PORT=, STATE=, NETS=, CRASH_AT=)
	@exec $(PY) -m infra.local

stop: setup ## stop what `make run` started
	@$(PY) -m infra.local stop

test: check ## everything: lint, format, types and all tests
	@$(PY) -m pytest $(PYTEST_ARGS)

check: setup-test ## lint, format and types only
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check
	@$(PY) -m mypy

unit: setup-test ## the fast tests
	@$(PY) -m pytest tests/unit tests/architecture

sim: setup-test ## the long simulation
	@$(PY) -m pytest $(PYTEST_ARGS) tests/sim --long

openapi: setup ## write infra/openapi.json from the handlers
	@$(PY) -m infra.openapi --write

clean: ## remove the venv and the caches; records of sandboxes (STATE) stay
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

e2e: ; @echo "make $@ comes with part 2" >&2; exit 2
chaos: ; @echo "make $@ comes with part 3" >&2; exit 2
bench deploy: ; @echo "make $@ comes with part 7" >&2; exit 2
