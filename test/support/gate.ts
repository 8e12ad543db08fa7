/**
 * An HTTP gate before Elasticsearch. It holds each multi-get until the test passes it on, or answers in place of
 * Elasticsearch. Everything else goes through at once.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen, stop } from '../../api/http/server.ts'
import type { Scope } from './scope.ts'

export type HeldMultiGet = {
  /** How many documents it asks for. */
  readonly documents: number
  /** Lets it go to Elasticsearch; `change` may spoil the answer. */
  readonly pass: (change?: (answer: string) => string) => Promise<void>
  /** Answers in place of Elasticsearch. */
  readonly answer: (status: number, body: string) => void
}

export type Gate = {
  readonly url: string
  /** The multi-gets that wait, oldest first. Whoever takes one answers it. */
  readonly held: HeldMultiGet[]
  /** How many multi-gets have come. */
  readonly count: () => number
  /** From now on multi-gets are held, or are not. */
  readonly hold: (holds: boolean) => void
}

export const startGate = async (scope: Scope, elasticsearch: string): Promise<Gate> => {
  const held: HeldMultiGet[] = []
  let holds = false
  let count = 0

  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const body = await textOf(req)
    const send = (status: number, text: string): void => {
      const headers = { 'content-type': 'application/json', 'x-elastic-product': 'Elasticsearch' }
      // Who asked may have gone.
      if (!res.destroyed) res.writeHead(status, headers).end(text)
    }
    const pass: HeldMultiGet['pass'] = async (change = answer => answer) => {
      const headers = { 'content-type': 'application/json' }
      const method = req.method ?? 'GET'
      const answer = await fetch(`${elasticsearch}${req.url}`, { method, headers, ...(body !== '' && { body }) })
      send(answer.status, change(await answer.text()))
    }
    if (!req.url?.startsWith('/_mget')) return pass()
    count++
    if (!holds) return pass()
    held.push({ documents: JSON.parse(body).docs.length, pass, answer: send })
  }

  const server = createServer((req, res) => void serve(req, res).catch(() => res.destroy()))
  const port = await listen(server, '127.0.0.1', 0)
  scope.onTestFinished(() => stop(server, 0))
  return {
    url: `http://127.0.0.1:${port}`,
    held,
    count: () => count,
    hold: value => {
      holds = value
    },
  }
}

const textOf = async (req: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
