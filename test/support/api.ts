/** Starts an API on a free port of this process, against a real Elasticsearch, and asks it. */
import { randomUUID } from 'node:crypto'
import { Client } from '@elastic/elasticsearch'
import { pino } from 'pino'
import { createApi } from '../../api/app.ts'
import { clientOptions } from '../../api/client-options.ts'
import { createElasticsearch, type Elasticsearch, type Transport } from '../../api/elasticsearch.ts'
import type { Rate } from '../../api/limit-rate.ts'
import { createLog } from '../../api/log.ts'
import { createApiServer, listen, stop } from '../../api/server.ts'

export type Answer = { status: number; headers: Headers; text: string; json: unknown }
export type RunningApi = Awaited<ReturnType<typeof startApi>>

type Options = {
  rate?: Rate
  /** Stands between the API and Elasticsearch: to count, to delay, to spoil. */
  between?: (elasticsearch: Elasticsearch) => Elasticsearch
  now?: () => number
}

/** @param url of Elasticsearch */
export const startApi = async (url: string, prefix: string, options: Options = {}) => {
  const client = new Client(clientOptions([url], undefined, undefined))
  const now = options.now ?? (() => performance.now())
  const logged: string[] = []
  const elasticsearch = createElasticsearch({
    transport: client.transport.request.bind(client.transport) as Transport,
    answered: () => undefined,
    otherNodes: 0,
    observe: () => undefined,
    now,
  })
  const newRequestId = () => randomUUID()
  const api = createApi({
    elasticsearch: options.between ? options.between(elasticsearch) : elasticsearch,
    prefix,
    rate: options.rate ?? { requests: 1_000_000, windowSeconds: 60 },
    log: createLog(pino({ level: 'debug', base: null }, { write: (line: string) => void logged.push(line) })),
    observe: () => undefined,
    rateLimited: () => undefined,
    now,
    newRequestId,
  })
  const server = createApiServer({ listener: api.listener, newRequestId, refused: () => undefined })
  const port = await listen(server, '127.0.0.1', 0)

  /** Asks for a path under /api/v1, or for any other that begins with `//`. */
  const ask = async (
    path: string,
    key?: string,
    more: { method?: string; headers?: Record<string, string> } = {},
  ): Promise<Answer> => {
    const target = path.startsWith('//') ? path.slice(1) : `/api/v1${path}`
    const headers = { ...(key === undefined ? {} : { authorization: `Bearer ${key}` }), ...more.headers }
    const answer = await fetch(`http://127.0.0.1:${port}${target}`, { method: more.method ?? 'GET', headers })
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, text, json: text === '' ? undefined : JSON.parse(text) }
  }

  const end = async () => {
    await stop(server, 0)
    await client.close()
  }
  return { port, ask, notReady: api.notReady, logged, end }
}
