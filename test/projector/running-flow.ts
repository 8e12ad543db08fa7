/** A flow of one partition whose stages the test can hold. Records the calls of each stage. */
import { type DecisionSteps, PartitionLedger } from '../../core/ledger/decide/decide-batch.ts'
import { type Batch, decode, type RawRecord } from '../../core/ledger/event/decode.ts'
import { builtInRules } from '../../core/ledger/rules/rules.ts'
import type { DocumentChange, DocumentKey } from '../../core/ledger/rules/state.ts'
import { NO_HEADERS } from '../../core/log/kafka/encoded-headers.ts'
import { type FlowParts, PartitionFlow, shareOf } from '../../core/projection/flow/flow.ts'
import type { PublishedState } from '../../core/store/positions/publish.ts'
import { listKinds } from '../../schemas/stored/documents.ts'
import { Documents, TOPIC } from './given.ts'
import { everythingRuns, Held } from './held.ts'
import { type Event, eventRecord } from './records.ts'
import { rep } from './story.ts'

/** Events from an offset on, as one batch. `end` may be beyond the last record. */
export const batchOf = (from: number, events: readonly Event[], end = from + events.length): Batch => ({
  from,
  end,
  records: events.map((event, at) => eventRecord(event, from + at, 1_000 + from + at)),
})

/** A reading of clocks that agree. */
export const both = (time: number) => ({ reached: time, latest: time })

/** Tells a flow of the end of its partition, with a reading of the clocks. */
export const lookAt = (
  flow: PartitionFlow,
  end: number,
  clocks: ReturnType<typeof both>,
  { logEnd = end, publishedUntil = flow.progress.publishedUntil } = {},
): void => {
  flow.sawEnd(end)
  flow.sawClocks(clocks, { end, logEnd, publishedUntil })
}

export const repsOf = (from: number, count: number): Batch =>
  batchOf(
    from,
    Array.from({ length: count }, (_, at) => rep({ id: `rep_${from + at}` })),
  )

/** A batch with one record of the given size, as the flow counts bytes. Its content does not matter. */
export const heavyBatch = (from: number, bytes: number): Batch => {
  const key = Buffer.from('org_1')
  const record: RawRecord = { offset: from, timestamp: 0, key, value: Buffer.alloc(bytes - 106), headers: NO_HEADERS }
  return { from, end: from + 1, records: [record] }
}

export const startFlow = ({ position = 0, partitions = 1, elapsed = (): number => 0 } = {}) => {
  const documents = new Documents()
  /** The calls of the stages, in order, without reads. */
  const story: string[] = []
  const reads = new Held<readonly DocumentKey[]>()
  const writes = new Held<readonly DocumentChange[]>()
  const refreshes = new Held<{ indices: readonly string[]; delay: number }>()
  const advances = new Held<Partial<PublishedState>>()
  const failures: unknown[] = []
  const pressure: boolean[] = []
  /** The delay of each call of `refresh`, also of those that refresh nothing. */
  const delays: number[] = []
  let current: PublishedState = { position, last: null, at: 0, time: 0, serve_from: 0 }
  let advanced: Promise<void> = Promise.resolve()
  /** Which stages are held. The others complete at once. */
  const holds = { reads: false, writes: false, refreshes: false, advances: false }

  /** How many documents an answer holds. */
  const answers = { most: Number.POSITIVE_INFINITY }
  const share = shareOf(partitions)
  const steps: { -readonly [Name in keyof DecisionSteps]: DecisionSteps[Name] } = {
    source: { stream: 'events', topic: TOPIC, partition: 0, partitions: 1 },
    decode,
    rules: builtInRules,
  }
  const ledger = new PartitionLedger({
    steps,
    read: async keys => {
      if (holds.reads) await reads.call(keys)
      return documents.read(keys.slice(0, answers.most))
    },
    from: position,
    share,
  })
  const publish = (further: Partial<PublishedState>, isAhead = false): Promise<void> => {
    if (isAhead) {
      story.push(`take back to ${further.time}`)
      current = { ...current, ...further }
      return Promise.resolve()
    }
    if (further.position !== undefined) story.push(`publish ${further.position}`)
    if (further.time !== undefined) story.push(`time ${further.time}`)
    advanced = advanced
      .catch(() => undefined)
      .then(async () => {
        if (holds.advances) await advances.call(further)
        current = { ...current, ...further, time: Math.max(current.time, further.time ?? 0) }
      })
    return advanced
  }
  const store: FlowParts['store'] = {
    packBatch: changes => async () => {
      const offsets = changes.map(({ version }) => version)
      story.push(`write ${Math.min(...offsets)}-${Math.max(...offsets)}`)
      if (holds.writes) await writes.call(changes)
      documents.write(changes)
    },
    refresh: async (kinds, delay) => {
      delays.push(delay)
      const indices = listKinds.filter(kind => kinds.has(kind))
      if (indices.length === 0) return
      story.push(`refresh ${indices.join()}${delay > 0 ? ` after ${delay}` : ''}`)
      if (holds.refreshes) await refreshes.call({ indices, delay })
    },
    published: {
      current: () => current,
      advance: publish,
      advanceTime: (time, isAhead) => publish({ time }, isAhead),
      readAgain: async () => undefined,
    },
  }
  const stream: FlowParts['stream'] = {
    commit: async position => void story.push(`commit ${position}`),
    onPressure: full => void pressure.push(full),
    onDecided: () => undefined,
    onPublished: () => undefined,
    onRecordsBehind: milliseconds => void story.push(`records behind ${milliseconds}`),
    fail: error => void failures.push(error),
  }
  const parts = { ledger, store, stream }
  const limits = { budget: async () => () => undefined, elapsed, share }
  const flow = new PartitionFlow(parts, limits)

  return {
    flow,
    steps,
    answers,
    parts,
    limits,
    documents,
    story,
    reads,
    writes,
    refreshes,
    advances,
    failures,
    pressure,
    delays,
    published: () => current,
    hold: (...names: (keyof typeof holds)[]) => {
      for (const name of names) holds[name] = true
    },
    release: (...names: (keyof typeof holds)[]) => {
      for (const name of names) holds[name] = false
    },
    take: async (batch: Batch): Promise<'taken' | 'gap'> => {
      const answer = flow.take(batch)
      await everythingRuns()
      return answer
    },
  }
}
