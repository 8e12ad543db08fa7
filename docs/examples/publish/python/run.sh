#!/bin/sh
set -e
cd "$(dirname "$0")"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt >&2
exec venv/bin/python publish.py
