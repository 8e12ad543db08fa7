#!/usr/bin/env -S node --disable-warning=TimeoutNegativeWarning --max-semi-space-size=16
/** The command `commission`. Runs on the Node of this project, also if the shell finds an older one. */
import { spawn } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

/** The project is written for it. Node 22 and 23 read TypeScript, too, but not all of this. */
const NODE_MAJOR = 24

if (Number.parseInt(process.versions.node, 10) >= NODE_MAJOR) {
  // Compiled code of earlier runs: a quarter of the time. Not in a folder that others may write: they could put code there.
  module.enableCompileCache(
    process.env.NODE_COMPILE_CACHE ?? fileURLToPath(new URL('../../node_modules/.cache/commission', import.meta.url)),
  )
  await import('../main.ts')
} else {
  const node = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url))
  if (!existsSync(node) || realpathSync(node) === process.execPath) {
    process.stderr.write(
      `commission needs Node ${NODE_MAJOR}, got ${process.version}: npm ci in the project installs it\n`,
    )
    process.exit(1)
  }
  const child = spawn(node, [...process.execArgv, fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: 'inherit',
  })
  // The terminal sends Ctrl-C to both; this process waits for the other one.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => signal !== 'SIGINT' && child.kill(signal))
  child.on('close', (code, signal) => {
    if (signal === null) process.exit(code ?? 1)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}
