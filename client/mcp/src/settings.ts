/** The settings of the server for agents, from its environment. Messages never have the key or the address. */

export type AgentSettings = {
  /** The address of the API with its path. */
  readonly baseUrl: string
  readonly key: string
}

/** All problems at once, a sentence each. */
export class AgentSettingsError extends Error {
  override name = 'AgentSettingsError'
}

/** @throws AgentSettingsError */
export const readAgentSettings = (environment: Readonly<Record<string, string | undefined>>): AgentSettings => {
  const { API: baseUrl = '', KEY: key = '' } = environment
  const problems = [addressProblem(baseUrl), keyProblem(key)].filter(problem => problem !== undefined)
  if (problems.length > 0) throw new AgentSettingsError(problems.join('\n'))
  return { baseUrl, key }
}

const addressProblem = (address: string): string | undefined => {
  const expected = 'API: expected the address of the API with its path, as https://example.com/api/v1'
  if (address === '') return `${expected}, got nothing`
  if (!URL.canParse(address)) return `${expected}, got ${address.length} characters that are no address`
  const { protocol, username, password, search, hash } = new URL(address)
  if (protocol !== 'http:' && protocol !== 'https:') return `${expected}, got another protocol`
  // A request to such an address fails, and the error of the runtime quotes it.
  if (username !== '' || password !== '') return `${expected}, got one with a user name or a password`
  return search === '' && hash === '' ? undefined : `${expected}, got one with a query or a fragment`
}

const keyProblem = (key: string): string | undefined => {
  if (key === '') return 'KEY: expected an API key, got nothing'
  // The runtime quotes a header that it refuses.
  const isHeaderText = /^[\x21-\x7e]+$/.test(key)
  return isHeaderText
    ? undefined
    : `KEY: expected printable ASCII without spaces, got others in ${key.length} characters`
}
