/**
 * In: the id of a seal key. Out: the key from HashiCorp Vault, or OpenBao, which has the same API: version 1 of the
 *   exportable transit key with this name.
 * Promises: at most SEAL_VAULT_CONNECTIONS requests are under way, and others wait for a connection. With a connection,
 *   a request ends within SEAL_VAULT_TIME_MAX, also if nothing answers. The token goes to the address of the setting
 *   only: no redirect is followed. A namespace is part of the mount: no header names one.
 * Can go wrong: no answer, no right, no such secrets engine, Vault is sealed → `unavailable`, with the reason. No key →
 *   `unknown`: only a receipt proves that it was destroyed.
 */
import { Agent as PlainAgent, request as plainRequest } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { SEAL_KEY_BYTES } from '../../../schemas/sealed/sealed-text.ts'
import { abortReason, scheduleTimer } from '../../runtime/index.ts'
import type { ReadSealKey, SealKey } from './key-store.ts'
import { SEAL_VAULT_ANSWER_BYTES, SEAL_VAULT_CONNECTIONS, SEAL_VAULT_TIME_MAX } from './limits.ts'

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
export type Vault = Pick<VaultOptions, 'mount'> & {
  readonly read: ReadSealKey
  /** Undefined if there was no answer. @param path below the mount */
  readonly send: (method: Method, path: string, body?: object) => Promise<VaultAnswer | undefined>
  /** Tells this Vault from others at the same mount: the id of its cluster, unless it tells none, then its address. */
  readonly identities: () => Promise<readonly string[]>
}
type Method = 'GET' | 'POST' | 'DELETE'

export const createVault = (options: VaultOptions): Vault => {
  const { url, mount, token, ca, timeMax = SEAL_VAULT_TIME_MAX, onError = () => undefined } = options
  const isTls = new URL(url).protocol === 'https:'
  const pool = { keepAlive: true, maxSockets: SEAL_VAULT_CONNECTIONS }
  const agent = isTls ? new TlsAgent({ ...pool, ...(ca !== undefined && { ca }) }) : new PlainAgent(pool)
  const base = `${url.replace(/\/+$/, '')}/v1`

  /** Returns the answer of Vault, or the reason why Vault gave none. */
  const ask = (method: Method, path: string, body?: object, below = mount): Promise<VaultAnswer | string> =>
    new Promise(resolve => {
      const json = body === undefined ? '' : JSON.stringify(body)
      const headers = {
        ...(json !== '' && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) }),
        'x-vault-token': token() ?? '',
        'x-vault-request': 'true',
      }
      const asked = (isTls ? tlsRequest : plainRequest)(`${base}/${below}/${path}`, { method, agent, headers })
      asked.once('socket', () => {
        const cancel = scheduleTimer(timeMax, () => asked.destroy(abortReason('time_is_up')))
        asked.once('close', cancel)
      })
      asked.on('error', error => {
        onError(error)
        resolve(reasonOf(error, String('code' in error ? error.code : error.name)))
      })
      asked.on('response', answer => {
        const chunks: Buffer[] = []
        let bytes = 0
        answer.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          if (bytes > SEAL_VAULT_ANSWER_BYTES) answer.destroy()
          else chunks.push(chunk)
        })
        answer.on('error', error => resolve(reasonOf(error, 'no whole answer')))
        answer.on('close', () =>
          resolve(answer.complete ? parse(answer.statusCode ?? 0, Buffer.concat(chunks)) : 'no whole answer'),
        )
      })
      asked.end(json)
    })
  const described = `GET ${mount}/export/encryption-key/+/1`
  return {
    mount,
    send: async (...request) => {
      const answer = await ask(...request)
      return typeof answer === 'string' ? undefined : answer
    },
    identities: async () => [...clusterIn(await ask('GET', 'health', undefined, 'sys')), addressOf(url)],
    read: async id => keyIn(await ask('GET', `export/encryption-key/${id}/1`), described),
  }
}

/** Every node of a cluster tells its id, also without a token, but not while it is sealed, nor below a namespace. */
const clusterIn = (answer: VaultAnswer | string): string[] => {
  if (typeof answer === 'string') return []
  const { cluster_id }: { cluster_id?: unknown } = answer.data ?? {}
  return typeof cluster_id === 'string' && cluster_id !== '' ? [`cluster ${cluster_id}`] : []
}

/** Without the name and the password that the setting may have. */
const addressOf = (url: string): string => {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname.replace(/\/+$/, '')}`
}

/** An `AbortError` means that the time is up. */
const reasonOf = (error: Error, otherwise: string): string =>
  error.name === 'AbortError' ? 'no answer in time' : otherwise

/** An answer that is no JSON does not come from Vault. */
const parse = (status: number, bytes: Buffer): VaultAnswer | string => {
  if (status === 204) return { status, data: undefined, errors: [] }
  try {
    const body: { data?: unknown; errors?: unknown } | null = JSON.parse(bytes.toString('utf8'))
    const errors = Array.isArray(body?.errors) ? body.errors.map(String) : []
    // Some answers below `sys` have no `data`.
    return { status, data: body?.data ?? body, errors }
  } catch {
    return 'no JSON'
  }
}

/** @param described the request without the id of its key */
const keyIn = (answer: VaultAnswer | string, described: string): SealKey => {
  if (typeof answer === 'string') return { state: 'unavailable', vault: `${described}: ${answer}` }
  const { status, data, errors } = answer
  if (status === 200) {
    const key = exportedKey(data)
    if (key.length === SEAL_KEY_BYTES) return { state: 'here', key }
    return { state: 'malformed', vault: `${described}: no key of ${SEAL_KEY_BYTES} bytes` }
  }
  // Vault names a secrets engine that is not there in `errors`. For a key that is not there the list is empty.
  if (status === 404 && errors.length === 0) return { state: 'unknown' }
  // 400: the key exists, and may not be exported, or is of another type.
  return { state: status === 400 ? 'malformed' : 'unavailable', vault: `${described}: status ${status}` }
}

/** Returns version 1 of the key, because sealed texts name no version. Empty if Vault has no version 1. */
const exportedKey = (data: unknown): Buffer => {
  const { keys = undefined }: { keys?: { '1'?: unknown } | null } = data ?? {}
  const text = keys?.['1']
  return typeof text === 'string' ? Buffer.from(text, 'base64') : Buffer.alloc(0)
}
