/**
 * In: the id of a seal key. Out: the key from HashiCorp Vault, or OpenBao, which has the same API: version 1 of the
 *   exportable transit key with this name.
 * Promises: ends within SEAL_VAULT_TIME_MAX, also if nothing answers. The token goes to the address of the setting
 *   only: no redirect is followed. At most SEAL_VAULT_CONNECTIONS requests are under way.
 * Can go wrong: no answer, no right, no such secrets engine, Vault is sealed → `unavailable`. No key → `unknown`: only
 *   a receipt proves that it was destroyed.
 */
import { Agent as PlainAgent, request as plainRequest } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { SEAL_KEY_BYTES } from '../../schemas/sealed/sealed-text.ts'
import { SEAL_VAULT_ANSWER_BYTES, SEAL_VAULT_CONNECTIONS, SEAL_VAULT_TIME_MAX } from '../limits.ts'
import type { ReadSealKey, SealKey } from './key-store.ts'

export type VaultOptions = {
  readonly url: string
  /** Path of the transit secrets engine. */
  readonly mount: string
  /** Read for each request: another program may renew it. */
  readonly token: () => string | undefined
  /** PEM; undefined for the certificates of the system. */
  readonly ca: string | undefined
  readonly timeMax?: number
  /** Called with the reason why there is no answer. */
  readonly onError?: (error: Error) => void
}
/** `errors` are Vault's own words about a refusal. */
export type VaultAnswer = { readonly status: number; readonly data: unknown; readonly errors: readonly string[] }
export type Vault = {
  readonly read: ReadSealKey
  /** Undefined if there was no answer. @param path below the mount */
  readonly send: (method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) => Promise<VaultAnswer | undefined>
}

export const createVault = (options: VaultOptions): Vault => {
  const { url, mount, token, ca, timeMax = SEAL_VAULT_TIME_MAX, onError = () => undefined } = options
  const isTls = new URL(url).protocol === 'https:'
  const pool = { keepAlive: true, maxSockets: SEAL_VAULT_CONNECTIONS }
  const agent = isTls ? new TlsAgent({ ...pool, ...(ca !== undefined && { ca }) }) : new PlainAgent(pool)
  const base = `${url.replace(/\/+$/, '')}/v1/${mount}`

  const send: Vault['send'] = (method, path, body) =>
    new Promise(resolve => {
      const json = body === undefined ? '' : JSON.stringify(body)
      const headers = {
        ...(json !== '' && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) }),
        'x-vault-token': token() ?? '',
        'x-vault-request': 'true',
      }
      const signal = AbortSignal.timeout(timeMax)
      const asked = (isTls ? tlsRequest : plainRequest)(`${base}/${path}`, { method, agent, headers, signal })
      asked.on('error', error => {
        onError(error)
        resolve(undefined)
      })
      asked.on('response', answer => {
        const chunks: Buffer[] = []
        let bytes = 0
        answer.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          if (bytes > SEAL_VAULT_ANSWER_BYTES) answer.destroy()
          else chunks.push(chunk)
        })
        answer.on('error', () => resolve(undefined))
        answer.on('close', () =>
          resolve(answer.complete ? parse(answer.statusCode ?? 0, Buffer.concat(chunks)) : undefined),
        )
      })
      asked.end(json)
    })
  return { send, read: async id => keyIn(await send('GET', `export/encryption-key/${id}/1`)) }
}

/** Returns undefined for an answer that is no JSON: it does not come from Vault. */
const parse = (status: number, bytes: Buffer): VaultAnswer | undefined => {
  if (status === 204) return { status, data: undefined, errors: [] }
  try {
    const body: { data?: unknown; errors?: unknown } | null = JSON.parse(bytes.toString('utf8'))
    const errors = Array.isArray(body?.errors) ? body.errors.map(String) : []
    // Some answers below `sys` have no `data`.
    return { status, data: body?.data ?? body, errors }
  } catch {
    return undefined
  }
}

const keyIn = (answer: VaultAnswer | undefined): SealKey => {
  if (answer?.status === 200) return exportedKey(answer.data)
  // Vault names a secrets engine that is not there in `errors`. For a key that is not there the list is empty.
  if (answer?.status === 404 && answer.errors.length === 0) return { state: 'unknown' }
  // The key exists, and may not be exported, or is of another type.
  if (answer?.status === 400) return { state: 'malformed' }
  return { state: 'unavailable' }
}

/** Only version 1: a sealed text does not name a version, so a rotation changes nothing. */
const exportedKey = (data: unknown): SealKey => {
  const { keys = undefined }: { keys?: { '1'?: unknown } | null } = data ?? {}
  const text = keys?.['1']
  const key = typeof text === 'string' ? Buffer.from(text, 'base64') : Buffer.alloc(0)
  return key.length === SEAL_KEY_BYTES ? { state: 'here', key } : { state: 'malformed' }
}
