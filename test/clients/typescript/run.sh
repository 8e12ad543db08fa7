#!/bin/sh
set -e
npm install --no-audit --no-fund --silent --install-links=false >&2
npx --no-install openapi-typescript openapi.json -o api.d.ts >&2
npx --no-install tsc --strict --target es2023 --module nodenext --skipLibCheck read.ts >&2
exec node read.js
