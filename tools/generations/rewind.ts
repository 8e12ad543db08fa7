/**
 * `commission projection rewind`: takes over indices that were restored from a snapshot, like `adopt`, but reads the
 * events again from past positions only.
 *
 * Documents before a past position were stored before the time of that position. A snapshot copies each index after its
 * start. So its indices have all documents before positions older than the start. The indices do not show the start, so
 * the operator gives it. Documents after the positions may be in some of the indices: projectors compare them, as after
 * a crash. API keys are few, and are read again from the first record.
 */

import type { GenerationBody } from '../../core/log/index.ts'
import { type PastPositions, readPastPositions } from '../../core/store/index.ts'
import type { ClusterContext, KafkaContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { REWIND_MARGIN_MS } from '../limits.ts'
import { type RestartOf, takeOver } from './adopt.ts'
import { positionDocumentsOf } from './generations.ts'

export type RewindOptions = {
  /** When the snapshot began, in milliseconds since 1970: its `start_time`. Of several snapshots the earliest. */
  readonly snapshotStart: number
  readonly json: boolean
}

export const rewind = async (
  { snapshotStart, json }: RewindOptions,
  context: ClusterContext,
  groupId: string,
): Promise<ExitCode> => {
  if (snapshotStart > context.now()) {
    throw new CommandError(`the snapshot began at ${instantOf(snapshotStart)}: expected a time that is over`)
  }
  const taken = await takeOver(restartBefore(snapshotStart, context), context, groupId)
  if (json) {
    const rewound = taken.map(({ generation, positions }) => ({
      generation,
      positions: positions?.map(({ position }) => position) ?? null,
    }))
    context.out(`${JSON.stringify({ rewound })}\n`)
  }
  return exitCodes.done
}

/**
 * Returns the restart before a time.
 * @throws CommandError if no past positions are old enough, a shard was lost, or a shard was restored empty
 */
const restartBefore =
  (snapshotStart: number, context: KafkaContext): RestartOf =>
  async (identity, lost, replaced) => {
    if (lost !== undefined) {
      const what = `the shard ${lost} lost documents of any age: no positions of the past are right for it`
      throw new CommandError(`${what}; to read all again: npx commission projection adopt`)
    }
    await refuseEmptyShards(replaced, context)
    const past = await readPastPositions(identity, snapshotStart - REWIND_MARGIN_MS, context)
    if (past !== undefined) {
      await refuseAboveStored(identity, past, context)
      const count = past.partitions.reduce((sum, { position }) => sum + position, 0)
      return {
        said: `from its positions of ${instantOf(past.time)} on, after ${count} records`,
        time: past.time,
        positions: past.partitions,
      }
    }
    const wanted = `no positions of ${identity.generation} are kept from a minute before ${instantOf(snapshotStart)} or earlier`
    throw new CommandError(`${wanted}; to read it again from the first record: npx commission projection adopt`)
  }

type Recovery = { readonly id: number; readonly type: string; readonly primary: boolean }
type Recoveries = Readonly<Record<string, { readonly shards: readonly Recovery[] } | undefined>>

/**
 * A snapshot that is not whole (`PARTIAL`) lacks shards, which `partial: true` restores empty. So does an index that
 * somebody made anew. Once its node has started again, Elasticsearch does not tell how a shard began.
 * @param replaced indices that are not the recorded ones. Those that a projector made began empty, too
 * @throws CommandError
 */
const refuseEmptyShards = async (replaced: readonly string[], { send }: KafkaContext): Promise<void> => {
  const fields = ['id', 'type', 'primary'].map(field => `*.shards.${field}`)
  const { status, body } = await send<Recoveries>({
    method: 'GET',
    path: `/${replaced.join()}/_recovery`,
    query: { filter_path: fields.join() },
  })
  if (status !== 200) throw new CommandError(`${replaced.join()}: Elasticsearch answers ${status} to _recovery`)
  for (const [index, found] of Object.entries(body)) {
    const empty = found?.shards.find(({ type, primary }) => primary && type === 'EMPTY_STORE')
    if (empty === undefined) continue
    const what = `the shard ${index}/${empty.id} began empty: the snapshot lacks it (its state is PARTIAL), or the index was made anew`
    throw new CommandError(`${what}; to read all again: npx commission projection adopt`)
  }
}

/**
 * Positions go back only by `adopt` and `rewind`. If they went back further than to these, documents before these may
 * be gone: the snapshot began while all was read again, or such a command was interrupted.
 * @throws CommandError
 */
const refuseAboveStored = async (
  identity: GenerationBody,
  { partitions }: PastPositions,
  context: KafkaContext,
): Promise<void> => {
  for (const [partition, { position }] of (await positionDocumentsOf(identity, context)).entries()) {
    const past = partitions[partition]?.position ?? 0
    if (past <= position) continue
    const what = `partition ${partition} of ${identity.generation} is read again from offset ${position} on already`
    throw new CommandError(
      `${what}: documents before ${past} may be gone; to read all again: npx commission projection adopt`,
    )
  }
}

const instantOf = (time: number): string => new Date(time).toISOString()
