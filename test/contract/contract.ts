/** The files of `contract/`: everything that a publisher or a client in another language needs of this project. */
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { decode } from '../../core/ledger/event/decode.ts'
import { receiptsOpenapi } from '../../projector/admin/describe-receipts.ts'
import { asyncapi } from '../../schemas/reference/asyncapi.ts'
import { openapi } from '../../schemas/reference/openapi.ts'
import { portableSchemas } from '../../schemas/reference/portable-schema.ts'
import { type GoldenRecord, linesIn, projectLog, rawOf } from '../golden/golden.ts'
import { sealedVectors } from './sealed-vectors.ts'

/** Text, or its bytes in base64 if they are not UTF-8. */
type Bytes = string | { readonly base64: string } | null

/** A line of `records.ndjson`: a published record and the projector's verdict on it, in the order of the log. */
export type ContractRecord = {
  readonly stream: GoldenRecord['stream']
  readonly partition: number
  readonly timestamp: number
  readonly key: Bytes
  readonly headers: readonly (readonly [name: string, value: Bytes])[]
  readonly value: Bytes
  /** `applied`, `duplicate`, or the code under which the record is parked. */
  readonly verdict: string
  /** The event type, if the value is the data of an event with a schema. */
  readonly type: string | null
  /** The verdict of that schema alone. It cannot reach every rule. */
  readonly schema: 'accepts' | 'refuses' | null
}

/** Returns path and content of each file. @param log the records, in their order */
export const contractFiles = async (log: readonly GoldenRecord[]): Promise<Map<string, string>> => {
  const pretty = (value: unknown): string => `${inAscii(JSON.stringify(value, null, 2))}\n`
  const schemas = Object.entries(portableSchemas())
  const records = await withVerdicts(log)
  return new Map([
    ['openapi.json', pretty(openapi)],
    ['asyncapi.json', pretty(asyncapi)],
    ['receipts.json', pretty(receiptsOpenapi)],
    ...schemas.map(([type, schema]) => [`events/${type}.json`, pretty(schema)] as const),
    ['sealed.json', pretty(sealedVectors())],
    ['records.ndjson', `${records.map(record => JSON.stringify(record)).join('\n')}\n`],
  ])
}

/** Escapes characters that an editor may not show, such as line separators. */
const inAscii = (json: string): string =>
  json.replace(/[\x7f-\uffff]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Gives each record of a log its verdicts. */
const withVerdicts = async (log: readonly GoldenRecord[]): Promise<ContractRecord[]> => {
  const { verdicts } = await projectLog(log)
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, validateFormats: false })
  const validators = new Map(Object.entries(portableSchemas()).map(([type, schema]) => [type, ajv.compile(schema)]))
  return log.map(record => {
    const { stream, partition, timestamp, key, headers, value } = record
    const envelope = decode(rawOf(record, 0))
    const validate = typeof envelope === 'object' && isData(record) ? validators.get(envelope.type) : undefined
    const accepts = validate?.(JSON.parse(Buffer.from(value ?? '', 'base64').toString()))
    return {
      stream,
      partition,
      timestamp,
      key: bytesOf(key),
      headers: headers.map(([name, header]) => [name, bytesOf(header)] as const),
      value: bytesOf(value),
      verdict: verdicts.get(record) ?? 'unknown',
      type: validate === undefined ? null : typeof envelope === 'object' ? envelope.type : null,
      schema: accepts === undefined ? null : accepts ? 'accepts' : 'refuses',
    }
  })
}

/** In structured mode the data is a part of the value. */
const isData = ({ headers }: GoldenRecord): boolean => headers.some(([name]) => name === 'ce_type')

export const storedRecords = (): ContractRecord[] => linesIn(RECORDS).map(line => JSON.parse(line))

/** The records of the stored file, without their verdicts. */
export const storedLog = (): GoldenRecord[] =>
  storedRecords().map(({ stream, partition, timestamp, key, headers, value }) => {
    const pairs = headers.map(([name, header]) => [name, base64Of(header)] as const)
    return { stream, partition, timestamp, key: base64Of(key), headers: pairs, value: base64Of(value) }
  })

export const CONTRACT = join(import.meta.dirname, '../../contract')
const RECORDS = join(CONTRACT, 'records.ndjson')

const base64Of = (bytes: Bytes): string | null =>
  bytes === null ? null : typeof bytes === 'string' ? Buffer.from(bytes).toString('base64') : bytes.base64

const bytesOf = (base64: string | null): Bytes => {
  if (base64 === null) return null
  const bytes = Buffer.from(base64, 'base64')
  const text = bytes.toString('utf8')
  return Buffer.from(text, 'utf8').equals(bytes) ? text : { base64 }
}
