/** Seals texts as a publisher does, and keeps keys in a directory as an operator does. */
import { createCipheriv, createHmac, hash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keyFileOf, receiptFileOf } from '../../core/reading/sealed/key-directory.ts'
import { additionalData, type SealedLocation } from '../../schemas/sealed/sealed-text.ts'
import type { Scope } from './scope.ts'

/** The key of an id in tests. */
export const sealKey = (id: string): Buffer => hash('sha256', `key of ${id}`, 'buffer')

type Sealing = SealedLocation & { readonly keyId: string; readonly key?: Buffer }

/** The nonce follows from the text, so that a text sealed again is the same event: see docs/publishing.md. */
export const seal = (text: string | Buffer, { keyId, key = sealKey(keyId), ...place }: Sealing): string => {
  const additional = Buffer.from(additionalData(place))
  const nonce = createHmac('sha256', key).update('nonce\n').update(additional).update('\n').update(text).digest()
  const cipher = createCipheriv('aes-256-gcm', key, nonce.subarray(0, 12), { authTagLength: 16 }).setAAD(additional)
  const bytes = Buffer.concat([nonce.subarray(0, 12), cipher.update(text), cipher.final(), cipher.getAuthTag()])
  return `sealed:v1:${keyId}:${bytes.toString('base64url')}`
}

/** A directory of keys, removed when the test ends. */
export const createKeys = (scope: Scope, ids: readonly string[]) => {
  const directory = mkdtempSync(join(tmpdir(), 'seal-keys-'))
  scope.onTestFinished(async () => rmSync(directory, { recursive: true, force: true }))
  const put = (id: string, content: string | Buffer = sealKey(id)): void =>
    writeFileSync(join(directory, keyFileOf(id)), content)
  for (const id of ids) put(id)
  return {
    directory,
    sources: { directory, vault: undefined },
    put,
    remove: (id: string): void => rmSync(join(directory, keyFileOf(id))),
    putReceipt: (id: string, content = JSON.stringify({ key_id: id, erased_at: '2026-01-01T00:00:00Z' })): void =>
      writeFileSync(join(directory, receiptFileOf(id)), content),
  }
}
