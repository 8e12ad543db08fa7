#!/bin/sh
set -e
cd "$(dirname "$0")"
npm install --silent --no-audit --no-fund >&2
npx tsc --strict --module nodenext --target es2022 --types node publish.ts
# kafkajs 2 computes a negative delay for a timer, and Node warns of it. That is harmless.
exec node --disable-warning=TimeoutNegativeWarning publish.js
