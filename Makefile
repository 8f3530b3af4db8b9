# Sandbox Router. `make` lists the targets; README says what they are for.
# Variables given here (PORT, STATE, NETS, CRASH_AT, ...) reach the program as its environment.
PYTHON ?= python3
UV ?= uv
VENV := .venv
PY := $(VENV)/bin/python
PYTEST_ARGS ?= -n auto --dist loadgroup
pip = $(1) -m pip install -qq --disable-pip-version-check --no-input --only-binary :all: --require-hashes

RUN_LOCKS := layers/deps/requirements.txt infra/local/requirements.txt
TEST_LOCKS := tests/requirements.txt
CONSOLE_LOCKS := infra/cloud/console/requirements.txt
# CDK and the emulator of the e2e tests have environments of their own: neither meets the runtime.
# CDK's command line is in the same place: its package brings Python files that are none of ours.
DEPLOY_LOCKS := infra/cloud/requirements.txt
EMULATOR_LOCKS := tests/cloud/ministack/requirements.txt
DEPLOY_PY := .venv-deploy/bin/python
EMULATOR_PY := .venv-ministack/bin/python
CDK := ../../.venv-deploy/node_modules/.bin/cdk
CONTEXT ?=
OUT := ../../.build/cdk.out
# What a venv was made from: where it is, which Python, which locks.
run_stamp = $$( { echo "$(CURDIR)"; $(PYTHON) -VV; cat $(RUN_LOCKS); } | cksum)
aws_stamp = $$(cat $(RUN_LOCKS) $(CONSOLE_LOCKS) | cksum)
test_stamp = $$(cat $(RUN_LOCKS) $(TEST_LOCKS) | cksum)
deploy_stamp = $$( { echo "$(CURDIR)"; $(PYTHON) -VV; cat $(DEPLOY_LOCKS) infra/cloud/package-lock.json; } | cksum)
emulator_stamp = $$( { echo "$(CURDIR)"; $(PYTHON) -VV; cat $(EMULATOR_LOCKS); } | cksum)

.DEFAULT_GOAL := help
.PHONY: help setup setup-test setup-deploy setup-aws setup-e2e lock run stop test check unit deployed sim mutants openapi \
  synth deploy pools key e2e clean chaos bench

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: ## .venv with what `make run` needs; instant when the locks did not change
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed; '$(PYTHON)' is $$($(PYTHON) -V 2>/dev/null || echo missing)." \
	    "Name one: make PYTHON=python3.13 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make a venv. On Debian and Ubuntu: apt-get install" \
	    "$$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')" >&2; exit 1; }
	@want="$(run_stamp)"; [ "$$(cat $(VENV)/.run 2>/dev/null)" = "$$want" ] || { \
	  echo "Installing what make run needs into $(VENV) ..." >&2; \
	  $(PYTHON) -m venv --clear $(VENV) && $(call pip,$(PY)) $(RUN_LOCKS:%=-r %) && $(call path_file,$(PY)) && echo "$$want" > $(VENV)/.run; }

# Not an editable install: that would need a build backend from the registry at every setup.
path_file = printf '%s\n' "$(CURDIR)/layers/core/python" "$(CURDIR)" \
  > "$$($(1) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/sandbox_router.pth"

setup-test: setup ## .venv with what the tests need too
	@want="$(test_stamp)"; [ "$$(cat $(VENV)/.test 2>/dev/null)" = "$$want" ] || { \
	  echo "Installing what the tests need into $(VENV) ..."; \
	  $(call pip,$(PY)) $(TEST_LOCKS:%=-r %) && echo "$$want" > $(VENV)/.test; }

lock: ## resolve the *.in files again (needs uv); same versions unless a line asks otherwise
	@for file in $(RUN_LOCKS) $(CONSOLE_LOCKS) $(TEST_LOCKS) $(DEPLOY_LOCKS) $(EMULATOR_LOCKS); do (cd "$$(dirname $$file)" && $(UV) pip compile $(LOCK_ARGS) \
	  --quiet --universal --python-version 3.11 --only-binary :all: --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --output-file requirements.txt requirements.in) || exit 1; done

run: setup ## the router on this machine (PORT=, STATE=, NETS=, CRASH_AT=)
	@exec $(PY) -m infra.local

stop: ## stop what `make run` started
	@if [ -x $(PY) ]; then $(PY) -m infra.local stop; else echo "Nothing was ever started from here."; fi

