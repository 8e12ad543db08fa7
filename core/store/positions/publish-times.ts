/**
 * Publishes the times of partitions whose position stands still. One document has the times of all partitions of a
 * generation. So a projection at rest writes once for each read of the ends. In: the time of a partition, and the
 * position that has reached it. Out: nothing, once Elasticsearch has stored it.
 * Promises: a time never goes back, except one that was ahead of all clocks. Each write is conditional on the version
 * that was read, and merges what other processes wrote. Times that come during a write are written together.
 */
import { type PartitionTime, type TimesDocument, timesId } from '../../../schemas/stored/documents.ts'
import { StopError } from '../../runtime/index.ts'
import type { DocumentAnswer, DocumentVersion } from '../elasticsearch/answers.ts'
import { type Ask, documentPath, ifVersion } from '../elasticsearch/client.ts'
import { isLaterTime } from './times-cache.ts'

export type PublishedTimes = {
  /** Reads the stored times of all partitions again. */
  readonly read: () => Promise<void>
  /** Returns the time of a partition as it was last seen; undefined if there is none. */
  readonly of: (partition: number) => PartitionTime | undefined
  /** Publishes a time. It resolves once it, or a later one, is stored. */
  readonly advance: (partition: number, time: PartitionTime) => Promise<void>
}

type Times = TimesDocument['body']['partitions']
/** Without a version the document does not exist yet. */
type Stored = { readonly times: Times; readonly version?: DocumentVersion }

/** @throws StopError `index_missing` if the document is gone: the generation was dropped, or the index was lost */
export const createPublishedTimes = (index: string, generation: string, request: Ask): PublishedTimes => {
  const id = timesId(generation)
  const path = documentPath(index, id)
  let stored: Stored = { times: {} }
  let wanted: Times = {}
  let running: Promise<void> = Promise.resolve()

  const missing = (status: number): StopError => new StopError('index_missing', `${id} in ${index}`, { status })

  const read = async (): Promise<void> => {
    // Another partition may write the first times during this read.
    const existed = stored.version !== undefined
    const { status, body } = await request<DocumentAnswer<TimesDocument>>({ method: 'GET', path })
    if (status === 200) stored = { times: body._source.body.partitions, version: body }
    else if (existed) throw missing(status)
  }

  const write = (partitions: Times) => {
    const body: TimesDocument = { kind: 'times', body: { partitions } }
    const { version } = stored
    return version === undefined
      ? request<DocumentVersion>({ method: 'PUT', path: `/${index}/_create/${encodeURIComponent(id)}`, body })
      : request<DocumentVersion>({ method: 'PUT', path, query: ifVersion(version), body })
  }

  const writeWanted = async (): Promise<void> => {
    for (let times = merge(stored.times, wanted); times !== stored.times; times = merge(stored.times, wanted)) {
      const { status, body } = await write(times)
      if (status === 200 || status === 201) stored = { times, version: body }
      // Another process wrote first, or an earlier attempt of ours succeeded and its response was lost.
      else if (status === 409) await read()
      else throw missing(status)
    }
  }

  return {
    read,
    of: partition => stored.times[partition],
    advance: (partition, time) => {
      wanted = merge(wanted, { [partition]: time })
      running = running.catch(() => undefined).then(writeWanted)
      return running
    },
  }
}

/** Returns the first times with what is later in the others; the same object if nothing is. */
const merge = (times: Times, others: Times): Times => {
  const later = Object.entries(others).filter(([partition, time]) => {
    const known = times[partition]
    return known === undefined || isLaterTime(time, known)
  })
  return later.length === 0 ? times : { ...times, ...Object.fromEntries(later) }
}
