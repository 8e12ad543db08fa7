#!/usr/bin/env node
/** The program of the built package: an agent starts it and speaks with it over standard input and output. */
await import('../dist/client/mcp/src/main.js')
