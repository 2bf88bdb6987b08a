# What a newcomer types. `make help` lists it; every target installs what it lacks (tools/setup) and can be run again.

MNT ?= mnt
SCOPE ?= demo
STORE ?= sqlite:$(CURDIR)/vfsd.db
OPTIONS ?=
PYTHON ?= python3
ARGS ?=

# How to name the same mount again: what was given, apart from a store's URL, which may hold a password.
AGAIN := $(foreach name,MNT SCOPE,$(if $(filter-out file,$(origin $(name))), $(name)='$($(name))'))
AGAIN += $(if $(filter-out file,$(origin STORE)),STORE=…)

# Recipes take these from the environment: no character in them can break a command, and ps shows no password.
export PYTHON
mount umount clean: export MNT := $(MNT)
mount: export SCOPE := $(SCOPE)
mount: export VFSD_STORE := $(STORE)
mount: export AGAIN := $(if $(strip $(AGAIN)), $(strip $(AGAIN)))

BIN := .venv/bin

# The tests mount, make devices and act as other users: as root, who must leave nothing of his in somebody's checkout.
SUDO := $(if $(filter-out 0,$(shell id -u)),sudo env PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY=/run/vfsd-hypothesis)
PYTEST := $(SUDO) $(BIN)/python -m pytest $(if $(SUDO),-p no:cacheprovider)

.DEFAULT_GOAL := help
.PHONY: help mount umount test check bench clean

help: ## say what there is
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

test: ## run all tests, on real mounts and a real Redis; ARGS= goes to pytest
	@tools/setup dev
	@$(PYTEST) $(ARGS)

check: ## lint, format, types
	@tools/setup dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	shellcheck tools/setup .ci/run

bench: ## measure how fast it is and compare it with other file systems; ARGS= goes to the bench: try ARGS=--help
	@tools/setup bench
	@$(SUDO) $(BIN)/python -m bench $(ARGS)

clean: ## unmount, then remove .venv and what builds and tests left; never a store
	@if mountpoint -q "$$MNT"; then $(BIN)/vfsd umount "$$MNT"; fi
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -xdev -name __pycache__ -prune -exec rm -rf {} +
