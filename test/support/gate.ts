/** An HTTP proxy for Elasticsearch that holds each multi-get until the test passes it on or answers it. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen, stop } from '../../api/http/server.ts'
import type { Scope } from './scope.ts'

export type HeldMultiGet = {
  readonly documents: number
  /** Sends it to Elasticsearch. `change` may modify the answer. */
  readonly pass: (change?: (answer: string) => string) => Promise<void>
  /** Answers in place of Elasticsearch. */
  readonly answer: (status: number, body: string) => void
}

export type Gate = {
  readonly url: string
  /** The held multi-gets, oldest first. A test that takes one must answer it. */
  readonly held: HeldMultiGet[]
  readonly count: () => number
  /** @param concerns of which index one document of a held multi-get must be; by default of any */
  readonly hold: (holds: boolean, concerns?: (index: string) => boolean) => void
}

export const startGate = async (scope: Scope, elasticsearch: string): Promise<Gate> => {
  const held: HeldMultiGet[] = []
  let holds = false
  let concerned = (_index: string): boolean => true
  let count = 0

  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const body = await textOf(req)
    const send = (status: number, text: string): void => {
      const headers = { 'content-type': 'application/json', 'x-elastic-product': 'Elasticsearch' }
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
    const { docs }: { docs: { _index: string }[] } = JSON.parse(body)
    if (!holds || !docs.some(({ _index }) => concerned(_index))) return pass()
    held.push({ documents: docs.length, pass, answer: send })
  }

  const server = createServer((req, res) => void serve(req, res).catch(() => res.destroy()))
  const port = await listen(server, '127.0.0.1', 0)
  scope.onTestFinished(() => stop(server, 0))
  return {
    url: `http://127.0.0.1:${port}`,
    held,
    count: () => count,
    hold: (value, concerns = () => true) => {
      holds = value
      concerned = concerns
    },
  }
}

const textOf = async (req: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
