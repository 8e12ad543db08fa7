/** Digests of documents: sums of their hashes, which do not depend on the order of the documents. */
import { createHash } from 'node:crypto'
import type { Kind } from '../../schemas/stored/documents.ts'

export const documentHash = (kind: Kind, id: string, content: unknown): string =>
  createHash('sha256')
    .update(`${kind}\n${id}\n${JSON.stringify(content)}`)
    .digest('hex')

export const addToDigest = (digest: bigint, hash: string): bigint => (digest + BigInt(`0x${hash}`)) % 2n ** 256n
