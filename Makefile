# Every command a person or the CI runs. `make help` lists them.

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help run test test-full lint docs format image spark-image base-image wheel lock nightly bench bench-start clean

ARGS ?=
BIN := .venv/bin

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## set up, then run the three main scenarios (ARGS="--fidelity netns --seed 7")
	@.ci/setup.sh run
	@$(BIN)/windtunnel run $(ARGS)

test: ## set up, then run all tests except the longest (ARGS="-k relay")
	@.ci/setup.sh test
	@.ci/test.sh $(ARGS)

test-full: ## set up, then run all tests (required before an issue is resolved)
	@.ci/setup.sh test
	@.ci/test.sh --full $(ARGS)

lint: ## check style, import contracts and types
	@.ci/setup.sh test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache
	@.ci/types.sh

docs: ## build the documentation as static pages in build/site
	@.ci/setup.sh test
	@.ci/docs.sh

format: ## fix and format the code with ruff
	@.ci/setup.sh test
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

image: ## build the container image, on a local base image if none can be pulled
	@docker/build.sh

spark-image: ## build the image for the compose profile spark, on top of the container image
	@docker/build.sh spark

base-image: ## build the local base image from Debian packages
	@docker/base-image.sh

wheel: ## build the wheel, and a second one with the compiled kernels, into build/wheels
	@.ci/setup.sh test
	@.ci/wheel.sh

lock: ## regenerate the lock files from pyproject.toml (UPGRADE=1 for the newest versions)
	@.ci/setup.sh test
	@.ci/lock.sh

nightly: lint test-full ## run lint, test-full and slow checks: without the JIT, with bounds checks, many seeds, the exam
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests/unit --timeout 900
	@NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest tests/unit
	@nice $(BIN)/python -m tests.fuzz
	@$(BIN)/python -m tests.overload
	@$(BIN)/python -m tests.killed
	@nice $(BIN)/python -m tests.archive.server_killed
	@$(BIN)/python -m tests.scenarios
	@$(BIN)/windtunnel run --fidelity netns --seeds 10
	@$(BIN)/python -m tests.soak.same_bytes
	@$(BIN)/python -m tests.soak.frame_outcomes
	@$(BIN)/python -m tests.soak.side_by_side
	@$(BIN)/python -m tests.soak.clean_runs
	@nice $(BIN)/python -m tests.soak.random_scenarios 1 1000
	@nice $(BIN)/python -m tests.soak.random_scenarios 1001 2000 pyaeron
	@nice $(BIN)/windtunnel swarm --seed 1000000 --seeds 100000 --jobs 2
	@nice $(BIN)/windtunnel swarm --seed 2000000 --seeds 100000 --jobs 2 --recovery-modes
	@$(BIN)/windtunnel exam
	@$(BIN)/windtunnel exam --generate 250 --seed $$(date +%Y%m%d) --seeds 1 --jobs 2

bench: ## compare our driver with the real C driver, on a quiet machine (ARGS="--only udp-1344")
	@.ci/setup.sh test
	@$(BIN)/windtunnel bench $(ARGS)

bench-start: ## measure how long a new user waits, and check the limits, on a quiet machine
	@.ci/setup.sh test
	@$(BIN)/python -m tests.bench_start $(ARGS)

clean: ## remove what runs and tools left on this machine and in this clone (run folders are kept)
	@[ ! -x $(BIN)/windtunnel ] || $(BIN)/windtunnel clean
	@rm -rf build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
