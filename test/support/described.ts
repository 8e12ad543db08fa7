/** Holds answers against the API's own description, by a library that knows nothing of how the API is made. */
import { type Document, OpenAPIBackend, SetMatchType } from 'openapi-backend'
import { refusals } from '../../schemas/errors.ts'
import { openapi } from '../../schemas/reference/openapi.ts'
import { formats } from '../../schemas/values.ts'

export type Asked = { readonly method: string; readonly path: string; readonly headers: Record<string, string> }
export type Answered = { readonly status: number; readonly headers: Headers; readonly text: string }
export type Judgement = {
  /** Operation and status; undefined where nothing of that method and path is described. */
  readonly what: string | undefined
  /** What does not keep the description, in words. */
  readonly violations: readonly string[]
}

/** `path` is with /api/v1. */
export type Describe = (asked: Asked, answered: Answered) => Judgement

/** @param definition as it is served: the library loses what stands in more than one place as one object */
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
    // HEAD is answered like GET, without the body.
    const asked = given.method === 'HEAD' ? { ...given, method: 'GET' } : given
    const operation = described.matchOperation(asked)
    if (operation?.operationId === undefined) return { what: undefined, violations: [] }
    const what = `${operation.operationId} ${status}`
    const isEmpty = status === 304 || given.method === 'HEAD'
    const body = text === '' ? undefined : JSON.parse(text)
    const checks = [
      status === 200 && described.validateRequest(asked, operation),
      body !== undefined && described.validateResponse(body, operation, status),
      described.validateResponseHeaders(Object.fromEntries(headers), operation, {
        statusCode: status,
        // That of an address is without what the others tell of the key.
        setMatchType: status === 429 ? SetMatchType.Any : SetMatchType.Superset,
      }),
    ]
    const errors = checks.flatMap(check => (check === false ? [] : (check.errors ?? [])))
    return {
      what,
      violations: [
        ...(errors.length > 0 ? [`${what}: ${JSON.stringify(errors)}`] : []),
        ...(isEmpty === (text === '') ? [] : [`${what} ${isEmpty ? 'has a' : 'has no'} body`]),
        ...(isEmpty || isJson(headers) ? [] : [`${what} is ${headers.get('content-type')}`]),
        ...(status !== 429 || headers.has('retry-after') ? [] : [`${what} does not say when to come again`]),
        ...(String(status) in (operation.responses ?? {}) ? [] : [`${what} is not described`]),
      ],
    }
  }
}

let ours: Promise<Describe> | undefined

/**
 * @throws Error when an answer of the API is none that is described; what no operation is described for must be
 * refused.
 */
export const requireDescribed = async (asked: Asked, answered: Answered): Promise<void> => {
  ours ??= createDescription(JSON.parse(JSON.stringify(openapi)))
  const { what, violations } = (await ours)(asked, answered)
  const wrong = what === undefined ? notRefused(asked, answered) : violations
  if (wrong.length > 0) throw new Error(`${asked.method} ${asked.path}: ${wrong.join('; ')}`)
}

const isJson = (headers: Headers): boolean => headers.get('content-type') === 'application/json; charset=utf-8'

/** Why it is not a refusal in the one shape: what nothing is described for must be one. */
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
