/** Simulated answers of Elasticsearch. Their form is not checked: the code under test states the form that it reads. */
import { Unanswered } from '../../core/runtime/keep-trying.ts'
import type { Answer, Request, Send } from '../../core/store/elasticsearch/client.ts'
import type { DocumentAddress, GetDocuments } from '../../core/store/elasticsearch/primary-reads.ts'
import { commonIndices, generationIndices, type IndexDefinition } from '../../schemas/stored/mappings.ts'

export const sending = (answer: (request: Request, signal?: AbortSignal) => Promise<Answer>): Send => answer as Send

/** A proxy answers 404 in place of Elasticsearch. */
export const proxied = (isOptional: boolean): Answer => {
  if (isOptional) return { status: 404, body: '<html>' }
  throw new Unanswered('elasticsearch', 404, 'without the header x-elastic-product')
}

export type Found = { readonly found: boolean; readonly _version?: number; readonly _source?: unknown }

export const getting = (
  find: (docs: readonly DocumentAddress[]) => Promise<readonly (Found & { readonly _id: string })[]>,
): GetDocuments => find as GetDocuments

/** The control index, and those of API keys and of these generations, as this version creates them. */
export const definedIndices = (
  prefix: string,
  ...generations: readonly Parameters<typeof generationIndices>[1][]
): Map<string, IndexDefinition> => {
  const ofEvents = generations.map(generation => generationIndices(prefix, generation, { shards: 1 }))
  return new Map([commonIndices(prefix), ...ofEvents].flatMap(definitions => Object.entries(definitions)))
}

/** Somebody has set an ingest pipeline on one of them. */
export const withPipeline = (
  name: string,
  definitions: ReadonlyMap<string, IndexDefinition>,
): Map<string, IndexDefinition> => {
  const definition = definitions.get(name)
  if (definition === undefined) throw new Error(`${name} is not among the indices`)
  const settings = { ...definition.settings, final_pipeline: 'trim' }
  return new Map([...definitions, [name, { ...definition, settings }]])
}

/** Answers `GET /index`. */
export const indexAnswer = (name: string, definitions: ReadonlyMap<string, IndexDefinition>): Answer => {
  const definition = definitions.get(name)
  if (definition === undefined) return { status: 404, body: { error: { type: 'index_not_found_exception' } } }
  const { mappings, settings } = definition
  return { status: 200, body: { [name]: { mappings, settings: { index: settings } } } }
}

const UPDATE = Buffer.from('{"update"')

/** Whether a bulk request only reads: updates without a change. `getFromPrimaries` makes them. */
export const isRead = (bulk: Buffer = Buffer.alloc(0)): boolean => bulk.subarray(0, UPDATE.length).equals(UPDATE)

/** Returns the documents that such a request reads. */
export const updatesIn = (
  bulk: Buffer = Buffer.alloc(0),
): readonly {
  readonly _index: string
  readonly _id: string
  readonly routing?: string
  readonly _source?: { readonly includes: string[] }
}[] =>
  String(bulk)
    .split('\n')
    .flatMap(line => (line.startsWith(String(UPDATE)) ? [JSON.parse(line).update] : []))

/** Answers a read from the primaries. `sourceOf` returns undefined for a missing document. */
export const primariesAnswer = (
  { bulk }: Request,
  sourceOf: (index: string, id: string) => object | undefined,
): Answer => {
  const items = updatesIn(bulk).map(({ _index, _id }) => {
    const _source = sourceOf(_index, _id)
    const missing = { status: 404, error: { type: 'document_missing_exception' } }
    const found = { status: 200, result: 'noop', _version: 1, get: { _source } }
    return { update: { _index, _id, ...(_source === undefined ? missing : found) } }
  })
  return { status: 200, body: { items } }
}
