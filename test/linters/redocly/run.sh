#!/bin/sh
set -e
npm install --no-audit --no-fund --silent --ignore-scripts --install-links=false >&2
# Otherwise it reports its use, and asks for its newest version.
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
# It ends with 1 if it finds something.
npx --no-install redocly lint --extends=recommended --format=json document.json || [ $? -eq 1 ]
