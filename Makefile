# Every target creates the virtual environment it needs.
.DEFAULT_GOAL := help
PY ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROTOC := .venvs/protoc
STAMP := $(VENV)/.installed

.PHONY: help setup demo test fmt lint type proto proto-check buf-check ctk bench canonical-million agentdojo protobuf-range go ci clean

help:
	@echo "make demo    run the demonstration: two plugins, real processes"
	@echo "make test    run the tests"
	@echo "make ci      everything that has to be green"
	@echo "also: setup fmt lint type proto proto-check buf-check ctk bench canonical-million agentdojo protobuf-range go clean"

$(STAMP): pyproject.toml
	$(PY) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[otlp,cli,plugins]' buf-bin hypothesis mypy pytest pytest-cov ruff types-grpcio types-jsonschema types-protobuf
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

clean:
	rm -rf $(VENV) .venvs out build dist
