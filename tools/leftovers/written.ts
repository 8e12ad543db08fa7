/**
 * The last written record of each partition: documents of the generation are of a log that has it. In: a generation.
 * Out: the stored records; changes of them.
 * Promises: a record is forgotten when its documents are removed. While a partition is read again, the record up to
 *   which it has documents is kept: only it tells whether they are of the log that is read now.
 */
import { type DocumentAnswer, documentPath, getEach, getFromPrimaries, ifVersion } from '../../core/store/index.ts'
import {
  API_KEYS_GENERATION,
  controlIndexOf,
  type PositionDocument,
  type WrittenDocument,
  writtenId,
} from '../../schemas/stored/documents.ts'
import { controlAddress } from '../../schemas/stored/layout.ts'
import type { CommandContext } from '../context.ts'
import { withRetries } from '../documents/read-retries.ts'
import { CommandError } from '../failures.ts'
import { CHANGED, carryOut, doneIfMissing, type Operation } from './carry-out.ts'

type Steps = Pick<CommandContext, 'send' | 'prefix' | 'sleep' | 'say' | 'elapsed'>
type Partitions = { readonly generation: string; readonly partitions: number }
type LastRecord = WrittenDocument['body']

/** The last written record of a partition, and its version; undefined if nothing is written yet. */
export type ReadWritten = { readonly last: LastRecord; readonly version: number } | undefined

/** Reads the last written record of each partition, in order. */
export const readWrittenVersions = async (of: Partitions, steps: Steps): Promise<ReadWritten[]> => {
  const found = await getEach(addressesOf(of, steps), part =>
    withRetries(steps, () => getFromPrimaries<WrittenDocument>(steps.send, part)),
  )
  return Array.from({ length: of.partitions }, (_, at) => {
    const document = found[at]
    // A projector that has written nothing yet has stored the offset -1.
    if (!document?.found || document._source.body.offset < 0) return undefined
    return { last: document._source.body, version: document._version }
  })
}

/** Returns the last written record of each partition, in order. */
export const readAllWritten = async (of: Partitions, steps: Steps): Promise<(LastRecord | undefined)[]> =>
  (await readWrittenVersions(of, steps)).map(one => one?.last)

/**
 * While a partition is read again, documents from its position to `serve_from` are those of the same log, if the log
 * still has the last written record: it can have been cut below since then. Of API keys this is not known: each start
 * of a projector moves `serve_from`. They are few, and are served only after they are read again.
 */
export const firstToRemove = async (
  generation: string,
  { position, serve_from = 0 }: PositionDocument['body'],
  written: LastRecord | undefined,
  isOfLog: (last: LastRecord) => Promise<boolean>,
): Promise<number> => {
  if (generation === API_KEYS_GENERATION || serve_from <= position) return position
  return written !== undefined && written.offset >= position && (await isOfLog(written)) ? serve_from : position
}

/**
 * @param before as they were before the documents were looked for
 * @throws CommandError if one was written since: there are documents that nobody has looked at
 */
export const forgetWritten = async (
  of: Partitions,
  before: readonly ReadWritten[],
  isKept: (last: LastRecord, partition: number) => boolean,
  steps: Steps,
): Promise<void> => {
  const written = await readWrittenVersions(of, steps)
  if (written.some((one, at) => one && one.version !== before[at]?.version)) throw new CommandError(CHANGED)
  const deletions = addressesOf(of, steps).flatMap((address, partition): Operation[] => {
    const one = written[partition]
    if (one === undefined || isKept(one.last, partition)) return []
    // A later version than that is one that was written since.
    const action = { delete: { ...address, version: one.version + 1, version_type: 'external' } }
    return [{ ...address, lines: [action], onConflict: doneIfMissing }]
  })
  await carryOut(deletions, steps)
}

/** The position of a partition goes back, and its documents stay: a projector compares this record before it reads. */
export const keepAsWritten = async (
  generation: string,
  partition: number,
  last: NonNullable<PositionDocument['body']['last']>,
  { send, prefix }: Pick<Steps, 'send' | 'prefix'>,
): Promise<void> => {
  const id = writtenId(generation, partition)
  const path = documentPath(controlIndexOf(prefix), id)
  for (;;) {
    const { status, body } = await send<DocumentAnswer<WrittenDocument>>({ method: 'GET', path })
    if (status === 200 && body._source.body.offset >= last.offset) return
    const query = status === 200 ? ifVersion(body) : { op_type: 'create' }
    const { offset, sha256 } = last
    const document: WrittenDocument = { kind: 'written', body: { offset, sha256 } }
    const answer = await send({ method: 'PUT', path, query, body: document })
    if (answer.status === 200 || answer.status === 201) return
    if (answer.status !== 409) throw new CommandError(`${id} cannot be written: Elasticsearch answers ${answer.status}`)
  }
}

const addressesOf = ({ generation, partitions }: Partitions, { prefix }: Pick<Steps, 'prefix'>) =>
  Array.from({ length: partitions }, (_, at) => controlAddress(prefix, writtenId(generation, at)))
