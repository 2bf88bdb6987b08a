# Commands for a checkout. `make help` lists them. Every target first installs what is missing (tools/setup), and can be
# run again.

MNT ?= mnt
SCOPE ?= demo
STORE ?= sqlite:$(CURDIR)/vfsd.db
OPTIONS ?=
PYTHON ?= python3
ARGS ?=

# The variables that name the same mount again. A store's URL is left out, because it may hold a password.
AGAIN := $(foreach name,MNT SCOPE,$(if $(filter-out file,$(origin $(name))), $(name)='$($(name))'))
AGAIN += $(if $(filter-out file,$(origin STORE)),STORE=…)

# Recipes read these from the environment: so no character in them can break a command, and ps shows no password.
export PYTHON
mount umount clean: export MNT := $(MNT)
mount: export SCOPE := $(SCOPE)
mount: export VFSD_STORE := $(STORE)
mount: export AGAIN := $(if $(strip $(AGAIN)), $(strip $(AGAIN)))

BIN := .venv/bin

# The tests mount, create devices and act as other users, so they run as root. Root must leave no files of its own in a
# user's checkout: no bytecode, no caches.
SUDO := $(if $(filter-out 0,$(shell id -u)),sudo env PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY=/run/vfsd-hypothesis)
# A test waits for other processes most of the time: so each processor runs a part of the files.
PYTEST := $(SUDO) $(BIN)/python -m pytest -n auto --dist loadfile $(if $(SUDO),-p no:cacheprovider)

.DEFAULT_GOAL := help
.PHONY: help mount umount test check docs bench clean

help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile
	@echo "MNT= (a directory), SCOPE= (a name), STORE= (a URL), OPTIONS= (of vfsd mount); PYTHON= to build .venv from"

mount: ## mount a scope at ./mnt, kept in ./vfsd.db
	@tools/setup run
	@$(BIN)/vfsd mount "$$MNT" --scope "$$SCOPE" $(OPTIONS)
	@printf '%s\n' \
		"Try:" \
		"  echo hello > '$$MNT/greeting'; cat '$$MNT/greeting'; ls -la '$$MNT'" \
		"  $(BIN)/vfsd status" \
		"Unmount:       make umount$$AGAIN" \
		"Mount again:   make mount$$AGAIN   (the files are still there: the store has them)"

umount: ## unmount it
	@tools/setup run
	@$(BIN)/vfsd umount "$$MNT"

test: ## run all tests, on real mounts and a real Redis; ARGS= goes to pytest (-n0: one after the other)
	@tools/setup dev
	@$(PYTEST) $(ARGS)

check: ## lint, format, types
	@tools/setup dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	shellcheck tools/setup .ci/run

docs: ## write docs/cli.md and docs/vfsd.1 again, from the commands
	@tools/setup dev
	@$(BIN)/python -m tools.reference

bench: ## measure how fast it is, compared with other file systems; ARGS= goes to the bench: try ARGS=--help
	@tools/setup bench
	@$(SUDO) $(BIN)/python -m bench $(ARGS)

clean: ## unmount, then remove .venv and the files of builds and tests; never a store
	@if mountpoint -q "$$MNT"; then $(BIN)/vfsd umount "$$MNT"; fi
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -xdev -name __pycache__ -prune -exec rm -rf {} +
