/** Reads what was parked, as an operator does: from the two parked indices. */
import type { Client } from '@elastic/elasticsearch'
import { apiKeysParkedIndexOf, FIRST_GENERATION, indexOf, type ParkedDocument } from '../../schemas/stored/documents.ts'
import type { ExpectedParked } from '../data/expected.ts'

export const readParked = async (client: Client, prefix: string): Promise<ExpectedParked[]> => {
  const index = [indexOf(prefix, FIRST_GENERATION, 'parked'), apiKeysParkedIndexOf(prefix)]
  await client.indices.refresh({ index })
  const { hits } = await client.search<ParkedDocument>({ index, size: 1_000 })
  return hits.hits.flatMap(({ _source: parked }) =>
    parked === undefined ? [] : [{ event_id: eventIdOf(parked), code: parked.code, value: parked.body.value ?? '' }],
  )
}

/** From the headers as they came: the field beside the body is missing where the record could not be decoded. */
const eventIdOf = ({ body }: ParkedDocument): string => {
  const header = body.headers.find(([name]) => name === 'ce_id')?.[1] ?? ''
  return Buffer.from(header, 'base64').toString()
}
