#!/bin/sh
set -e
npm install --no-audit --no-fund --silent --install-links=false >&2
npx --no-install json2ts --input "$CONTRACT/events/" --output models --additionalProperties=false >&2
npx --no-install tsc --strict --target es2023 --module nodenext --skipLibCheck false publish.ts >&2
exec node publish.js
