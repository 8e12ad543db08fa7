/** The options of the stream of events of a generation, for the projector, a rebuild and a replay. */
import { apiKeysIndexOf, controlIndexOf, indexOf, listKinds } from '../../schemas/stored/documents.ts'
import type { GenerationBody } from '../log/index.ts'
import type { StreamOptions } from './stream/stream.ts'

/** Returns the stream options of a generation of commission events. */
export const eventsOptions = (identity: GenerationBody, groupId: string, prefix: string): StreamOptions => {
  const { generation } = identity
  return {
    stream: 'events',
    identity,
    groupId: `${groupId}-${generation}`,
    prefix,
    controlIndex: controlIndexOf(prefix),
    indexOf: kind => (kind === 'api-keys' ? apiKeysIndexOf(prefix) : indexOf(prefix, generation, kind)),
    searchedIndices: kinds =>
      [...kinds].flatMap(kind =>
        searchedKinds.has(kind) && kind !== 'api-keys' ? [indexOf(prefix, generation, kind)] : [],
      ),
  }
}
const searchedKinds: ReadonlySet<string> = new Set(listKinds)
