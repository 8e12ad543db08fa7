#!/bin/sh
# Installs packages for an image, with the given options of npm, and removes what an image does not need.
# --omit=optional would be wrong: the native parts of snappy are optional packages, and are needed. The package of Node is
# optional, too, and is removed: the base image has Node. Types and source maps, half of the rest, are removed.
set -eu
npm ci --omit=dev --ignore-scripts "$@"
rm -rf package-lock.json .npmrc node_modules/.bin node_modules/.package-lock.json node_modules/node-linux-*
find node_modules/swagger-ui-dist -type f ! -name swagger-ui-bundle.js ! -name swagger-ui.css ! -name package.json ! -name 'LICENSE*' ! -name NOTICE -delete
find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete
