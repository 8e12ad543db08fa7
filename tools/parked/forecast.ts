/**
 * Predicts the outcome of publishing a parked record again now. The projector's own rules decide it on the stored
 * documents and on the records that were predicted before it. Read-only.
 */

import {
  Cache,
  type DocumentKey,
  type DocumentRef,
  type PartitionSource,
  type ReadDocuments,
  refOf,
  type State,
  type ValidEvent,
  versionsBefore,
} from '../../core/ledger/index.ts'
import { firstKeyRulesUntil } from '../../core/store/index.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { type HeadBody, recordId, versionId } from '../../schemas/stored/documents.ts'
import type { LiveStream } from '../live.ts'
import { AFTER_ALL_OFFSETS, decideRecord, type Outcome } from './decide-record.ts'
import type { Parked } from './find.ts'

/** `older`: would be applied, and would replace a newer rep or period by an older one. */
export type Forecast = Outcome | { readonly outcome: 'older' }

export type Forecaster = {
  /**
   * Predicts the outcome behind all existing records. Later predictions see the record only if it is sent.
   * @param isSent whether the record is sent if it has this outcome
   */
  readonly next: (parked: Parked, isSent: (forecast: Forecast) => boolean) => Promise<Forecast>
  /** Returns the outcome of a record that was sent, at the offset where it is now. */
  readonly at: (parked: Parked, offset: number) => Promise<Outcome>
  /** Drops the predictions: the sent records are now stored and read from there. */
  readonly forget: () => void
}

/** The versions of a rep or period that a record is added to, in the state that has them. */
type Replacing = {
  readonly event: ValidEvent
  readonly head: DocumentRef
  readonly parked: Parked
  readonly versions: HeadBody['versions']
  readonly state: State
}

/** Records are given in the order in which they were published. */
export const createForecaster = (stream: LiveStream, read: ReadDocuments): Forecaster => {
  let cache = new Cache({ fromFirstRecord: false })
  let seq = AFTER_ALL_OFFSETS
  /** The offset of the last version of a rep or period that this run has sent. */
  const ownVersions = new Map<DocumentKey, number>()

  /**
   * Whether the rep or period that the record replaces is newer: by position or, if the record was in another
   * partition, by time. One that this run has sent is not. One that an earlier run has sent may be: nothing that is
   * stored tells it from a record of the publisher with the same content.
   */
  const isOlder = ({ event, head, parked, versions, state }: Replacing): boolean => {
    const current = versions.at(-1)
    if (current === undefined || current.seq >= AFTER_ALL_OFFSETS) return false
    if (current.seq === ownVersions.get(head.key)) return false
    const { partition, offset, at } = parked.fields
    if (targetPartition(stream, parked) === partition) return current.seq > offset
    const { org_id, id } = event.data
    return (state.version(refOf(head.kind, versionId(org_id, id, current.seq)))?.at ?? 0) >= at
  }

  const decideAt = async (parked: Parked, offset: number, known: Cache) => {
    const { outcome, documents, assessed, state } = await decideRecord(
      { ...parked.record, offset },
      targetSource(stream, parked),
      known,
      read,
    )
    const [item] = assessed
    const event = outcome.outcome === 'parked' || item?.rules === undefined ? undefined : item.verdict
    const head = event && headOf(event)
    const replacing = head && { event, head, parked, versions: versionsBefore(state.head(head), offset), state }
    return { outcome, documents, replacing }
  }

  return {
    next: async (parked, isSent) => {
      const { outcome, documents, replacing } = await decideAt(parked, seq++, cache)
      if (outcome.outcome !== 'applied') return outcome
      const forecast = replacing && isOlder(replacing) ? { outcome: 'older' as const } : outcome
      if (isSent(forecast)) cache.addDecided(documents)
      return forecast
    },
    at: async (parked, offset) => {
      const { outcome, replacing } = await decideAt(parked, offset, new Cache({ fromFirstRecord: false }))
      if (outcome.outcome === 'applied' && replacing) ownVersions.set(replacing.head.key, offset)
      return outcome
    },
    forget: () => {
      cache = new Cache({ fromFirstRecord: false })
    },
  }
}

/** Where the record would be, if it was published again. */
export const targetSource = (stream: LiveStream, parked: Parked): PartitionSource & { readonly topic: string } => {
  const { topic, partitions } = stream.identity
  const rulesOfKeys = stream.stream === 'api-keys' && { firstKeyRulesUntil: firstKeyRulesUntil(stream.identity) }
  return { stream: stream.stream, topic, partition: targetPartition(stream, parked), partitions, ...rulesOfKeys }
}

/**
 * The partition of the record's key, as a publisher chooses it. A record without a key keeps its partition, and is
 * parked again for that.
 */
export const targetPartition = ({ stream, identity }: LiveStream, { fields, record }: Parked): number => {
  if (stream === 'api-keys' || record.key === null) return fields.partition
  return partitionOf(record.key.toString('utf8'), identity.partitions)
}

/** The document with the versions of a rep or period. */
const headOf = ({ type, data: { org_id, id } }: ValidEvent): DocumentRef | undefined => {
  if (type === 'commission.rep.recorded.v1') return refOf('reps', recordId(org_id, id))
  return type === 'commission.period.recorded.v1' ? refOf('periods', recordId(org_id, id)) : undefined
}
