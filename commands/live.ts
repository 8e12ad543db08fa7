/**
 * What is live: which generation the API reads, what each stream was projected from, and where its documents lie. Read from
 * the control index, as the projector left it.
 */

import { type Elasticsearch, multiGet } from '../projector/elasticsearch.ts'
import { StopError } from '../projector/failures.ts'
import type { Identity } from '../projector/source.ts'
import type { Place } from '../projector/state.ts'
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
} from '../schemas/documents.ts'
import type { Stream } from '../schemas/events.ts'
import { CommandError } from './failures.ts'

/** One stream of the live projection. */
export type LiveStream = {
  readonly stream: Stream
  readonly identity: Identity
  readonly parkedIndex: string
  readonly indexOf: (place: Place) => string
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
    throw new CommandError(`nothing is projected under ELASTICSEARCH_INDEX_PREFIX=${prefix}: ${control} has no ${id}`)
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
