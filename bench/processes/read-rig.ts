/** The rig of read figures: published data, its projection by a real projector, a key of every organization, an API. */

import type { Bench } from '../rig/bench.ts'
import { createDataset, type DatasetOrganization, type DatasetSize } from '../rig/dataset.ts'
import { type RunningApi, startApi } from './api-process.ts'
import { type RunningProjection, startProjection } from './projection.ts'
import { createBenchKey, createTopics, publishDataset, type Topics } from './publish.ts'

export type Served = {
  readonly topics: Topics
  readonly holders: readonly Holder[]
  readonly projection: RunningProjection
  readonly api: RunningApi
  /** Rejects when a process ends unasked. */
  readonly died: Promise<never>
  /** Ends the processes, and removes what they and the bench created. */
  [Symbol.asyncDispose](): Promise<void>
}

type Settings = Readonly<Record<string, string>>

/** An organization and a key that reads it. */
export type Holder = { readonly organization: DatasetOrganization; readonly key: string }

/**
 * Publishes a dataset and waits until it is projected. Projector and API run until they are disposed of.
 * @param settings of the projector
 */
export const serve = async (bench: Bench, size: DatasetSize, settings: Settings = {}): Promise<Served> => {
  await using stack = new AsyncDisposableStack()
  const topics = stack.use(await createTopics(bench))
  const dataset = createDataset(size)
  const { organizations } = dataset
  const keys = organizations.map(({ id }) => createBenchKey(id))
  await topics.publishAll(
    keys.map(({ event }) => event),
    keys.length,
    'publishing API keys',
  )
  await publishDataset(topics, dataset, size.payouts)
  const projection = stack.use(await startProjection(bench, topics, { what: 'projecting', settings }))
  const api = stack.use(await startApi(bench, projection.prefix, bench.elasticsearch.url))

  const died = Promise.race([projection.projector.died, api.process.died])
  died.catch(() => undefined)
  const kept = stack.move()
  return {
    topics,
    holders: organizations.map((organization, index) => ({ organization, key: keys[index]?.text ?? '' })),
    projection,
    api,
    died,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}
