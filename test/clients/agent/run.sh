#!/bin/sh
set -e
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt >&2
exec venv/bin/python read.py
