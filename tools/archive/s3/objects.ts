/** Objects below a prefix, read and written with their entity tags. */
import { CommandError } from '../../failures.ts'
import type { SendS3 } from './send.ts'

/** An object and its entity tag. */
export type S3Object = { readonly bytes: Buffer; readonly tag: string }
export type S3Objects = {
  readonly keyOf: (path: string) => string
  /** Returns undefined if the bucket has no such object. */
  readonly get: (path: string) => Promise<S3Object | undefined>
  /**
   * Stores an object. The present object must have the entity tag `over`; without `over` the bucket must have none.
   * Returns the new entity tag; undefined if the condition does not hold.
   */
  readonly put: (
    path: string,
    bytes: Buffer,
    over: string | undefined,
    retryOnce?: boolean,
  ) => Promise<string | undefined>
}

export const openObjects = (name: string, prefix: string, send: SendS3): S3Objects => {
  const keyOf = (path: string): string => (prefix === '' ? path : `${prefix}/${path}`)
  return {
    keyOf,
    get: async path => {
      const { status, body, headers } = await send({ method: 'GET', key: keyOf(path) })
      return status === 404 ? undefined : { bytes: body, tag: tagIn(name, headers) }
    },
    put: async (path, body, over, retryOnce = false) => {
      const condition = over === undefined ? { 'If-None-Match': '*' } : { 'If-Match': over }
      const { status, headers } = await send({ method: 'PUT', key: keyOf(path), headers: condition, body, retryOnce })
      return status === 200 ? tagIn(name, headers) : undefined
    },
  }
}

const tagIn = (name: string, { etag }: { readonly etag?: string | undefined }): string => {
  if (etag === undefined) throw new CommandError(`${name}: the store answers without an ETag`)
  return etag
}
