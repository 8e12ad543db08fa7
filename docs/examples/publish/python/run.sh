#!/bin/sh
set -e
cd "$(dirname "$0")"
# Installed at the first run, and again after a change.
if [ ! -f venv/installed ] || [ -n "$(find requirements.txt -newer venv/installed)" ]; then
  python3 -m venv venv
  venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt >&2
  touch venv/installed
fi
exec venv/bin/python publish.py
