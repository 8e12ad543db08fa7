/** The options of the stream of events of a generation, for the projector, a rebuild and a replay. */
import { controlIndexOf } from '../../schemas/stored/documents.ts'
import { layoutOf } from '../../schemas/stored/layout.ts'
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
    layout: layoutOf(prefix, identity),
  }
}
