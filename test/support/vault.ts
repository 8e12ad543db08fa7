/**
 * A double of HashiCorp Vault: the part of the transit secrets engine's HTTP API that this project uses, in memory. No
 * test runs against a real Vault. It follows the pages "Transit secrets engine (API)" of Vault's API documentation
 * (one stored version was read), and for the statuses of refusals, which the pages do not name,
 * the sources of Vault: 404 with no errors for a key that is not there, 404 with an error for an engine that is not
 * there, 400 for a key that may not be exported or deleted, 403 for a token, 503 while it is sealed. Of the pages
 * "/sys/health", "/sys/capabilities-self" and "Token auth method (API)" it has the part that the doctor asks: the
 * status of the health and the id of the cluster, the capabilities of the transit paths, and the time that the token
 * has left. The first two pages were read, the third was not.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { join } from 'node:path'
import type { Scope } from './scope.ts'
import { sealKey } from './seal.ts'

type TransitKey = { readonly versions: readonly Buffer[]; readonly exportable: boolean; deletionAllowed: boolean }
type Rights = 'export' | 'all'
type Trouble = 'sealed' | 'standby' | 'silent' | 'redirects' | 'no engine' | 'not JSON' | 'endless' | undefined

export type VaultDouble = {
  url: string
  readonly keys: Map<string, TransitKey>
  /** Tokens and their rights. */
  readonly tokens: Map<string, Rights>
  /** The id that its health tells; undefined for none. */
  cluster: string | undefined
  /** Seconds that each token has left; 0 for ever. */
  ttl: number
  /** Methods and paths of all requests. */
  readonly requests: string[]
  /** Requests under way, and the most that there were. */
  readonly underWay: { now: number; most: number }
  trouble: Trouble
  readonly put: (id: string, key?: Partial<TransitKey>) => void
  readonly stop: () => Promise<void>
  readonly start: () => Promise<void>
}

export const startVault = async (
  scope: Scope,
  { ids = [], mount = 'transit', tls = false }: { ids?: readonly string[]; mount?: string; tls?: boolean } = {},
): Promise<VaultDouble> => {
  const vault: VaultDouble = {
    url: '',
    keys: new Map(),
    tokens: new Map([
      ['api-token', 'export'],
      ['eraser-token', 'all'],
    ]),
    cluster: 'c1',
    ttl: 2_764_800,
    requests: [],
    underWay: { now: 0, most: 0 },
    trouble: undefined,
    put: (id, key) => vault.keys.set(id, { versions: [sealKey(id)], exportable: true, deletionAllowed: false, ...key }),
    stop: async () => {
      server.closeAllConnections()
      server.close()
    },
    start: async () => {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
  }
  for (const id of ids) vault.put(id)

  const answer: RequestListener = async (request, response) => {
    const { method = '', url = '' } = request
    vault.requests.push(`${method} ${url}`)
    vault.underWay.most = Math.max(vault.underWay.most, ++vault.underWay.now)
    response.on('close', () => vault.underWay.now--)
    const body = await bodyOf(request)
    if (vault.trouble === 'silent') return
    if (vault.trouble === 'redirects') {
      response.writeHead(307, { location: `${vault.url}${url}?followed` }).end()
      return
    }
    if (vault.trouble === 'not JSON') {
      response.writeHead(200).end('<html>a proxy</html>')
      return
    }
    if (vault.trouble === 'endless') {
      response.writeHead(200)
      const more = setInterval(() => response.write(Buffer.alloc(16_384, ' ')), 1)
      response.on('close', () => clearInterval(more))
      return
    }
    const [status, json] = decide(vault, mount, { method, url, body, token: request.headers['x-vault-token'] })
    response.writeHead(status, { 'content-type': 'application/json' }).end(json && JSON.stringify(json))
  }
  const folder = join(import.meta.dirname, 'tls')
  const pem = (name: string) => readFileSync(join(folder, name))
  const server = tls ? createTlsServer({ cert: pem('cert.pem'), key: pem('key.pem') }, answer) : createServer(answer)
  let port = 0
  await vault.start()
  const address = server.address()
  port = typeof address === 'object' && address ? address.port : 0
  vault.url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`
  scope.onTestFinished(vault.stop)
  return vault
}

type Asked = { readonly method: string; readonly url: string; readonly body: string; readonly token: unknown }
const errors = (...texts: string[]) => ({ errors: texts })

const decide = (vault: VaultDouble, mount: string, { method, url, body, token }: Asked): [number, object?] => {
  if (url === '/v1/sys/health') return healthOf(vault)
  if (vault.trouble === 'sealed') return [503, errors('Vault is sealed')]
  const rights = vault.tokens.get(String(token))
  if (rights === undefined) return [403, errors('permission denied')]
  if (url === '/v1/auth/token/lookup-self') return [200, { data: { ttl: vault.ttl, renewable: false } }]
  if (method === 'POST' && url === '/v1/sys/capabilities-self') return [200, capabilitiesOf(body, mount, rights)]
  if (vault.trouble === 'no engine' || !url.startsWith(`/v1/${mount}/`)) {
    return [404, errors(`no handler for route "${url.slice('/v1/'.length)}". route entry not found.`)]
  }
  const [, exported] = /\/export\/encryption-key\/(\w(?:[\w.-]*\w)?)\/1$/.exec(url) ?? []
  if (method === 'GET' && exported !== undefined) {
    const key = vault.keys.get(exported)
    if (key === undefined) return [404, errors()]
    if (!key.exportable) return [400, errors('private key material is not exportable')]
    return [200, { data: { name: exported, keys: { '1': key.versions[0]?.toString('base64') } } }]
  }
  const [, name = '', config] = /\/keys\/(\w(?:[\w.-]*\w)?)(\/config)?$/.exec(url) ?? []
  if (rights !== 'all') return [403, errors('permission denied')]
  const key = vault.keys.get(name)
  if (method === 'POST' && config) {
    if (key === undefined) return [400, errors(`no existing key named ${name} could be found`)]
    key.deletionAllowed = JSON.parse(body).deletion_allowed === true
    return [200, { data: { name, deletion_allowed: key.deletionAllowed } }]
  }
  if (method === 'DELETE' && !config) {
    if (key === undefined) return [400, errors(`error deleting policy ${name}: could not delete key; not found`)]
    if (!key.deletionAllowed)
      return [400, errors(`error deleting policy ${name}: deletion is not allowed for this key`)]
    vault.keys.delete(name)
    return [204]
  }
  return [405, errors('unsupported operation')]
}

const healthOf = ({ trouble, cluster }: VaultDouble): [number, object] => {
  const [sealed, standby] = [trouble === 'sealed', trouble === 'standby']
  return [
    sealed ? 503 : standby ? 429 : 200,
    { initialized: true, sealed, standby, ...(!sealed && { cluster_id: cluster }) },
  ]
}

/** As the page shows it: each path of the request, at the top. */
const capabilitiesOf = (body: string, mount: string, rights: Rights): object => {
  const { paths }: { paths: readonly string[] } = JSON.parse(body)
  const of = (path: string): string[] => {
    if (path.startsWith(`${mount}/export/`)) return ['read']
    if (rights !== 'all' || !path.startsWith(`${mount}/keys/`)) return ['deny']
    return path.endsWith('/config') ? ['update'] : ['delete']
  }
  return Object.fromEntries(paths.map(path => [path, of(path)]))
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
