/** The credentials for Elasticsearch: from settings, and as the header of a request. A file of a secret may change. */
import type { elasticsearchSettings, Read } from '../runtime/index.ts'

/** As the official client takes them. */
type Auth = { readonly apiKey: string } | { readonly username: string; readonly password: string }

/** Returns undefined if the settings have none. */
export const authOf = ({
  ELASTICSEARCH_API_KEY: apiKey,
  ELASTICSEARCH_USERNAME: username,
  ELASTICSEARCH_PASSWORD: password,
}: Read<typeof elasticsearchSettings>): Auth | undefined => {
  if (apiKey !== undefined) return { apiKey }
  return username === undefined || password === undefined ? undefined : { username, password }
}

export type Credentials = {
  readonly header: () => Readonly<Record<string, string>>
  /** Reads them again, after Elasticsearch refused this header. @returns whether there are others now */
  readonly renew: (refused: Readonly<Record<string, string>>) => boolean
}

/** @param read returns what `authOf` returns */
export const createCredentials = (read: () => Auth | undefined): Credentials => {
  let auth = read()
  const header = (): Record<string, string> => (auth === undefined ? {} : { authorization: authorizationOf(auth) })
  return {
    header,
    renew: refused => {
      auth = read()
      return header().authorization !== refused.authorization
    },
  }
}

const authorizationOf = (auth: Auth): string =>
  'apiKey' in auth
    ? `ApiKey ${auth.apiKey}`
    : `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`

/** The client has them, or needs none. */
export const noCredentials = createCredentials(() => undefined)
