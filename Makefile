# hopscope: everything from a bare Debian 12 with make and git.  `make help` lists the targets.
#
# A target brings what it needs: system packages (as root; anybody else is told the one line to run), then .venv.
# The system's own Python is never written to.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint setup system test-deps bench matrix clean

# ip and nft live in sbin, which is on root's PATH only.
export PATH := $(PATH):/usr/sbin:/sbin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

BIN := .venv/bin
DEMO_ARGS ?=
PYTEST_ARGS ?=
# Much of a test is waiting, so one more than there are cores.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -lt 4 ] && expr $$n + 1 || echo 4)

# what must be there, a command or a file : its Debian package
NEEDS := ip:iproute2 nft:nftables openssl:openssl /etc/ssl/certs/ca-certificates.crt:ca-certificates
BENCH_NEEDS := fping:fping ping:iputils-ping tcpdump:tcpdump
TEST_NEEDS := chromium:chromium curl:curl fping:fping ping:iputils-ping /usr/sbin/sshd:openssh-server

# Prints the first Python that is new enough and can make a virtual environment. A pyenv shim may exist and not run.
find_python = for python in python3 python3.11 python3.12 python3.13 python3.14 /usr/bin/python3; do \
	"$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& echo "$$python" && break; done

# Collects into $$missing the packages of what is not there.
find_missing = missing=; for pair in $(1); do have=$${pair%%:*}; \
	command -v "$$have" >/dev/null 2>&1 || [ -e "$$have" ] || missing="$$missing $${pair\#*:}"; done

# Installs $$missing as root; tells anybody else, or where that fails, what to run, and goes on.
install_missing = [ -z "$$missing" ] || { \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		echo "== installing$$missing"; \
		export DEBIAN_FRONTEND=noninteractive; \
		said=$$( { apt-get update -qq && apt-get install -qq --yes --no-install-recommends \
			-o DPkg::Lock::Timeout=300 $$missing; } 2>&1 </dev/null ) || { printf '%s\n' "$$said" >&2; false; }; \
	else false; fi || printf '%s\n' "Not there yet. As root, once:" \
		"    apt-get update && apt-get install --no-install-recommends$$missing"; }

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name does; do \
		printf '  make %-10s %s\n' "$$name" "$$does"; done

demo: setup ## the whole job on a network in a box  (DEMO_ARGS=…)
	@$(BIN)/hopscope demo $(DEMO_ARGS)

test: setup ## style, types, import rules, all tests  (PYTEST_ARGS=…)
	@echo "== ruff check"  && $(BIN)/ruff check
	@echo "== ruff format" && $(BIN)/ruff format --check
	@echo "== mypy"        && $(BIN)/mypy
	@echo "== imports"     && $(BIN)/lint-imports --no-logo
	@echo "== pytest"      && $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

lint: setup ## mend style and layout, then check style, types and import rules
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

setup: .venv/.installed ## .venv with hopscope and what its tests need

test-deps: ## programs of others that tests are run against
	@$(call find_missing,$(TEST_NEEDS)); $(install_missing)

system:
	@$(call find_missing,$(NEEDS)); \
	[ -n "$$($(find_python))" ] || missing=" python3 python3-venv$$missing"; \
	$(install_missing)

.venv/.installed: pyproject.toml | system
	@python=$$($(find_python)); \
	[ -n "$$python" ] || { echo "hopscope needs Python 3.11 or newer with venv; none was found." >&2; exit 1; }; \
	echo "== .venv"; \
	$(BIN)/python -m pip --version >/dev/null 2>&1 || "$$python" -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --editable '.[dev,report]'
	@$(BIN)/python -m compileall -q src
	@touch $@

bench: setup ## figures beside peers, into benchmarks/RESULTS.md  (BENCH_ARGS=part …)
	@$(call find_missing,$(BENCH_NEEDS)); $(install_missing)
	@$(BIN)/python benchmarks/bench.py $(BENCH_ARGS)

matrix: setup ## the demo's verdict over twenty seeds, into benchmarks/MATRIX.md  (ONLY=1,2,…)
	@$(BIN)/python benchmarks/matrix.py $(if $(ONLY),--only $(ONLY))

clean: ## remove .venv, builds and caches
	rm -rf .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -prune -exec rm -rf {} +
