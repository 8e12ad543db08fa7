/** Simulated answers of Elasticsearch. Their form is not checked: the code under test states the form that it reads. */
import type { Answer, DocumentAddress, GetDocuments, Request, Send } from '../../projector/elasticsearch/client.ts'

export const sending = (answer: (request: Request, signal?: AbortSignal) => Promise<Answer>): Send => answer as Send

export type Found = { readonly found: boolean; readonly _version?: number; readonly _source?: unknown }

export const getting = (
  find: (docs: readonly DocumentAddress[]) => Promise<readonly (Found & { readonly _id: string })[]>,
): GetDocuments => find as GetDocuments
