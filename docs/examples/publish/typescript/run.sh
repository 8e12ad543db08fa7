#!/bin/sh
set -e
cd "$(dirname "$0")"
# Built at the first run, and again after a change.
if [ ! -f publish.js ] || [ -n "$(find package.json publish.ts seal.ts -newer publish.js)" ]; then
  npm install --silent --no-audit --no-fund >&2
  npx tsc --strict --noEmitOnError --module nodenext --target es2022 --types node publish.ts
fi
# kafkajs 2 computes a negative delay for a timer, and Node warns of it. That is harmless.
exec node --disable-warning=TimeoutNegativeWarning publish.js
