/**
 * Checks of Vault: it answers and is open, its certificate is trusted, the token is valid, and may do what the identity
 * does. Leaves no trace in Vault but lines in its audit log: an export of a key that does not exist shows the right to
 * export, and Vault itself tells the capabilities of a token.
 */
import { randomUUID } from 'node:crypto'
import { createVault, type VaultAnswer, type VaultOptions } from '../../core/reading/index.ts'
import { type Finding, failed, notTried, ok, warning } from './finding.ts'

export type VaultAccess = Pick<VaultOptions, 'url' | 'mount' | 'token' | 'ca'>

const CHECK = 'Vault'
/** Seconds: a token that ends within them gives a warning. */
const WARN_SECONDS = 86_400

export const checkVault = async (access: VaultAccess, use: 'read' | 'erase'): Promise<Finding[]> => {
  const { url, mount } = access
  // The setting may have a name and a password.
  const { origin } = new URL(url)
  let error: Error | undefined
  const below = (path: string) =>
    createVault({
      ...access,
      mount: path,
      onError: found => {
        error = found
      },
    })
  const health = await below('sys').send('GET', 'health')
  if (health === undefined) return [failed(CHECK, `${origin} gives no answer: ${reasonOf(error)}`, mendOf(error))]
  const closed = closedIn(health)
  if (closed) return [closed]
  const standby = STANDBY.has(health.status) ? ', and is a standby, which forwards requests' : ''
  const findings = [ok(CHECK, `answers${standby}`)]
  if (isInTheOpen(url)) {
    findings.push(
      warning(CHECK, `${origin} is not TLS: token and keys are sent in the open`, 'use an address with https:'),
    )
  }
  const token = await checkToken(await below('auth/token').send('GET', 'lookup-self'))
  const exported = checkExport(await below(mount).send('GET', `export/encryption-key/doctor-${randomUUID()}/1`), mount)
  findings.push(token, exported)
  if (use === 'erase' && exported.outcome === 'ok') {
    const paths = [`${mount}/keys/doctor/config`, `${mount}/keys/doctor`] as const
    findings.push(...checkErasure(await below('sys').send('POST', 'capabilities-self', { paths }), mount, paths))
  }
  return findings
}

/** Statuses of `sys/health`: a standby, a performance standby. */
const STANDBY = new Set([429, 473])

const closedIn = ({ status }: VaultAnswer): Finding | undefined => {
  if (status === 503)
    return failed(CHECK, 'it is sealed: records with sealed texts are refused', 'vault operator unseal')
  if (status === 501) return failed(CHECK, 'it is not initialized', 'vault operator init, then look at the address')
  if (status === 474) return failed(CHECK, 'it is a standby without its active node', 'look at the log of Vault')
  if (status === 530) return failed(CHECK, 'it was removed from its cluster', 'use the address of another node')
  if (status !== 472) return undefined
  return failed(
    CHECK,
    'it is a secondary for disaster recovery, which serves no keys',
    'use the address of the primary',
  )
}

const isInTheOpen = (url: string): boolean => {
  const { protocol, hostname } = new URL(url)
  return protocol !== 'https:' && !['localhost', '127.0.0.1', '[::1]'].includes(hostname)
}

const codeOf = (error: Error | undefined): string =>
  error === undefined ? 'no JSON, as from a proxy' : 'code' in error ? String(error.code) : error.name

const reasonOf = (error: Error | undefined): string =>
  error?.name === 'AbortError' ? 'it was silent for too long' : codeOf(error)

const mendOf = (error: Error | undefined): string => {
  const code = codeOf(error)
  if (/CERT|SIGNATURE|ISSUER|TLS|SSL/.test(code)) {
    return 'put the certificate of the authority into SEAL_KEYS_VAULT_CA_FILE, and use a name of the certificate'
  }
  return 'look at SEAL_KEYS_VAULT_URL, and at the network between this machine and Vault'
}

const NEW_TOKEN = 'write a new token into SEAL_KEYS_VAULT_TOKEN_FILE; Vault Agent does it'

const checkToken = (answer: VaultAnswer | undefined): Finding => {
  const check = `${CHECK}: token`
  if (answer?.status === 403) {
    return failed(check, 'Vault refuses it: it ended, was revoked, or lacks the policy default', NEW_TOKEN)
  }
  if (answer?.status !== 200) return notTried(check, `Vault answers ${answer?.status ?? 'nothing'}`)
  const { ttl, renewable }: { ttl?: unknown; renewable?: unknown } = answer.data ?? {}
  if (typeof ttl !== 'number') return notTried(check, 'Vault does not tell when it ends')
  if (ttl === 0) return warning(check, 'it never ends', 'use a token with an end, which Vault Agent renews')
  const detail = `it ends in ${ttl} s${renewable === true ? ', unless somebody renews it' : ''}`
  return ttl < WARN_SECONDS && renewable !== true ? warning(check, detail, NEW_TOKEN) : ok(check, detail)
}

/** For a key that does not exist, Vault answers 404 without errors. */
const checkExport = (answer: VaultAnswer | undefined, mount: string): Finding => {
  const check = `${CHECK}: read on ${mount}/export/encryption-key/+/1`
  if (answer?.status === 404 && answer.errors.length === 0) return ok(check)
  if (answer?.status === 404) {
    const mend = `look at SEAL_KEYS_VAULT_MOUNT, or: vault secrets enable -path=${mount} transit`
    return failed(check, `there is no secrets engine at ${mount}`, mend)
  }
  if (answer?.status === 403)
    return failed(check, 'Vault refuses it', policyOf(`${mount}/export/encryption-key/+/1`, 'read'))
  return failed(check, `Vault answers ${answer?.status ?? 'nothing'}`, 'look at the log of Vault')
}

const checkErasure = (
  answer: VaultAnswer | undefined,
  mount: string,
  [config, key]: readonly [config: string, key: string],
): Finding[] => {
  const wanted = [
    { path: config, policy: `${mount}/keys/+/config`, capability: 'update' },
    { path: key, policy: `${mount}/keys/+`, capability: 'delete' },
  ]
  const all: Readonly<Record<string, unknown>> | undefined = isRecord(answer?.data) ? answer.data : undefined
  return wanted.map(({ path, policy, capability }) => {
    const check = `${CHECK}: ${capability} on ${policy}`
    const capabilities = all?.[path]
    if (answer?.status !== 200 || !Array.isArray(capabilities)) {
      return notTried(check, `Vault answers ${answer?.status ?? 'nothing'} to sys/capabilities-self`)
    }
    if (capabilities.includes(capability) || capabilities.includes('root')) return ok(check)
    return failed(check, 'Vault refuses it: nobody can be erased', policyOf(policy, capability))
  })
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

const policyOf = (path: string, capability: string): string =>
  `this line in the policy of the token: path "${path}" { capabilities = ["${capability}"] }`
