/** Checks answers against the OpenAPI document of the API, with an independent library. */
import { type Document, OpenAPIBackend, SetMatchType } from 'openapi-backend'
import { refusals } from '../../schemas/errors.ts'
import { openapi } from '../../schemas/reference/openapi.ts'
import { formats } from '../../schemas/values.ts'

export type Asked = { readonly method: string; readonly path: string; readonly headers: Record<string, string> }
export type Answered = { readonly status: number; readonly headers: Headers; readonly text: string }
export type Judgement = {
  /** Operation and status; undefined if the OpenAPI document has no such method and path. */
  readonly what: string | undefined
  /** How request and answer violate the OpenAPI document, in words. */
  readonly violations: readonly string[]
}

/** `path` includes /api/v1. */
export type Describe = (asked: Asked, answered: Answered) => Judgement

/** @param definition parsed from the served JSON: the library fails on an object that occurs in several places */
export const createDescription = async (definition: object): Promise<Describe> => {
  const described = new OpenAPIBackend({
    definition: definition as Document,
    apiRoot: '/api/v1',
    quick: true,
    coerceTypes: true,
    ajvOpts: { strict: false, formats },
  })
  await described.init()
  return (given, { status, headers, text }) => {
    // A HEAD answer is a GET answer without the body.
    const asked = given.method === 'HEAD' ? { ...given, method: 'GET' } : given
    const operation = described.matchOperation(asked)
    if (operation?.operationId === undefined) return { what: undefined, violations: [] }
    const what = `${operation.operationId} ${status}`
    const isEmpty = status === 304 || given.method === 'HEAD'
    const body = text === '' ? undefined : JSON.parse(text)
    const checks = [
      status === 200 && described.validateRequest(asked, operation),
      body !== undefined && described.validateResponse(body, operation, status),
      // The last page of a list has no link.
      described.validateResponseHeaders(
        { link: '<https://a>; rel="next"', ...Object.fromEntries(headers) },
        operation,
        {
          statusCode: status,
          // A 429 for an address lacks the headers about the key.
          setMatchType: status === 429 ? SetMatchType.Any : SetMatchType.Superset,
        },
      ),
    ]
    const errors = checks.flatMap(check => (check === false ? [] : (check.errors ?? [])))
    return {
      what,
      violations: [
        ...(errors.length > 0 ? [`${what}: ${JSON.stringify(errors)}`] : []),
        ...(body === undefined || headers.has('link') === (body.has_more === true)
          ? []
          : [`${what} has a link, or none, and has_more is ${body.has_more}`]),
        ...(isEmpty === (text === '') ? [] : [`${what} ${isEmpty ? 'has a' : 'has no'} body`]),
        ...(isEmpty || isJson(headers) ? [] : [`${what} is ${headers.get('content-type')}`]),
        ...(status !== 429 || headers.has('retry-after') ? [] : [`${what} has no retry-after header`]),
        ...(String(status) in (operation.responses ?? {}) ? [] : [`${what} is not described`]),
      ],
    }
  }
}

let ours: Promise<Describe> | undefined

/** @throws Error if an answer violates the OpenAPI document, or an unknown request is not refused */
export const requireDescribed = async (asked: Asked, answered: Answered): Promise<void> => {
  ours ??= createDescription(JSON.parse(JSON.stringify(openapi)))
  const { what, violations } = (await ours)(asked, answered)
  const wrong = what === undefined ? notRefused(asked, answered) : violations
  if (wrong.length > 0) throw new Error(`${asked.method} ${asked.path}: ${wrong.join('; ')}`)
}

const isJson = (headers: Headers): boolean => headers.get('content-type') === 'application/json; charset=utf-8'

/** Returns why an answer is not a refusal in the usual form; empty if it is one. */
const notRefused = ({ method }: Asked, { status, headers, text }: Answered): string[] => {
  const { error, ...others } = text === '' ? { error: {} } : JSON.parse(text)
  const { code, message, ...more } = error ?? {}
  const fits =
    method === 'HEAD'
      ? status >= 400 && text === ''
      : refusals[code as keyof typeof refusals] === status && typeof message === 'string'
  const alone = Object.keys(others).length === 0 && Object.keys(more).length === 0
  return fits && alone && isJson(headers) && headers.has('x-request-id') ? [] : [`answered ${status}: ${text}`]
}
