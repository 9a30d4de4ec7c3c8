# Everything a person or a CI machine does with Duetime. `make` alone says what there is.
# Needed beforehand: make, and Python 3.11 or newer (PYTHON=python3.12 picks another one for a new .venv).

PYTHON ?= python3
TESTS ?= tests
PYTEST_ARGS ?=
LOCK_ARGS ?=

BIN := .venv/bin
UV := $(BIN)/uv
CDK := $(BIN)/node infra/cdk-cli/node_modules/aws-cdk/bin/cdk

# The venv's Node, never the machine's: jsii and npm look for `node` on the path.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# An active environment elsewhere, or a PYTHONPATH, must not leak into ours.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME
export CDK_DISABLE_CLI_TELEMETRY := 1
export CDK_DISABLE_VERSION_CHECK := 1

# A stamp is written as the last act of an installation and lives inside what it vouches for, so neither
# an interrupted installation nor a deleted folder passes for a finished one.
PIP_READY := .venv/.stamps/pip
DEV_READY := .venv/.stamps/dev
CLI_READY := infra/cdk-cli/node_modules/.ready
LAYERS_READY := build/layers/.aws-ready build/layers/.host-ready
EMULATOR_READY := local/.state/emulator/.ready
INSTALLED := $(DEV_READY) $(CLI_READY) $(LAYERS_READY) $(EMULATOR_READY)

.DEFAULT_GOAL := help
.PHONY: help setup lock check format test test-unit test-contract test-tasks test-functions test-infra test-e2e \
	layers openapi synth picture deploy up down run clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' Makefile

setup: $(INSTALLED) ## Install everything into this folder (.venv, the CDK CLI, the layers, the emulator)
	@echo "Everything is installed."

$(PIP_READY): requirements/bootstrap.txt
	@command -v $(PYTHON) >/dev/null || \
		{ echo "$(PYTHON) was not found: install Python 3.11 or newer, or name one with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is $$($(PYTHON) -V 2>&1), but Duetime needs 3.11 or newer: name one with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) cannot create virtual environments: install its venv package (Debian: python3-venv)." >&2; exit 1; }
	@echo "Creating .venv"
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@mkdir -p $(@D) && touch $@

# `sync` removes what the lock does not name, our own editable package included: hence both in one step.
$(DEV_READY): requirements/dev.txt pyproject.toml $(PIP_READY)
	@echo "Installing the packages of requirements/dev.txt into .venv"
	@$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

$(CLI_READY): infra/cdk-cli/package.json infra/cdk-cli/package-lock.json | $(DEV_READY)
	@echo "Installing the CDK CLI into infra/cdk-cli"
	@$(BIN)/npm ci --prefix infra/cdk-cli --silent --no-audit --no-fund --no-update-notifier
	@touch $@

build/layers/.%-ready: layers/build.py layers/dependencies/requirements.txt $(PIP_READY) | $(DEV_READY)
	@echo "Building the dependencies layer ($*)"
	@$(BIN)/python -m layers.build $*
	@mkdir -p $(@D) && touch $@

# Stopped first, lest a running one lose its files underfoot. Compiled at once: otherwise the first `make up`
# and the first cold start of every function would pay for it.
$(EMULATOR_READY): local/emulator-requirements.txt $(PIP_READY)
	@echo "Installing the emulator into local/.state/emulator"
	@$(BIN)/python -m local down >/dev/null
	@$(UV) venv --quiet --clear --python $(BIN)/python local/.state/emulator
	@$(UV) pip sync --quiet --python local/.state/emulator/bin/python --require-hashes --compile-bytecode $<
	@touch $@

lock: $(PIP_READY) ## Recompile the lock files from their .in files (LOCK_ARGS=--upgrade for newer packages)
	@$(call compile,requirements/bootstrap)
	@$(call compile,layers/dependencies/requirements)
	@$(call compile,requirements/dev,-c layers/dependencies/requirements.txt)
	@$(call compile,local/emulator-requirements)

compile = echo "Locking $(1).in" && $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --custom-compile-command "make lock" $(1).in -o $(1).txt $(2) $(LOCK_ARGS)

check: $(DEV_READY) ## Lint, check the format and the types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy .

format: $(DEV_READY) ## Rewrite the sources as `make check` wants them
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

test: $(INSTALLED) check ## Check, then run every test (TESTS=tests/unit, PYTEST_ARGS="-k claim" narrow it)
	@$(BIN)/python -m pytest $(TESTS) $(PYTEST_ARGS)

test-unit: ## The domain alone: no AWS, no sockets
test-contract: ## One suite over every store, DynamoDB's on a bare emulator
test-tasks: ## Each kind of task, really performed as far as this machine allows
test-functions: ## The handlers, on events/*.json and moto
test-infra: ## The synthesised template: keys, grants, cdk-nag, cfn-lint
test-e2e: ## Signed HTTP against the deployed local stack
test-unit test-contract test-tasks test-functions test-infra test-e2e: test-%: $(INSTALLED)
	@$(BIN)/python -m pytest tests/$* $(PYTEST_ARGS)

openapi: $(DEV_READY) ## Write the API's contract, functions/job_search/openapi.json, from the code
	@$(BIN)/python -m openapi.document

layers: $(LAYERS_READY) ## Build the dependencies layer, for AWS and for this machine

synth: environment $(INSTALLED) ## Write the CloudFormation template of ENV=prod into cdk.out
	@$(CDK) synth --no-notices --quiet -c env=$(ENV)

picture: $(INSTALLED) ## Draw docs/dashboard.svg anew, after the dashboard has changed
	@$(CDK) synth --no-notices --quiet -c env=prod
	@$(BIN)/python -m infra.picture cdk.out/duetime-prod.template.json > docs/dashboard.svg

deploy: environment $(INSTALLED) ## Deploy ENV=prod into the AWS account of your credentials
	@$(CDK) deploy --no-notices -c env=$(ENV)

.PHONY: environment
environment:
	@test -n "$(ENV)" || { echo "Say which environment of cdk.json, for example: make synth ENV=dev" >&2; exit 1; }

up: $(INSTALLED) ## Start the local stack (or bring it up to date), print its address, return
	@$(BIN)/python -m local up

# Installs nothing: the standard library is enough to stop the stack.
down: ## Stop the local stack and forget its data
	@$(or $(wildcard $(BIN)/python),$(PYTHON)) -m local down

run: $(INSTALLED) ## Start the local stack, show some jobs going through it, serve until Ctrl-C
	@$(BIN)/python -m local run

clean: down ## Remove everything that these targets made, the installations included
	@rm -rf .venv build cdk.out infra/cdk-cli/node_modules local/.state local/stack.json \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info layers/core/python/*.egg-info client/*.egg-info
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
