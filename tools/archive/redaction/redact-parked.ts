/**
 * The parked records of API keys after a redaction. Generations are made anew from the redacted log, API keys are not.
 * In: a redaction, and its archive. Out: each parked document of a record that differs, stored again from the redacted
 *   record.
 * Promises: the code and the version stay. To repeat it changes nothing.
 * Can go wrong: Elasticsearch does not answer, or refuses a document: the command ends.
 */
import { decode, park, serialize, timeOfRecord } from '../../../core/ledger/index.ts'
import type { LogReader } from '../../../core/log/index.ts'
import { getEach, getFromPrimaries } from '../../../core/store/index.ts'
import { API_KEYS_GENERATION, type ParkedDocument, parkedId } from '../../../schemas/stored/documents.ts'
import { layoutOfKeys } from '../../../schemas/stored/layout.ts'
import type { CommandContext } from '../../context.ts'
import { type RetryContext, withRetries } from '../../documents/read-retries.ts'
import { carryOut, type Operation } from '../../leftovers/carry-out.ts'
import type { Redaction } from './redact-log.ts'

/** @param archived the topic of API keys in the archive */
export const redactParkedKeys = async (
  { list, reader }: Pick<Redaction, 'list' | 'reader'>,
  archived: LogReader,
  steps: RetryContext & Pick<CommandContext, 'prefix' | 'say'>,
): Promise<void> => {
  const { topic } = archived
  const log = reader(API_KEYS_GENERATION, archived)
  const { addressOf } = layoutOfKeys(steps.prefix)
  const changes = list.changes
    .filter(({ stream }) => stream === API_KEYS_GENERATION)
    .map(({ partition, offset }) => {
      const address = addressOf('parked', parkedId(topic, partition, offset))
      return { partition, offset, address }
    })
  const addresses = changes.map(({ address }) => address)
  const stored = await getEach(addresses, part =>
    withRetries(steps, () => getFromPrimaries<ParkedDocument>(steps.send, part)),
  )
  const operations: Operation[] = []
  for (const [at, { partition, offset, address }] of changes.entries()) {
    const document = stored[at]
    const [record] = document?.found ? (await log.read(partition, offset)).entries : []
    if (!document?.found || record === undefined) continue
    const decoded = decode(record)
    const envelope = typeof decoded === 'string' ? undefined : decoded
    const change = park({ record, envelope }, document._source.code, { topic, partition }, timeOfRecord(record))
    const action = { index: { ...address, version: change.version, version_type: 'external_gte' } }
    operations.push({ ...address, lines: [action, JSON.parse(serialize(change).line)] })
  }
  await carryOut(operations, steps)
}
