/** Seals the personal texts of an event: docs/publishing.md has the form. */
import { createCipheriv, createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'

type Data = { org_id: string; id: string; name?: string; email?: string | null; destination?: { label: string } }

/** Seals `name` and `email` of a rep, and `destination.label` of a payment. Other events stay as they are. */
export const sealTexts = (type: string, data: Data, keyId: string): void => {
  const key = readKey(keyId)
  const seal = (field: string, text: string) => sealText(text, key, keyId, [data.org_id, data.id, field])
  if (type === 'commission.rep.recorded.v1') {
    if (data.name) data.name = seal('name', data.name)
    if (data.email) data.email = seal('email', data.email)
  }
  if (type === 'commission.payroll.recorded.v1' && data.destination?.label) {
    data.destination.label = seal('destination.label', data.destination.label)
  }
}

/** @param location organization, id of the record, and field: the text opens only there */
export const sealText = (text: string, key: Buffer, keyId: string, location: readonly string[]): string => {
  const additional = ['commission sealed v1', ...location].join('\n')
  // The nonce follows from the text, so that the same text, sealed again, is the same event.
  const nonce = createHmac('sha256', key).update(`nonce\n${additional}\n${text}`).digest().subarray(0, 12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(additional))
  const bytes = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return `sealed:v1:${keyId}:${bytes.toString('base64url')}`
}

/** A file of SEAL_KEYS_DIR: 32 bytes, as they are or in base64. */
const readKey = (keyId: string): Buffer => {
  const bytes = readFileSync(`${process.env.SEAL_KEYS_DIR}/${keyId}.key`)
  const key = bytes.length === 32 ? bytes : Buffer.from(bytes.toString().trim(), 'base64')
  if (key.length !== 32) throw new Error(`the seal key ${keyId} has not 32 bytes`)
  return key
}
