/**
 * Predicts the outcome of publishing a parked record again now. The projector's own rules decide it on the stored
 * documents and on the records that were predicted before it. Read-only.
 */

import {
  Cache,
  type ReadDocuments,
  refOf,
  type State,
  type ValidEvent,
  versionsBefore,
} from '../../core/ledger/index.ts'
import { firstKeyRulesUntil } from '../../core/store/index.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { recordId, versionId } from '../../schemas/stored/documents.ts'
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
}

export const createForecaster = (stream: LiveStream, read: ReadDocuments): Forecaster => {
  const { topic, partitions } = stream.identity
  const cache = new Cache({ fromFirstRecord: false })
  let seq = AFTER_ALL_OFFSETS

  const decide = async (
    parked: Parked,
    offset: number,
    known: Cache,
    isSent: (forecast: Forecast) => boolean,
  ): Promise<Forecast> => {
    const partition = targetPartition(stream, parked)
    const isKeys = stream.stream === 'api-keys'
    const rulesOfKeys = isKeys && { firstKeyRulesUntil: firstKeyRulesUntil(stream.identity) }
    const source = { stream: stream.stream, topic, partition, partitions, ...rulesOfKeys }
    const { outcome, documents, assessed, state } = await decideRecord(
      { ...parked.record, offset },
      source,
      known,
      read,
    )
    if (outcome.outcome !== 'applied') return outcome
    const [item] = assessed
    const older = item?.rules !== undefined && isOlder(item.verdict, parked, offset, state, stream)
    const forecast = older ? { outcome: 'older' as const } : outcome
    if (isSent(forecast)) known.addDecided(documents)
    return forecast
  }

  return {
    next: (parked, isSent) => decide(parked, seq++, cache, isSent),
    at: async (parked, offset) => {
      const forecast = await decide(parked, offset, new Cache({ fromFirstRecord: false }), () => false)
      return forecast.outcome === 'older' ? { outcome: 'applied' } : forecast
    },
  }
}

/**
 * The partition of the record's key, as a publisher chooses it. A record without a key keeps its partition, and is
 * parked again for that.
 */
export const targetPartition = ({ stream, identity }: LiveStream, { fields, record }: Parked): number => {
  if (stream === 'api-keys' || record.key === null) return fields.partition
  return partitionOf(record.key.toString('utf8'), identity.partitions)
}

/**
 * Whether the rep or period that the record replaces at this offset is newer: by position or, if the record was in
 * another partition, by time. Records of earlier forecasts count as older.
 */
const isOlder = (event: ValidEvent, parked: Parked, offset: number, state: State, stream: LiveStream): boolean => {
  const kind = versionedKindOf(event)
  if (kind === undefined) return false
  const { org_id, id } = event.data
  const current = versionsBefore(state.head(refOf(kind, recordId(org_id, id))), offset).at(-1)
  if (current === undefined || current.seq >= AFTER_ALL_OFFSETS) return false
  if (targetPartition(stream, parked) === parked.fields.partition) return current.seq > parked.fields.offset
  return (state.version(refOf(kind, versionId(org_id, id, current.seq)))?.at ?? 0) >= parked.fields.at
}

const versionedKindOf = ({ type }: ValidEvent): 'reps' | 'periods' | undefined => {
  if (type === 'commission.rep.recorded.v1') return 'reps'
  return type === 'commission.period.recorded.v1' ? 'periods' : undefined
}
