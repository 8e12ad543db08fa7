/** Reads the parked records from the two parked indices, as an operator does. */
import type { Client } from '@elastic/elasticsearch'
import { apiKeysParkedIndexOf, FIRST_GENERATION, indexOf, type ParkedDocument } from '../../schemas/stored/documents.ts'
import type { ExpectedParked } from '../data/expected.ts'

/** Returns all parked records, in any order. */
export const readDemoParked = async (client: Client, prefix: string): Promise<ExpectedParked[]> => {
  const index = [indexOf(prefix, FIRST_GENERATION, 'parked'), apiKeysParkedIndexOf(prefix)]
  await client.indices.refresh({ index })
  const { hits } = await client.search<ParkedDocument>({ index, size: 1_000 })
  return hits.hits.flatMap(({ _source: parked }) =>
    parked === undefined ? [] : [{ event_id: eventIdOf(parked), code: parked.code, value: parked.body.value ?? '' }],
  )
}

/** From the headers: an undecodable record has no `event_id` field. */
const eventIdOf = ({ body }: ParkedDocument): string => {
  const header = body.headers.find(([name]) => name === 'ce_id')?.[1] ?? ''
  return Buffer.from(header, 'base64').toString()
}
