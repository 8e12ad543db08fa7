/**
 * The most that Elasticsearch can do: sends recorded bulk requests to fresh indices, in their order, with a fixed
 * number in flight, from a loop that does nothing else. Then refreshes once.
 */
import { Agent, request } from 'node:http'
import { listKinds } from '../../schemas/stored/documents.ts'
import { layoutOf } from '../../schemas/stored/layout.ts'
import { type BenchElasticsearch, firstGeneration } from '../rig/elasticsearch.ts'
import type { Recorded } from './recording-proxy.ts'

/** Recorded requests, whose prefix can be replaced by another one of the same length. */
export type BulkRequests = {
  readonly documents: number
  readonly bytes: number
  /** Makes the requests write to indices of this prefix. */
  readonly setPrefix: (prefix: string) => void
  /** Sends them all. @returns milliseconds, the refresh included */
  readonly send: (
    elasticsearch: BenchElasticsearch,
    prefix: string,
    inFlight: number,
    signal: AbortSignal,
  ) => Promise<number>
}

/** Prepares recorded requests. @param prefix the one that they were recorded with */
export const createBulkRequests = (recorded: readonly Recorded[], prefix: string): BulkRequests => {
  const bodies = recorded.map(({ body }) => ({ body, offsets: offsetsOf(`"_index":"${prefix}-`, body) }))
  return {
    documents: bodies.reduce((sum, { offsets }) => sum + offsets.length, 0),
    bytes: bodies.reduce((sum, { body }) => sum + body.length, 0),
    setPrefix: other => {
      if (other.length !== prefix.length) throw new Error('prefixes must be of one length')
      for (const { body, offsets } of bodies) for (const offset of offsets) body.write(other, offset, 'latin1')
    },
    send: (elasticsearch, other, inFlight, signal) => sendAll(recorded, elasticsearch, other, inFlight, signal),
  }
}

/**
 * Offsets of the prefix after `"_index":"`. Only action lines have this text: within a document the quotes are escaped.
 */
const offsetsOf = (text: string, body: Buffer): number[] => {
  const sought = Buffer.from(text)
  const offsets: number[] = []
  for (let at = body.indexOf(sought); at !== -1; at = body.indexOf(sought, at + sought.length)) {
    offsets.push(at + '"_index":"'.length)
  }
  return offsets
}

const sendAll = async (
  requests: readonly Recorded[],
  elasticsearch: BenchElasticsearch,
  prefix: string,
  inFlight: number,
  signal: AbortSignal,
): Promise<number> => {
  const agent = new Agent({ keepAlive: true, maxSockets: inFlight })
  const began = performance.now()
  let next = 0
  const sendSome = async (): Promise<void> => {
    for (let bulk = requests[next++]; bulk; bulk = requests[next++]) {
      signal.throwIfAborted()
      await sendOne(bulk, elasticsearch.url, agent)
    }
  }
  try {
    await Promise.all(Array.from({ length: inFlight }, sendSome))
    const { index } = layoutOf(prefix, firstGeneration).searchOf(listKinds, undefined)
    await elasticsearch.call('POST', `/${index}/_refresh`)
    return performance.now() - began
  } finally {
    agent.destroy()
  }
}

const sendOne = ({ method, path, headers, body }: Recorded, url: string, agent: Agent): Promise<void> =>
  new Promise((resolve, reject) => {
    const options = { agent, method, headers: { ...headers, 'content-length': body.length } }
    const sent = request(`${url}${path}`, options, answer => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('error', reject)
      answer.on('end', () => {
        const refused = refusalIn(answer.statusCode, Buffer.concat(chunks))
        if (refused === undefined) resolve()
        else reject(refused)
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })

/** By operation, such as `index`. */
type BulkItem = Readonly<Record<string, { readonly error?: { readonly type: string } }>>
type BulkAnswer = { readonly items?: readonly BulkItem[] }

/**
 * A version conflict is no refusal: a later version of the document came first, as it also happens to the projector.
 */
const refusalIn = (status: number | undefined, answer: Buffer): Error | undefined => {
  if (status === 200 && !answer.includes('"error"')) return undefined
  if (status !== 200) return new Error(`Elasticsearch answers ${status} to a recorded bulk request`)
  const { items = [] }: BulkAnswer = JSON.parse(answer.toString())
  const types = new Set(items.flatMap(item => Object.values(item).flatMap(({ error }) => error?.type ?? [])))
  types.delete('version_conflict_engine_exception')
  return types.size === 0 ? undefined : new Error(`Elasticsearch refuses recorded documents: ${[...types].join(', ')}`)
}
