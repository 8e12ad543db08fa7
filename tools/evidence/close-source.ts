/**
 * The logs that a close is made of. In: the control index, at the beginning and at the end. Out: an error if another
 * projection was made live meanwhile: a file could have records of one topic, and another file those of the next.
 */
import { multiGet, type Send } from '../../core/store/index.ts'
import { type PositionDocument, positionId } from '../../schemas/stored/documents.ts'
import { controlAddress } from '../../schemas/stored/layout.ts'
import { CommandError } from '../failures.ts'
import type { Live, LiveStream } from '../live.ts'

const fields = ['cluster_id', 'topic', 'topic_id', 'partitions', 'rules_version'] as const

/** @throws CommandError that names the first field that differs */
export const assertSameProjection = (before: Live, after: Live): void => {
  for (const stream of ['events', 'api-keys'] as const) {
    const [was, is] = [before[stream].identity, after[stream].identity]
    const field = fields.find(name => was[name] !== is[name])
    if (field === undefined) continue
    const what = `${field} of ${stream} was ${was[field]}, and is ${is[field]}`
    throw new CommandError(`another projection was made live meanwhile: ${what}: close again. Nothing is written`)
  }
}

/** Everything before this offset of a topic with one partition is projected. */
export const publishedEndOf = async ({ identity }: LiveStream, send: Send, prefix: string): Promise<number> => {
  const [found] = await multiGet<PositionDocument>(send, [controlAddress(prefix, positionId(identity.generation, 0))])
  return found?.found ? found._source.body.position : 0
}
