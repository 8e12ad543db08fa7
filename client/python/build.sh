#!/bin/sh
# Makes the models of the API from contract/openapi.json, and builds a wheel in dist/.
set -e
cd "$(dirname "$0")"
python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt >&2
.venv/bin/openapi-python-client generate --path ../../contract/openapi.json \
  --output-path src/commission_client/generated --meta none --overwrite >&2
.venv/bin/python -m build --wheel --no-isolation --outdir dist . >&2
ls dist/*.whl
