# Every target creates the virtual environment it needs.
.DEFAULT_GOAL := help
PY ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROTOC := .venvs/protoc
STAMP := $(VENV)/.installed

.PHONY: help setup demo test cover fmt lint type proto proto-check proto-baseline buf-check ctk fuzz bench bench-quick canonical-million agentdojo protobuf-range go chaos soak availability ci clean

help:
	@echo "make demo    run the demonstration: two plugins, real processes"
	@echo "make test    run the tests"
	@echo "make ci      everything that has to be green"
	@echo "also: setup fmt lint type cover proto proto-check proto-baseline buf-check ctk go bench"
	@echo "      canonical-million agentdojo protobuf-range fuzz clean"
	@echo "      chaos [SEED= N= SLOW=] soak [N= SLOPE=] availability"

$(STAMP): pyproject.toml
	$(PY) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $(STAMP)

setup: $(STAMP)

fmt: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/buf format -w

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

type: setup
	$(BIN)/mypy

# The generator lives in an environment of its own: it pins protobuf 6.31, so
# that the generated code runs on every runtime from 6.31 to 7.x.
$(PROTOC)/.installed:
	$(PY) -m venv $(PROTOC)
	$(PROTOC)/bin/pip install --quiet 'grpcio-tools==1.74.0' 'setuptools<81'
	touch $@

proto: $(PROTOC)/.installed
	$(PROTOC)/bin/python -m grpc_tools.protoc -Iproto --python_out=. --pyi_out=. --grpc_python_out=. proto/agent_hooks/v1/*.proto

proto-check: $(PROTOC)/.installed
	@out=$$(mktemp -d) && $(PROTOC)/bin/python -m grpc_tools.protoc -Iproto --python_out=$$out --pyi_out=$$out --grpc_python_out=$$out proto/agent_hooks/v1/*.proto \
	&& diff -r -x __pycache__ -x __init__.py $$out/agent_hooks/v1 agent_hooks/v1 && rm -rf $$out && echo "generated code is fresh"

# Against the protocol as it was released: no field may change its meaning.
PROTOCOL_BASELINE := conformance/protocol-v1.binpb

buf-check: setup
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	$(BIN)/buf breaking --against $(PROTOCOL_BASELINE)

proto-baseline: setup
	$(BIN)/buf build -o $(PROTOCOL_BASELINE)

GO_PLUGIN := examples/plugins/go

go:
	$(MAKE) -C $(GO_PLUGIN) build test

demo: setup
	$(BIN)/agent-hooks demo

# Without Go its example is skipped here; in CI it must be there.
test: setup
	$(BIN)/pytest
	@if command -v go >/dev/null; then $(MAKE) go; elif [ "$$CI" = true ]; then echo "go: not found"; exit 1; fi

cover: setup
	$(BIN)/pytest tests/core --cov --cov-fail-under=100

ctk: setup
	$(BIN)/pytest tests/ctk

# The oldest versions that pyproject.toml admits, at the other end of the range.
LOW := .venvs/lowest

$(LOW)/.installed: pyproject.toml
	$(PY) -m venv $(LOW)
	$(LOW)/bin/pip install --quiet 'grpcio==1.74.0' 'protobuf==6.31.1' 'rfc8785==0.1.4' 'orjson==3.12.0' 'tenacity==9.0.0' 'opentelemetry-sdk==1.35.0' 'opentelemetry-exporter-otlp-proto-grpc==1.35.0' 'jsonschema==4.23.0' pytest hypothesis
	$(LOW)/bin/pip install --quiet --no-deps --editable .
	touch $@

protobuf-range: $(LOW)/.installed
	$(LOW)/bin/pytest tests/wire tests/plugin tests/telemetry tests/processes/test_answers.py

# Coverage-guided, each decoder for so many seconds; what it finds is kept in out/fuzz.
FUZZ := .venvs/fuzz
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= $(shell $(BIN)/python -c 'from tests.fuzz.targets import TARGETS; print(*TARGETS)')

$(FUZZ)/.installed: pyproject.toml
	$(PY) -m venv $(FUZZ)
	$(FUZZ)/bin/pip install --quiet --editable '.[cli,fuzz]'
	touch $@

fuzz: setup $(FUZZ)/.installed
	@mkdir -p out/fuzz
	@for target in $(FUZZ_TARGETS); do \
		echo "== $$target"; \
		$(FUZZ)/bin/python -m tests.fuzz $$target out/fuzz/$$target -max_total_time=$(FUZZ_SECONDS) -print_final_stats=0 -verbosity=0 || exit 1; \
	done

bench: setup
	$(BIN)/python benchmarks/bench.py

canonical-million: setup
	$(BIN)/python benchmarks/canonical_million.py 1000000

RUNS ?= ../shared/data/agentdojo/banking.sessions.ndjson
CONSEQUENTIAL := send_money update_password update_user_info update_scheduled_transaction schedule_transaction

agentdojo: setup
	$(BIN)/agent-hooks replay $(RUNS) --config examples/agentdojo/host.toml $(CONSEQUENTIAL:%=--tool %)

bench-quick: setup
	$(BIN)/python benchmarks/bench.py --quick

# SLOW is the factor by which a slow machine may miss the promised times, SLOPE the
# bytes by which the host may grow per 1,000 emissions.
SEED ?= 1
SLOW ?= 1

chaos: setup
	$(BIN)/python -m tests.chaos --seed $(SEED) --faults $(or $(N),200) --slow $(SLOW)

soak: setup
	$(BIN)/python benchmarks/soak.py $(or $(N),1000000) $(if $(SLOPE),--max-slope $(SLOPE))

availability: setup
	$(BIN)/python benchmarks/availability.py

ci: lint type buf-check proto-check test chaos cover protobuf-range bench-quick

clean:
	rm -rf $(VENV) .venvs out build dist $(GO_PLUGIN)/egress
