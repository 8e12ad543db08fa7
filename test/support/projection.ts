/** A projection for a test: topics and indices of its own, and a projector that has published the first records. */
import type { Outgoing } from './events.ts'
import { type Projector, startProjector, untilCaughtUp } from './processes.ts'
import type { Scope } from './scope.ts'
import { createPrefix } from './stored.ts'
import { createTopics, type Topics } from './topics.ts'

export type Projection = { readonly topics: Topics; readonly prefix: string; readonly projector: Projector }

type Options = {
  readonly partitions?: number
  /** Addresses of own servers. By default, the servers of the whole run. */
  readonly kafka?: string
  readonly elasticsearch?: string
  readonly settings?: Readonly<Record<string, string>>
  /** Settings of the topics. */
  readonly configuration?: Readonly<Record<string, string>>
}

export const startProjection = async (
  scope: Scope,
  records: readonly Outgoing[],
  { elasticsearch, settings = {}, ...options }: Options = {},
): Promise<Projection> => {
  const topics = await createTopics(scope, options)
  const prefix = createPrefix(scope, elasticsearch)
  const projector = await startProjector(scope, { topics, prefix, settings })
  await topics.publish(records)
  await untilCaughtUp(projector)
  return { topics, prefix, projector }
}
