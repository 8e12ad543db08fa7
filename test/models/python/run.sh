#!/bin/sh
set -e
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt >&2
venv/bin/datamodel-codegen --input "$CONTRACT/events" --input-file-type jsonschema --output models \
  --output-model-type pydantic_v2.BaseModel --use-title-as-name --formatters builtin >&2
exec venv/bin/python publish.py
