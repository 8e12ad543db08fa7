/** The control and parked documents of two generations, which a test changes. Only waiting moves the clock. */
import { expect } from 'vitest'
import { primariesAnswer, sending } from '../../support/answering.ts'
import { answerIds, recordedIds } from '../../support/shard-answers.ts'

type Given = {
  readonly live?: object
  /** Of g2: the generation that it follows. */
  readonly follows?: string
  /** Of g2: the cluster of its topic. */
  readonly cluster?: string
  /** Of g1: the ends of the redacted log. */
  readonly redactedTo?: readonly number[]
  /** Whether the log of g2 was redacted there, too. */
  readonly ofBoth?: boolean
  /** Of both: further fields of their documents. */
  readonly both?: object
  readonly positions: Readonly<Record<'g1' | 'g2', readonly number[]>>
  /** After a restore: the positions from which each generation is served. */
  readonly servedFrom?: Readonly<Partial<Record<'g1' | 'g2', readonly number[]>>>
  /** Ids of the records that each generation has parked. */
  readonly parked?: Readonly<Record<'g1' | 'g2', readonly string[]>>
  /** Shards whose ids Elasticsearch does not tell. Ids are recorded if this is given. */
  readonly hidden?: readonly string[]
  /** Shards that have another id than the recorded one. Ids are recorded if this is given. */
  readonly lost?: readonly string[]
}

export const given = ({
  live = {},
  follows,
  cluster = 'c',
  redactedTo,
  ofBoth = false,
  both = {},
  positions,
  servedFrom = {},
  parked = { g1: [], g2: [] },
  hidden,
  lost,
}: Given) => {
  const state = { seqNo: 1, live: { generation: 'g1', kept: ['g1', 'g2'], ...live } as Record<string, unknown> }
  const reached = { g1: [...positions.g1], g2: [...positions.g2] }
  let time = 0
  /** Called on each wait of a command, with the milliseconds since it began. */
  const world = { onWait: (_: number): void => undefined }
  const sourceOf = (index: string, id: string): object | undefined => {
    const [kind, name = 'g1', partition] = id.split(':')
    const generation = name === 'g2' ? 'g2' : 'g1'
    if (index.endsWith('-parked')) {
      return parked[index.includes('-g2-') ? 'g2' : 'g1'].includes(id) ? { code: 'id_reused' } : undefined
    }
    if (kind === 'live') return { kind, body: state.live }
    if (kind === 'position') {
      const [at, serve_from = 0] = [reached, servedFrom].map(all => all[generation]?.[Number(partition)])
      return { kind, body: { position: at, serve_from } }
    }
    const rules_version = generation === 'g2' && follows !== undefined ? 2 : 1
    const followed = generation === 'g2' && follows !== undefined ? { follows } : {}
    const cluster_id = generation === 'g2' ? cluster : 'c'
    const ids = (hidden ?? lost) === undefined ? {} : recordedIds([`p-${generation}-parked`])
    const redacted = (generation === 'g1' || ofBoth) && redactedTo !== undefined ? { redacted_to: redactedTo } : {}
    return {
      kind,
      body: {
        generation,
        topic: 't',
        cluster_id,
        partitions: 2,
        rules_version,
        ...followed,
        ...redacted,
        ...ids,
        ...both,
      },
    }
  }
  const send = sending(async request => {
    const { method, path, body, query } = request
    const ids = answerIds(path, ['p-control', 'p-g1-parked', 'p-g2-parked'], hidden, lost)
    if (ids !== undefined) return ids
    const [, index = '', operation, id = ''] = path.split('/').map(decodeURIComponent)
    if (index === '_bulk') return primariesAnswer(request, sourceOf)
    if (index === '_mget') {
      const { docs } = body as { docs: { _index: string; _id: string }[] }
      const found = docs.map(({ _index, _id }) => {
        const _source = sourceOf(_index, _id)
        return { _id, found: _source !== undefined, _source }
      })
      return { status: 200, body: { docs: found } }
    }
    if (operation === '_refresh') return { status: 200, body: { _shards: { failed: 0 } } }
    if (operation === '_search') {
      const ids = parked[index.includes('-g2-') ? 'g2' : 'g1']
      const { should } = (body as { query: { bool: { should: Ranges } } }).query.bool
      const hits = ids.filter(of => {
        const [, partition, offset] = of.split(':').map(Number)
        const range = should[partition ?? 0]?.bool.filter[1].range.offset
        return range !== undefined && (offset ?? 0) >= range.gte
      })
      return {
        status: 200,
        body: {
          timed_out: false,
          _shards: { failed: 0 },
          hits: { hits: hits.map(_id => ({ _id, sort: _id.split(':').slice(1).map(Number) })) },
        },
      }
    }
    if (method === 'GET') {
      return { status: 200, body: { _source: sourceOf(index, id), _seq_no: state.seqNo, _primary_term: 1 } }
    }
    if (query?.if_seq_no !== state.seqNo) return { status: 409, body: {} }
    state.seqNo++
    state.live = (body as { body: Record<string, unknown> }).body
    return { status: 200, body: {} }
  })
  const said: string[] = []
  const context = {
    send,
    prefix: 'p',
    out: () => undefined,
    say: (line: string) => void said.push(line),
    sleep: async (milliseconds: number) => {
      time += milliseconds
      world.onWait(time)
    },
    // The time of day ends no wait: somebody may set the clock meanwhile.
    now: () => expect.unreachable('the time of day'),
    elapsed: () => time,
  }
  return { state, reached, world, said, time: () => time, context }
}
type Ranges = { bool: { filter: [object, { range: { offset: { gte: number } } }] } }[]
