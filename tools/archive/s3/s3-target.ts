/**
 * Archives in a bucket.
 *
 * In: paths of an archive, and bytes. Out: objects of the same names below a prefix, so that a copy of the bucket is an
 *   archive in a directory, and the other way round.
 * Promises: a PUT is whole or nothing. `create` has `If-None-Match: *`, and `replace` has the entity tag that was read
 *   or written last as `If-Match`: a run that another one has replaced can change nothing. After a PUT whose answer was
 *   lost, the object is read: with our bytes, it was ours.
 * Can go wrong: another run has written: a CommandError.
 */
import { CommandError } from '../../failures.ts'
import { type ArchiveTarget, otherRun } from '../target.ts'
import { openObjects } from './objects.ts'
import { lockArchive } from './s3-lock.ts'
import type { SendS3 } from './send.ts'

export type S3Address = { readonly bucket: string; readonly prefix: string }

export const s3Target = (name: string, { prefix }: S3Address, send: SendS3): ArchiveTarget => {
  const objects = openObjects(name, prefix, send)
  /** Of what is replaced: manifests and their notes. An archive can have a million segments, which never are. */
  const tags = new Map<string, string>()
  const remember = (path: string, tag: string): void => {
    if (!path.endsWith('.zst')) tags.set(path, tag)
  }
  const store = async (path: string, bytes: Buffer, over: string | undefined): Promise<void> => {
    let tag = await objects.put(path, bytes, over)
    if (tag === undefined) {
      const found = await objects.get(path)
      if (!found?.bytes.equals(bytes)) throw new CommandError(otherRun(`${name}/${path}`))
      tag = found.tag
    }
    remember(path, tag)
  }
  return {
    name,
    read: async path => {
      const found = await objects.get(path)
      if (found === undefined) tags.delete(path)
      else remember(path, found.tag)
      return found?.bytes
    },
    list: folder => listFolder(folderKey(objects.keyOf(folder)), send),
    create: (path, bytes) => store(path, bytes, undefined),
    replace: (path, bytes) => store(path, bytes, tags.get(path)),
    lock: steps => lockArchive(name, objects, steps),
  }
}

/** The keys of a folder begin with this; all keys, if it is the bucket. */
const folderKey = (key: string): string => (key === '' || key.endsWith('/') ? key : `${key}/`)

/** Lists 1,000 keys with each request. */
const listFolder = async (prefix: string, send: SendS3): Promise<string[]> => {
  const names: string[] = []
  let token: string | undefined
  do {
    const from = token === undefined ? {} : { 'continuation-token': token }
    const query = { 'list-type': '2', prefix, 'encoding-type': 'url', ...from }
    const { body } = await send({ method: 'GET', key: '', query })
    const page = body.toString('utf8')
    const next = between('NextContinuationToken', page)[0]
    const isTruncated = between('IsTruncated', page)[0] === 'true'
    if (!page.trimEnd().endsWith('</ListBucketResult>') || (isTruncated && (next === undefined || next === token))) {
      throw new CommandError(`${prefix}: the store does not list its keys: expected pages of ListObjectsV2`)
    }
    const isEncoded = between('EncodingType', page)[0] === 'url'
    for (const text of between('Key', page)) {
      const key = isEncoded ? decoded(text) : text
      if (key?.startsWith(prefix)) names.push(key.slice(prefix.length))
    }
    token = isTruncated ? next : undefined
  } while (token !== undefined)
  return names
}

/** The texts of all elements of this name. */
const between = (element: string, xml: string): string[] =>
  [...xml.matchAll(new RegExp(`<${element}>([^<]*)</${element}>`, 'g'))].map(([, text = '']) =>
    text.replace(/&(?:amp|lt|gt|quot|apos|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));/g, (entity, decimal, hexadecimal) => {
      if (decimal !== undefined) return characterOf(Number(decimal))
      if (hexadecimal !== undefined) return characterOf(Number.parseInt(hexadecimal, 16))
      return { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&apos;': "'" }[String(entity)] ?? ''
    }),
  )

/** A number above Unicode is no character: no archive has such a key. */
const characterOf = (code: number): string => (code > 0x10_ff_ff ? '\ufffd' : String.fromCodePoint(code))

/** Undefined for a key that no archive has. */
const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
