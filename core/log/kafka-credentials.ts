/**
 * The credentials of a Kafka client, from settings: TLS and SASL. Each is read again when the client needs it. Programs
 * give the functions that need Node or the client.
 */
import {
  type kafkaSettings,
  type Read,
  type ReadSettingFile,
  readSecretFile,
  readSetting,
  SettingsError,
} from '../runtime/index.ts'

type KafkaSettings = Read<typeof kafkaSettings>

type Parts = {
  readonly readFile: ReadSettingFile
  /** Throws if the key does not fit the certificate. */
  readonly requirePair: (pair: { readonly cert: Buffer; readonly key: Buffer }) => unknown
  /** Makes an error that the client takes for transient. */
  readonly noToken: (message: string) => Error
}

type Password<Mechanism> = { readonly mechanism: Mechanism; readonly username: string; readonly password: string }
type Sasl =
  | Password<'plain'>
  | Password<'scram-sha-256'>
  | Password<'scram-sha-512'>
  | { readonly mechanism: 'oauthbearer'; readonly oauthBearerProvider: () => Promise<{ readonly value: string }> }

/** A connection authenticates again this long before its session ends: with the token that the file has by then. */
const REAUTHENTICATE_BEFORE_MS = 10_000

/**
 * Returns the options of a Kafka client for TLS and SASL.
 * @throws SettingsError if a file cannot be read, a key does not fit its certificate, or there is no token
 */
export const credentialsOf = (settings: KafkaSettings, parts: Parts) => {
  const sasl = saslOptions(settings, parts)
  return {
    reauthenticationThreshold: REAUTHENTICATE_BEFORE_MS,
    ...(settings.KAFKA_SSL === 'true' && { ssl: sslOptions(settings, parts) }),
    ...(sasl && { sasl }),
  }
}

const sslOptions = (settings: KafkaSettings, { readFile, requirePair }: Parts) => {
  const { KAFKA_SSL_CA_FILE: ca, KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: key } = settings
  const trusted = ca === undefined ? {} : { ca: [readSetting('KAFKA_SSL_CA_FILE', ca, readFile)] }
  if (cert === undefined || key === undefined) return ca === undefined ? true : trusted
  const readPair = () => {
    const pair = {
      cert: readSetting('KAFKA_SSL_CERT_FILE', cert, readFile),
      key: readSetting('KAFKA_SSL_KEY_FILE', key, readFile),
    }
    try {
      requirePair(pair)
    } catch {
      const expected = 'the key of the certificate in KAFKA_SSL_CERT_FILE, both as PEM'
      throw new SettingsError([{ name: 'KAFKA_SSL_KEY_FILE', expected, got: JSON.stringify(key) }])
    }
    return pair
  }
  let pair = readPair()
  // The client reads these properties, in this order, for each connection.
  return {
    ...trusted,
    get cert() {
      try {
        pair = readPair()
      } catch {
        // Another program writes the files at the moment: the previous pair stays in use.
      }
      return pair.cert
    },
    get key() {
      return pair.key
    },
  }
}

const saslOptions = (settings: KafkaSettings, { readFile, noToken }: Parts): Sasl | undefined => {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_TOKEN_FILE: tokenFile = '' } = settings
  if (mechanism !== 'oauthbearer') {
    return (
      mechanism && {
        mechanism,
        username: settings.KAFKA_SASL_USERNAME ?? '',
        // The client reads it for each authentication.
        get password() {
          return settings.KAFKA_SASL_PASSWORD ?? ''
        },
      }
    )
  }
  if (readToken(tokenFile, readFile) === undefined) {
    const expected = 'a file that can be read and has a token'
    throw new SettingsError([{ name: 'KAFKA_SASL_TOKEN_FILE', expected, got: JSON.stringify(tokenFile) }])
  }
  // Each authentication reads the file again: another program writes the next token before the present one ends.
  const oauthBearerProvider = async () => {
    const value = readToken(tokenFile, readFile)
    // Transient: the file may be empty for the moment in which it is written.
    if (value === undefined) throw noToken('KAFKA_SASL_TOKEN_FILE has no token')
    return { value }
  }
  return { mechanism, oauthBearerProvider }
}

/** Returns undefined if the file cannot be read or has no token. */
const readToken = (path: string, readFile: ReadSettingFile): string | undefined =>
  readSecretFile(path, readFile) || undefined
