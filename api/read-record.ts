/**
 * In: an organization and an id. Out: the document of that record, and the position it was read at.
 * Promises: visible at that position; a rep or period as its latest version there; a replaced payout too.
 * Can go wrong: what is not there, not visible yet or another organization's is `not_found`, all alike.
 */
import { type HeadBody, indexOf, recordId, versionId } from '../schemas/documents.ts'
import { bodyOf, type Cut, cutMultiGet, numberOf } from './cut-documents.ts'
import type { MultiGet } from './elasticsearch.ts'
import { Refusal, unavailable } from './failures.ts'
import { isVisible, type Position, type PositionReader } from './position.ts'

export type Found = { readonly position: Position; readonly cut: Cut }
export type FoundStatement = Found & { readonly trace: Cut }

export type ReadRecords = {
  readonly version: (org: string, kind: 'reps' | 'periods', id: string, signal: AbortSignal) => Promise<Found>
  readonly record: (org: string, kind: 'payouts' | 'payroll_files', id: string, signal: AbortSignal) => Promise<Found>
  readonly statement: (org: string, id: string, signal: AbortSignal) => Promise<FoundStatement>
}

export const createReadRecords = (
  prefix: string,
  multiGet: MultiGet,
  readAt: PositionReader['readAt'],
): ReadRecords => {
  const read = (org: string, kinds: readonly Parameters<typeof indexOf>[2][], id: string, signal: AbortSignal) =>
    readAt(
      org,
      ({ name }) => kinds.map(kind => ({ index: indexOf(prefix, name, kind), id: recordId(org, id), form: 'record' })),
      'at-position',
      signal,
    )

  return {
    version: async (org, kind, id, signal) => {
      const { position, documents } = await read(org, [kind], id, signal)
      const versions = documents[0] && (bodyOf(documents[0]) as Partial<HeadBody>).versions
      const version = versions?.findLast(({ seq }) => isVisible(seq, position))
      if (!version) throw new Refusal('not_found')
      const index = indexOf(prefix, position.generation.name, kind)
      const name = { index, id: versionId(org, id, version.seq), form: 'record' } as const
      const [cut] = cutMultiGet(await multiGet([name], signal), [name])
      if (!cut) throw unavailable('version_missing')
      return { position, cut }
    },

    record: async (org, kind, id, signal) => {
      const { position, documents } = await read(org, [kind], id, signal)
      return { position, cut: requireVisible(documents[0], position) }
    },

    statement: async (org, id, signal) => {
      const { position, documents } = await read(org, ['payouts', 'statements'], id, signal)
      const cut = requireVisible(documents[0], position)
      const trace = documents[1]
      if (!trace) throw unavailable('statement_missing')
      return { position, cut, trace }
    },
  }
}

const requireVisible = (cut: Cut | undefined, position: Position): Cut => {
  if (!cut || !isVisible(numberOf(cut, 'seq'), position)) throw new Refusal('not_found')
  return cut
}
