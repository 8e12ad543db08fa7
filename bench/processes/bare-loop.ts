/**
 * The least that freshness can cost: a loop that writes the documents of a constant rate of events and makes them
 * searchable, one bulk request and one refresh a step, and does nothing else. The documents are those of a projection,
 * recorded before.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { listKinds } from '../../schemas/stored/documents.ts'
import { layoutOf } from '../../schemas/stored/layout.ts'
import { type BenchElasticsearch, firstGeneration } from '../rig/elasticsearch.ts'
import type { Recorded } from './recording-proxy.ts'

/** Documents of a projection: lines of bulk requests, in their order, and the number of events that they are of. */
export type RecordedDocuments = {
  readonly prefix: string
  readonly lines: readonly string[]
  readonly events: number
}

/**
 * Positions are not documents of events: only requests to the lists are taken. Requests may have overtaken each other,
 * so the lines are in the order of their versions: Elasticsearch refuses an earlier version after a later one.
 */
export const recordedDocuments = (recorded: readonly Recorded[], prefix: string, events: number): RecordedDocuments => {
  const lines: string[] = []
  for (const { body } of recorded) {
    const all = body.toString('utf8').split('\n')
    for (let at = 0; at + 1 < all.length; at += 2) lines.push(`${all[at]}\n${all[at + 1]}\n`)
  }
  const versionOf = (line: string): number => Number(/"version":(\d+)/.exec(line)?.[1])
  return { prefix, lines: lines.toSorted((a, b) => versionOf(a) - versionOf(b)), events }
}

/**
 * @param rate `stepsPerSecond`: fewer if there are fewer events
 * @returns milliseconds of each step, bulk and refresh together
 */
export const runBareLoop = async (
  documents: RecordedDocuments,
  { elasticsearch, signal }: { readonly elasticsearch: BenchElasticsearch; readonly signal: AbortSignal },
  prefix: string,
  rate: { readonly eventsPerSecond: number; readonly stepsPerSecond: number },
  seconds: number,
  from = 0,
): Promise<{ readonly times: readonly number[]; readonly next: number }> => {
  const { eventsPerSecond } = rate
  const steps = Math.min(rate.stepsPerSecond, eventsPerSecond)
  const perStep = (documents.lines.length / documents.events) * (eventsPerSecond / steps)
  const { index: searched } = layoutOf(prefix, firstGeneration).searchOf(listKinds, undefined)
  const times: number[] = []
  const began = performance.now()
  let next = from
  for (let step = 0; step < steps * seconds; step++) {
    await sleep(Math.max(0, began + (1000 * step) / steps - performance.now()), undefined, { signal })
    const lines = documents.lines.slice(next, Math.round(from + (step + 1) * perStep))
    if (lines.length === 0) throw new Error('the bare loop has no documents left: record more')
    next += lines.length
    const bulk = lines.map(line => line.replace(`"_index":"${documents.prefix}-`, `"_index":"${prefix}-`)).join('')
    const asked = performance.now()
    await elasticsearch.bulk(bulk)
    await elasticsearch.call('POST', `/${searched}/_refresh`)
    times.push(performance.now() - asked)
  }
  return { times, next }
}
