/**
 * What is live: which generation the API reads, what each stream was projected from, where its documents lie, and how
 * far it is. Read from the control index, as the projector left it.
 */
import type { Admin } from 'kafkajs'
import { type Elasticsearch, multiGet } from '../projector/elasticsearch/client.ts'
import { StopError } from '../projector/failures.ts'
import { assertSameSource, describeSource, type Identity } from '../projector/kafka/source.ts'
import { KEY_RULES_VERSION, RULES_VERSION } from '../projector/rules/rules.ts'
import type { IndexKind } from '../projector/rules/state.ts'
import type { Stream } from '../schemas/events.ts'
import {
  API_KEYS_GENERATION,
  apiKeysIndexOf,
  apiKeysParkedIndexOf,
  controlIndexOf,
  type GenerationDocument,
  generationId,
  indexOf,
  LIVE_ID,
  type LiveDocument,
  type PositionDocument,
  positionId,
} from '../schemas/stored/documents.ts'
import { CommandError } from './failures.ts'
import { LOOK_MS } from './limits.ts'

/** One stream of the live projection. */
export type LiveStream = {
  readonly stream: Stream
  readonly identity: Identity
  readonly parkedIndex: string
  readonly indexOf: (place: IndexKind) => string
}
export type Live = Readonly<Record<Stream, LiveStream>>

/** @throws CommandError where nothing was projected under this prefix */
export const readLive = async (send: Elasticsearch['send'], prefix: string): Promise<Live> => {
  const control = controlIndexOf(prefix)
  const bodyOf = async <Document extends { body: unknown }>(id: string): Promise<Document['body']> => {
    const [found] = await multiGet(send, [{ _index: control, _id: id }]).catch((error: unknown) => {
      if (error instanceof StopError && error.code === 'index_missing') return []
      throw error
    })
    if (found?.found) return (found._source as Document).body
    throw new CommandError(
      `nothing is projected under ELASTICSEARCH_INDEX_PREFIX=${prefix}: ${control} has no document "${id}"`,
    )
  }
  const { generation } = await bodyOf<LiveDocument>(LIVE_ID)
  return {
    events: {
      stream: 'events',
      identity: await bodyOf<GenerationDocument>(generationId(generation)),
      parkedIndex: indexOf(prefix, generation, 'parked'),
      indexOf: place => (place === 'api-keys' ? apiKeysIndexOf(prefix) : indexOf(prefix, generation, place)),
    },
    'api-keys': {
      stream: 'api-keys',
      identity: await bodyOf<GenerationDocument>(generationId(API_KEYS_GENERATION)),
      parkedIndex: apiKeysParkedIndexOf(prefix),
      indexOf: place => (place === 'parked' ? apiKeysParkedIndexOf(prefix) : apiKeysIndexOf(prefix)),
    },
  }
}

/** A projection of another topic, cluster or version of the rules would be told something else, or nothing. */
export const assertRightPlace = async (
  { stream, identity }: LiveStream,
  { admin, topics }: { readonly admin: Admin; readonly topics: Readonly<Record<Stream, string>> },
): Promise<void> => {
  assertSameSource(identity, await describeSource(admin, topics[stream]))
  const ours = stream === 'events' ? RULES_VERSION : KEY_RULES_VERSION
  if (identity.rules_version === ours) return
  const detail = `the projection has version ${identity.rules_version}, this program ${ours}`
  throw new StopError('rules_changed', detail)
}

/**
 * What becomes of a record is decided by the live generation: where one of other rules was made live meanwhile, nothing
 * is known of it.
 * @throws CommandError
 */
export const assertStillDecides = async (
  { stream, identity }: LiveStream,
  { send, prefix }: Pick<Waiting, 'send' | 'prefix'>,
): Promise<void> => {
  const { generation, rules_version } = (await readLive(send, prefix))[stream].identity
  if (rules_version === identity.rules_version) return
  const what = `meanwhile ${generation} was made live, under rules version ${rules_version}`
  throw new CommandError(`${what}: look at what became of the records, and run the same again with its program`)
}

export type Waiting = {
  readonly send: Elasticsearch['send']
  readonly prefix: string
  readonly sleep: (milliseconds: number) => Promise<void>
  readonly now: () => number
  /** What to do where the projector does not come so far; the same again, unless told otherwise. */
  readonly advice?: string
}

/**
 * Waits until the projector has published a stream up to these positions.
 * @param wanted next offsets by partition
 * @throws CommandError when it does not
 */
export const untilPublished = async (
  { identity: { generation, topic } }: LiveStream,
  wanted: ReadonlyMap<number, number>,
  waitSeconds: number,
  { send, prefix, sleep, now, advice = AGAIN }: Waiting,
): Promise<void> => {
  const index = controlIndexOf(prefix)
  const docs = [...wanted.keys()].map(partition => ({ _index: index, _id: positionId(generation, partition) }))
  if (docs.length === 0) return
  for (const until = now() + waitSeconds * 1000; ; ) {
    const positions = (await multiGet(send, docs)).map(found => {
      if (found.found) return (found._source as PositionDocument).body.position
      throw new CommandError(`generation ${generation} was dropped meanwhile: run the same again`)
    })
    const behind = [...wanted.values()].reduce((sum, end, place) => sum + Math.max(0, end - (positions[place] ?? 0)), 0)
    if (behind === 0) return
    if (now() > until) {
      const what = `the projector is ${behind} records behind on ${topic} after ${waitSeconds} s`
      throw new CommandError(`${what}: is it running? ${advice}`)
    }
    await sleep(LOOK_MS)
  }
}

const AGAIN = 'Run the same again later: what is there already is not sent twice'
