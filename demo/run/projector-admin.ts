/** Reads status and metrics from the projector's admin port, as an operator or a monitor does. */
import { setTimeout as delay } from 'node:timers/promises'

type Partition = {
  readonly topic: string
  readonly partition: number
  readonly searchable_to: number
  readonly end: number
  readonly lag: number
  readonly parked: number
}

/** Longest wait without progress, in milliseconds. */
const PROGRESS_TIMEOUT_MS = 60_000
const POLL_MS = 200

/** Waits until every partition is searchable up to its end, and all together have `published` records. */
export const waitUntilCaughtUp = async (
  admin: string,
  published: number,
  onProgress: (count: number) => void,
  signal: AbortSignal,
): Promise<void> => {
  let reached = -1
  for (let waited = 0; waited < PROGRESS_TIMEOUT_MS; waited += POLL_MS) {
    const partitions = await readPartitions(admin, signal)
    const sum = (field: 'searchable_to' | 'end' | 'lag') => partitions.reduce((total, each) => total + each[field], 0)
    if (partitions.length > 0 && sum('lag') === 0 && sum('end') === published) {
      onProgress(published)
      return
    }
    if (sum('searchable_to') > reached) {
      waited = 0
      reached = sum('searchable_to')
      onProgress(Math.min(reached, published - 1))
    }
    await delay(POLL_MS, undefined, { signal })
  }
  throw new Error(
    `The projector makes no progress: ${reached} of ${published} records are searchable. Ask ${admin}/status`,
  )
}

const readPartitions = async (admin: string, signal: AbortSignal): Promise<readonly Partition[]> => {
  const answer = await fetch(`${admin}/status`, { signal })
  // The status is not known at this moment; read again.
  if (!answer.ok) return []
  const { partitions }: { readonly partitions: readonly Partition[] } = JSON.parse(await answer.text())
  return partitions
}

export type Counts = { readonly applied: number; readonly duplicate: number; readonly parked: number }

/** Outcomes of the records of both topics, from `/metrics`. */
export const readCounts = async (admin: string, signal: AbortSignal): Promise<Counts> => {
  const answer = await fetch(`${admin}/metrics`, { signal })
  const text = await answer.text()
  const count = (outcome: string): number =>
    [...text.matchAll(/^commission_records_total\{([^}]*)\} (\d+)$/gm)]
      .filter(([, labels]) => labels?.split(',').includes(`outcome="${outcome}"`))
      .reduce((total, [, , value]) => total + Number(value), 0)
  return { applied: count('applied'), duplicate: count('duplicate'), parked: count('parked') }
}
