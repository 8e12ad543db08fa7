/** The rules that concern several settings at once. Each adds its problems to the list. */
import type { Problem } from './setting-values.ts'

/** Settings that need another one. Without it, the program would ignore them silently. */
const together: readonly (readonly [given: string, needed: string])[] = [
  ['KAFKA_SASL_USERNAME', 'KAFKA_SASL_MECHANISM'],
  ['KAFKA_SASL_PASSWORD', 'KAFKA_SASL_MECHANISM'],
  ['KAFKA_SASL_TOKEN_FILE', 'KAFKA_SASL_MECHANISM'],
  ['KAFKA_SSL_CA_FILE', 'KAFKA_SSL'],
  ['ELASTICSEARCH_USERNAME', 'ELASTICSEARCH_PASSWORD'],
  ['ELASTICSEARCH_PASSWORD', 'ELASTICSEARCH_USERNAME'],
  ['RECEIPTS_HOST', 'RECEIPTS_PORT'],
  ['AUDIT_STRICT', 'AUDIT_LOG'],
  ['KAFKA_SSL_CERT_FILE', 'KAFKA_SSL'],
  ['KAFKA_SSL_CERT_FILE', 'KAFKA_SSL_KEY_FILE'],
  ['KAFKA_SSL_KEY_FILE', 'KAFKA_SSL_CERT_FILE'],
  ['SEAL_KEYS_VAULT_URL', 'SEAL_KEYS_DIR'],
  ['SEAL_KEYS_VAULT_URL', 'SEAL_KEYS_VAULT_TOKEN'],
  ['SEAL_KEYS_VAULT_TOKEN', 'SEAL_KEYS_VAULT_URL'],
  ['SEAL_KEYS_VAULT_CA_FILE', 'SEAL_KEYS_VAULT_URL'],
  ['API_TLS_CERT_FILE', 'API_TLS_KEY_FILE'],
  ['API_TLS_KEY_FILE', 'API_TLS_CERT_FILE'],
]

/** The settings that each kind of SASL mechanism needs. Those of the other kind would be ignored silently. */
const passwordSettings = ['KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD']
const tokenSettings = ['KAFKA_SASL_TOKEN_FILE']

type Given = {
  /** The settings of the program, by name. */
  readonly names: object
  /** As given; a secret that is in a file has the content of the file. */
  readonly texts: Readonly<Record<string, string | undefined>>
  /** As read. */
  readonly values: Readonly<Record<string, unknown>>
}

export const checkTogether = (given: Given, problems: Problem[]): void => {
  checkNeeded(given, problems)
  checkSasl(given, problems)
  checkElasticsearchName(given, problems)
  checkTopics(given, problems)
}

const hasProblem = (problems: readonly Problem[], name: string): boolean =>
  problems.some(problem => problem.name === name || problem.name === `${name}_FILE`)

const checkNeeded = ({ names, texts }: Given, problems: Problem[]): void => {
  for (const [given, needed] of together) {
    if (!(given in names) || !texts[given] || hasProblem(problems, needed)) continue
    const isOff = needed === 'KAFKA_SSL' && texts[needed] === 'false'
    if (isOff) problems.push({ name: needed, expected: `true, because ${given} is set`, got: '"false"' })
    else if (!texts[needed]) {
      problems.push({ name: needed, expected: `a value, because ${given} is set`, got: 'nothing' })
    }
  }
}

const checkSasl = ({ names, texts }: Given, problems: Problem[]): void => {
  const mechanism = texts.KAFKA_SASL_MECHANISM
  if (!('KAFKA_SASL_MECHANISM' in names) || !mechanism) return
  const usesToken = mechanism === 'oauthbearer'
  const because = usesToken ? 'because KAFKA_SASL_MECHANISM is oauthbearer' : 'because KAFKA_SASL_MECHANISM is set'
  for (const name of usesToken ? tokenSettings : passwordSettings) {
    if (texts[name] || hasProblem(problems, name)) continue
    problems.push({ name, expected: `a value, ${because}`, got: 'nothing' })
  }
  const reason = usesToken ? because : 'because KAFKA_SASL_MECHANISM is not oauthbearer'
  for (const name of usesToken ? passwordSettings : tokenSettings) {
    if (!texts[name] || hasProblem(problems, 'KAFKA_SASL_MECHANISM')) continue
    problems.push({ name, expected: `no value, ${reason}`, got: 'a value' })
  }
}

/** With two names, it is not known which one a client sends. */
const checkElasticsearchName = ({ names, texts, values }: Given, problems: Problem[]): void => {
  if (!('ELASTICSEARCH_USERNAME' in names) || !texts.ELASTICSEARCH_USERNAME) return
  const urls = values.ELASTICSEARCH_URL
  const isInUrl = Array.isArray(urls) && urls.some(one => new URL(one).username !== '')
  const other = isInUrl ? 'ELASTICSEARCH_URL has a name' : texts.ELASTICSEARCH_API_KEY && 'ELASTICSEARCH_API_KEY is set'
  if (other) problems.push({ name: 'ELASTICSEARCH_USERNAME', expected: `no value, because ${other}`, got: 'a value' })
}

/** A publisher of payouts must not be able to create API keys. */
const checkTopics = ({ values }: Given, problems: Problem[]): void => {
  const { KAFKA_EVENTS_TOPIC: events, KAFKA_API_KEYS_TOPIC: apiKeys } = values
  if (events === undefined || events !== apiKeys) return
  const expected = 'a topic other than KAFKA_EVENTS_TOPIC'
  problems.push({ name: 'KAFKA_API_KEYS_TOPIC', expected, got: JSON.stringify(apiKeys) })
}
