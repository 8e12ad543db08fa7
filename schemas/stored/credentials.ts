/** The API key for Elasticsearch, as the header of a request. When a key is refused, its file may have another one. */

export type Credentials = {
  readonly header: () => Readonly<Record<string, string>>
  /** Reads the key again, after Elasticsearch refused this header. @returns whether there is another key now */
  readonly renew: (refused: Readonly<Record<string, string>>) => boolean
}

/** @param read returns the key; undefined if there is none */
export const createCredentials = (read: () => string | undefined): Credentials => {
  let key = read()
  const header = (): Record<string, string> => (key === undefined ? {} : { authorization: `ApiKey ${key}` })
  return {
    header,
    renew: refused => {
      key = read()
      return header().authorization !== refused.authorization
    },
  }
}

/** The client has them, or needs none. */
export const noCredentials = createCredentials(() => undefined)
