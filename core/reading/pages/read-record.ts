/**
 * In: an organization, an id and optionally a moment. Out: the document of that record, and the position it was read
 *   at.
 * Promises: the record is visible at that position. A rep or period is in its latest version there. A replaced payout
 *   is found.
 * Can go wrong: a record that is missing, not visible yet or another organization's → `not_found`, all alike.
 */
import { type Kind, recordId, versionId } from '../../../schemas/stored/documents.ts'
import { Refusal, unavailable } from '../../runtime/index.ts'
import {
  type DocumentSlice,
  type DocumentsOf,
  isVisible,
  numberOf,
  type ReadPosition,
  type ReadScope,
  type ScopedMultiGet,
  sliceMultiGet,
} from '../../store/index.ts'
import { readNamed, versionsIn } from './cursors.ts'
import type { ReaderParts } from './read-list.ts'
import type { Moment } from './read-parameters.ts'

export type FoundRecord = { readonly position: ReadPosition; readonly slice: DocumentSlice }
export type FoundStatement = FoundRecord & { readonly trace: DocumentSlice }

export type RecordAsked = { readonly id: string; readonly asOf: Moment | undefined }

export type ReadRecords = {
  readonly version: (scope: ReadScope, kind: 'reps' | 'periods', asked: RecordAsked) => Promise<FoundRecord>
  readonly record: (scope: ReadScope, kind: 'payouts' | 'payroll_files', asked: RecordAsked) => Promise<FoundRecord>
  readonly statement: (scope: ReadScope, asked: RecordAsked) => Promise<FoundStatement>
}

type Parts = Pick<ReaderParts, 'readAt' | 'cursors' | 'positionAsOf'>

/** Creates the readers of single records. */
export const createReadRecords = (parts: Parts, multiGet: ScopedMultiGet): ReadRecords => {
  const readDocumentsAsOf = createReadDocumentsAsOf(parts)
  const read = (scope: ReadScope, kinds: readonly Kind[], { id, asOf }: RecordAsked) =>
    readDocumentsAsOf(
      scope,
      ({ layout }) => kinds.map(kind => ({ ...layout.addressOf(kind, recordId(scope.org, id)), form: 'record' })),
      asOf,
    )

  return {
    version: async (scope, kind, asked) => {
      const { position, documents } = await read(scope, [kind], asked)
      const versions = documents[0] ? versionsIn(documents[0]) : []
      const version = versions.findLast(({ seq }) => isVisible(seq, position))
      if (!version) throw new Refusal('not_found')
      const address = position.generation.layout.addressOf(kind, versionId(scope.org, asked.id, version.seq))
      const name = { ...address, form: 'record' } as const
      const [slice] = sliceMultiGet(await multiGet([name], scope), [name])
      if (!slice) throw unavailable('version_missing')
      return { position, slice }
    },

    record: async (scope, kind, asked) => {
      const { position, documents } = await read(scope, [kind], asked)
      return { position, slice: requireVisible(documents[0], position) }
    },

    statement: async (scope, asked) => {
      const { position, documents } = await read(scope, ['payouts', 'statements'], asked)
      const slice = requireVisible(documents[0], position)
      const trace = documents[1]
      if (!trace) throw unavailable('statement_missing')
      return { position, slice, trace }
    },
  }
}

/**
 * Returns a reader of documents, no earlier than the organization's position. It also returns the current position, and
 * the position as of the moment.
 */
export const createReadDocumentsAsOf = (parts: Parts) => {
  return async (scope: ReadScope, documentsOf: DocumentsOf, asOf: Moment | undefined) => {
    const names = [asOf?.kind === 'change' ? asOf.name : undefined]
    const {
      position: current,
      sortValues,
      documents,
    } = await readNamed(parts, scope, { names, documentsOf, freshness: 'at-position' })
    const position = await parts.positionAsOf(scope, current, asOf, sortValues[0])
    return { current, position, documents }
  }
}

/** Returns the same document. @throws Refusal `not_found` if it is missing, or not visible at the position */
export const requireVisible = (slice: DocumentSlice | undefined, position: ReadPosition): DocumentSlice => {
  if (!slice || !isVisible(numberOf(slice, 'seq'), position)) throw new Refusal('not_found')
  return slice
}
