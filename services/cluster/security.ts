/**
 * Secures the brokers of one run. Clients authenticate at one listener with SASL over TLS (SCRAM-SHA-512, PLAIN or
 * OAUTHBEARER), and at another one with a client certificate. The name of a user is the same in all of them. Without an
 * ACL a user may do nothing; only `admin` may do everything. Keys, passwords and tokens are files of a folder that only
 * the user of this process can read. It is deleted at the end, however this process ends.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { runOnExit } from '../cleanup-on-exit.ts'
import { temporaryFolder } from '../folder.ts'
import type { Environment } from '../service.ts'
import { type CertificateFiles, createAuthority } from './certificates.ts'
import { createTokenSigner, tokenAudience, tokenIssuer } from './tokens.ts'

/** The user that may do everything. */
export const adminUser = 'admin'
/** The brokers themselves, by their certificate. */
const brokerUser = 'broker'

export type SecureUser = {
  readonly name: string
  readonly password: string
  readonly passwordFile: string
  /** For mutual TLS. */
  readonly certificate: CertificateFiles
}

export type Security = AsyncDisposable & {
  readonly folder: string
  /** The certificate that clients trust. */
  readonly ca: string
  readonly users: ReadonlyMap<string, SecureUser>
  readonly signToken: (user: string, seconds: number) => string
  /** Settings, JVM options and format options that are the same for each broker. */
  readonly broker: {
    readonly settings: Readonly<Record<string, string>>
    readonly javaOptions: readonly string[]
    readonly format: readonly string[]
  }
}

const callbacks = 'org.apache.kafka.common.security.oauthbearer'
const modules = 'org.apache.kafka.common.security'

/** Makes the credentials of `admin` and of more users. @throws Error if there is no openssl */
export const createSecurity = async (environment: Environment, users: readonly string[]): Promise<Security> => {
  await using unfinished = new AsyncDisposableStack()
  const folder = await mkdtemp(join(await temporaryFolder(environment), 'commission-security-'))
  const exitHook = runOnExit('rm -rf "$0"', folder)
  unfinished.defer(async () => {
    await rm(folder, { recursive: true, force: true })
    await exitHook.revoke()
  })

  const authority = await createAuthority(folder, environment)
  const broker = await authority.issue(brokerUser)
  const keystore = join(folder, 'keystore.pem')
  await writeFile(keystore, (await readFile(broker.key, 'utf8')) + (await readFile(broker.cert, 'utf8')))
  const signer = createTokenSigner(Date.now)
  const jwks = join(folder, 'jwks.json')
  await writeFile(jwks, signer.jwks)

  const made = await Promise.all([adminUser, ...users].map(name => createUser(name, folder, authority.issue)))
  const known = new Map(made.map(user => [user.name, user]))
  const stack = unfinished.move()
  return {
    folder,
    ca: authority.ca,
    users: known,
    signToken: signer.sign,
    broker: {
      settings: brokerSettings({ keystore, ca: authority.ca, jwks: String(pathToFileURL(jwks)), users: made }),
      // Kafka reads keys for tokens only from places that are named here.
      javaOptions: [`-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=${pathToFileURL(jwks)}`],
      format: made.flatMap(({ name, password }) => [
        '--add-scram',
        `SCRAM-SHA-512=[name=${name},password=${password}]`,
      ]),
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const createUser = async (
  name: string,
  folder: string,
  issue: (name: string) => Promise<CertificateFiles>,
): Promise<SecureUser> => {
  const password = randomBytes(18).toString('base64url')
  const passwordFile = join(folder, `${name}.password`)
  await writeFile(passwordFile, `${password}\n`)
  return { name, password, passwordFile, certificate: await issue(name) }
}

type BrokerFiles = {
  readonly keystore: string
  readonly ca: string
  /** URL of the JWKS file. */
  readonly jwks: string
  readonly users: readonly SecureUser[]
}

const brokerSettings = ({ keystore, ca, jwks, users }: BrokerFiles): Record<string, string> => ({
  'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
  'allow.everyone.if.no.acl.found': 'false',
  'super.users': `User:${adminUser};User:${brokerUser}`,
  'listener.security.protocol.map': 'SASL_SSL:SASL_SSL,SSL:SSL,CONTROLLER:SSL',
  'inter.broker.listener.name': 'SSL',
  'ssl.keystore.type': 'PEM',
  'ssl.keystore.location': keystore,
  'ssl.truststore.type': 'PEM',
  'ssl.truststore.location': ca,
  'ssl.client.auth': 'required',
  'ssl.principal.mapping.rules': 'RULE:^CN=([^,]+)$/$1/,DEFAULT',
  'listener.name.sasl_ssl.ssl.client.auth': 'none',
  'sasl.enabled.mechanisms': 'SCRAM-SHA-512,PLAIN,OAUTHBEARER',
  'listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config': `${modules}.scram.ScramLoginModule required;`,
  'listener.name.sasl_ssl.plain.sasl.jaas.config': `${modules}.plain.PlainLoginModule required ${users
    .map(({ name, password }) => `user_${name}="${password}"`)
    .join(' ')};`,
  'listener.name.sasl_ssl.oauthbearer.sasl.jaas.config': `${callbacks}.OAuthBearerLoginModule required;`,
  'listener.name.sasl_ssl.oauthbearer.sasl.server.callback.handler.class': `${callbacks}.OAuthBearerValidatorCallbackHandler`,
  'listener.name.sasl_ssl.oauthbearer.sasl.oauthbearer.jwks.endpoint.url': jwks,
  'listener.name.sasl_ssl.oauthbearer.sasl.oauthbearer.expected.audience': tokenAudience,
  'listener.name.sasl_ssl.oauthbearer.sasl.oauthbearer.expected.issuer': tokenIssuer,
})
