/** Compares projector and model: the outcome of every published record. */
import { expect } from 'vitest'
import { parkedId } from '../../schemas/stored/documents.ts'
import { createModel, type Model, type Outcome } from './model.ts'
import { partitionOf } from './model-record.ts'
import { allStored, indexNamed, type Stored } from './stored.ts'
import type { Published, Topics } from './topics.ts'
import { readWholeState } from './whole-state.ts'

/** Returns the model's outcome of each published record, and the model after all of them. */
export const foldAll = (
  topics: Topics,
): { readonly model: Model; readonly outcomes: ReadonlyMap<Published, Outcome> } => {
  const model = createModel(topics.partitions)
  const outcomes = new Map<Published, Outcome>()
  const inOrder = topics.published().toSorted((a, b) => a.offset - b.offset)
  for (const record of inOrder) outcomes.set(record, model.take(record.stream, record.partition, record))
  return { model, outcomes }
}

/** A place in the log, as text, to compare the two sides. */
const placeOf = (stream: string, partition: number, offset: number): string => `${stream}:${partition}:${offset}`

/**
 * Expects the model's outcome of every record (a document, a parked document or neither has its offset) and exactly the
 * model's documents.
 */
export const expectProjectedAsModelled = async (prefix: string, topics: Topics): Promise<Model> => {
  const { model, outcomes } = foldAll(topics)
  const expected = { applied: new Set<string>(), parked: new Map<string, string>() }
  for (const [{ stream, partition, offset }, outcome] of outcomes) {
    if (outcome.outcome === 'applied') expected.applied.add(placeOf(stream, partition, offset))
    if (outcome.outcome === 'parked')
      expected.parked.set(parkedId(topics.name(stream), partition, offset), outcome.code)
  }
  const parked = await parkedCodes(prefix)
  expectSame(new Set([...parked].map(withCode)), new Set([...expected.parked].map(withCode)))
  expectSame(await appliedPlaces(prefix, topics), expected.applied)
  const { stored, modelled } = await readWholeState(prefix, model)
  expectSame(stored, modelled)
  return model
}

const withCode = ([id, code]: [string, string]): string => `${id} ${code}`

/** Compares only the differences: this is fast and readable with thousands of lines. */
const expectSame = (got: ReadonlySet<string>, wanted: ReadonlySet<string>): void => {
  expect({ missing: [...wanted.difference(got)], tooMany: [...got.difference(wanted)] }).toEqual({
    missing: [],
    tooMany: [],
  })
}

/** Returns the code of every parked record of both topics, by document id. */
export const parkedCodes = async (prefix: string): Promise<Map<string, string>> => {
  const documents = [
    ...(await allStored(indexNamed(prefix, 'parked'))),
    ...(await allStored(indexNamed(prefix, 'api-keys-parked'))),
  ]
  return new Map(documents.map(({ id, source }) => [id, String(source.code)]))
}

/** Returns the place of every record that made a document. Without a refresh, only those that are searchable. */
export const appliedPlaces = async (
  prefix: string,
  topics: Topics,
  { refresh = true }: { readonly refresh?: boolean } = {},
): Promise<Set<string>> => {
  const places = new Set<string>()
  const add = ({ source }: Stored): void => {
    if (typeof source.seq !== 'number') return
    places.add(placeOf('events', partitionOf(String(source.org_id), topics.partitions), source.seq))
  }
  for (const kind of ['reps', 'periods', 'payouts', 'payroll_files'] as const) {
    for (const document of await allStored(indexNamed(prefix, kind), { refresh })) add(document)
  }
  for (const { source } of await allStored(indexNamed(prefix, 'api-keys'))) {
    const body = source.body as { created_seq: number; revoked_seq?: number | null }
    places.add(placeOf('api-keys', 0, body.created_seq))
    if (typeof body.revoked_seq === 'number') places.add(placeOf('api-keys', 0, body.revoked_seq))
  }
  return places
}