test: check ## everything: lint, format, types and all tests
	@$(PY) -m pytest $(PYTEST_ARGS)

check: setup-test ## lint, format and types only
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check
	@$(PY) -m mypy

unit: setup-test ## the fast tests
	@$(PY) -m pytest tests/unit tests/architecture

deployed: setup-test ## what AWS will run, by the Python of its functions (PYTHON=python3.13 VENV=.venv-deployed)
	@$(PY) -m pytest $(PYTEST_ARGS) tests/unit tests/contract/ports tests/contract/providers

sim: setup-test ## the long simulation, and how late each net alone is
	@$(PY) -m pytest $(PYTEST_ARGS) tests/sim --long
	@$(PY) -m tests.sim.lateness

mutants: setup-test ## seeded faults of the core: how many are found, and by which test
	@$(PY) -m tests.sim.kill

openapi: setup ## write infra/openapi.json and events/schema from the code
	@$(PY) -m infra.openapi --write && $(PY) -m infra.schemas --write

setup-deploy: ## what the cloud targets need: CDK in .venv-deploy, its command line by npm
	@node -e 'process.exit(+(process.versions.node.split(".")[0] < 20))' 2>/dev/null && command -v npm >/dev/null || { \
	  echo "Node 20 or newer with npm is needed; 'node' is $$(node --version 2>/dev/null || echo missing)." >&2; exit 1; }
	@want="$(deploy_stamp)"; [ "$$(cat .venv-deploy/.deploy 2>/dev/null)" = "$$want" ] || { \
	  echo "Installing what the cloud targets need into .venv-deploy ..."; \
	  $(PYTHON) -m venv --clear .venv-deploy && $(call pip,$(DEPLOY_PY)) $(DEPLOY_LOCKS:%=-r %) && $(call path_file,$(DEPLOY_PY)) \
	  && cp infra/cloud/package*.json .venv-deploy && (cd .venv-deploy && npm ci --silent --no-audit --no-fund) && echo "$$want" > .venv-deploy/.deploy; }

synth: setup-deploy ## the CloudFormation templates, in .build/cdk.out (CONTEXT="-c streaming=off")
	@cd infra/cloud && $(CDK) synth --quiet $(CONTEXT)

deploy: synth ## the router in your AWS account and region (AWS_PROFILE=, AWS_REGION=, CONTEXT=)
	@cd infra/cloud && $(CDK) bootstrap --app $(OUT) && $(CDK) deploy --all --app $(OUT) --outputs-file ../../.build/outputs.json

setup-aws: setup ## .venv with what `make key` and `make pools` need too
	@want="$(aws_stamp)"; [ "$$(cat $(VENV)/.aws 2>/dev/null)" = "$$want" ] || { \
	  echo "Installing what the operator of a deployment needs into $(VENV) ..." >&2; \
	  $(call pip,$(PY)) $(CONSOLE_LOCKS:%=-r %) && echo "$$want" > $(VENV)/.aws; }

pools: setup-aws ## give what was deployed its pools, checked first (FILE=, OUTPUTS=)
	@$(PY) -m infra.cloud.console pools

key: setup-aws ## a new API key for what was deployed, shown once (TENANT=, SCOPES=, OUTPUTS=)
	@$(PY) -m infra.cloud.console key

setup-e2e: setup-test setup-deploy ## what `make e2e` needs: an emulator of AWS in .venv-ministack
	@want="$(emulator_stamp)"; [ "$$(cat .venv-ministack/.e2e 2>/dev/null)" = "$$want" ] || { \
	  echo "Installing the emulator into .venv-ministack ..."; \
	  $(PYTHON) -m venv --clear .venv-ministack && $(call pip,$(EMULATOR_PY)) $(EMULATOR_LOCKS:%=-r %) \
	  && echo "$$want" > .venv-ministack/.e2e; }

e2e: setup-e2e ## deploy to an emulator of AWS on this machine, and use it over HTTP
	@E2E=1 $(PY) -m pytest -n 2 --dist loadgroup tests/cloud/e2e

clean: ## remove the venvs, what was built and the caches; records of sandboxes (STATE) stay
	@rm -rf $(VENV) .venv-deploy .venv-deployed .venv-ministack .build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

chaos: setup-test ## kills and stops of real processes under load (KILLS=, SEED=, CLIENTS=)
	@$(PY) -m tests.local.chaos

bench: ; @echo "make $@ is not built yet" >&2; exit 2
