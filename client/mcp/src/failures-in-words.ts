/**
 * A failed read as words for an agent: what happened, and what to do. Messages of the runtime never get into them: they
 * can quote the key and the address.
 */
import { RefusedError } from '../../src/index.ts'
import { contractCodes } from './contract.ts'
import { ArgumentsError } from './tool.ts'

const askOperator = 'Ask whoever operates the API'

/** The next step after a refusal, by its status. */
const advice: Readonly<Record<number, string>> = {
  400: 'Change the arguments.',
  401: `The API does not accept the key of this server: it is unknown, revoked or expired, or it may not be used from here. ${askOperator} for another one, and set it as KEY. Other tools fail, too.`,
  403: `${askOperator} for a key with this permission. \`describe_access\` tells which tools work with the present one.`,
  404: 'No record has this id, or none that this key can read, or none at the moment that was asked for. Find ids with the tools that list. If they fail, too, `describe_access` checks the address in API.',
  429: 'The server waited, and asked again until its time was over. Wait a minute, then ask for less at once.',
  503: 'The server waited, and asked again until its time was over. Wait a minute, then ask the same again.',
}

/** Characters of a message and of a request id. Those of the API are shorter; a proxy can send anything. */
const MESSAGE_CHARACTERS_MAX = 500
const REQUEST_ID = /^[\w-]{1,64}$/

/**
 * @param key never gets into the words, also if an answer quotes it
 * @param namesRecord whether the call named a record: only then the API has an answer with status 404
 */
export const failureInWords = (error: unknown, key: string, namesRecord: boolean): string =>
  wordsOf(error, namesRecord).replaceAll(key, '[key]')

/** Whether a failure comes from this program, and neither from the arguments nor from the API or the way to it. */
export const isDefect = (error: unknown): boolean =>
  !(error instanceof ArgumentsError || error instanceof RefusedError || isUnanswered(error))

/** The time was over, the call was cancelled, or the connection broke: the errors of `fetch` have no own class. */
const isUnanswered = (error: unknown): boolean =>
  error instanceof DOMException ||
  (error instanceof TypeError && /^(?:fetch failed|terminated|the answer is no whole JSON)/.test(error.message))

const wordsOf = (error: unknown, namesRecord: boolean): string => {
  if (error instanceof ArgumentsError) return `Change the arguments: ${error.message}.`
  if (isDefect(error))
    return 'An internal defect of this server, or an answer that has not the form of the API: asking again does not help. Tell whoever runs this server; its standard error has the place.'
  if (!(error instanceof RefusedError))
    return 'The API did not answer: it cannot be reached at the address in API, or it took too long. Ask again later. If it stays so, check the address.'
  const { status, code, message, requestId } = error
  const report =
    requestId !== null && REQUEST_ID.test(requestId) ? ` For a report to the operator: request ${requestId}.` : ''
  if (status === 404 && !(namesRecord && code === 'not_found'))
    return `Nothing is there (status 404): the address in API is wrong, or something before the API has answered. Tell the person who runs this server to check that API ends with the path of the API, as https://example.com/api/v1. That says nothing about a record or a permission.${report}`
  if (!contractCodes.has(code))
    return `An answer with status ${status} that this server does not know: something before the API has answered, or a newer API. Check the address in API.${report}`
  return `The API refused: ${message.slice(0, MESSAGE_CHARACTERS_MAX)} ${advice[status] ?? 'Ask again later.'}${report}`
}
