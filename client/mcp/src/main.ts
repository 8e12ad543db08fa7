/**
 * The program: a server of the Model Context Protocol over standard input and output. Standard output has the protocol
 * and nothing else. It ends when standard input ends.
 */
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { createClient } from '../../src/index.ts'
import { createAgentServer } from './server.ts'
import { AgentSettingsError, readAgentSettings } from './settings.ts'

/** Of one request with its retries: less than that of a call, so that an agent reads the last refusal. */
const TIMEOUT_MS = 20_000

/** The kind of the error and its places in the code. Its message may quote a record. */
const sayDefect = (error: unknown): void => {
  const frames = error instanceof Error ? (error.stack ?? '').match(/^ {4}at .*$/gm) : null
  console.error(['commission-mcp: an internal defect', ...(frames ?? [])].join('\n'))
}

const start = (): void => {
  const { baseUrl, key } = readAgentSettings(process.env)
  const ending = new AbortController()
  const client = createClient({ baseUrl, key, timeoutMs: TIMEOUT_MS, signal: ending.signal })
  // Without this, a request that waits for the API would keep the process.
  process.stdin.once('end', () => ending.abort())
  // A message could have a part of the input.
  serveStdio(() => createAgentServer(client, key, { onDefect: sayDefect }), {
    onerror: ({ name }) => console.error(`commission-mcp: ${name}`),
  })
}

try {
  start()
} catch (error) {
  if (!(error instanceof AgentSettingsError)) throw error
  console.error(error.message)
  process.exitCode = 1
}
