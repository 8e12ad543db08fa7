/**
 * Stands between a client and the API, and holds each request and answer against the API's own description, by a library that
 * knows nothing of how the API is made.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Document, OpenAPIBackend, SetMatchType } from 'openapi-backend'
import { formats } from '../../schemas/values.ts'
import type { Scope } from './scope.ts'

export type ValidatingProxy = {
  readonly port: number
  /** What did not keep the description, in words. */
  readonly violations: readonly string[]
  /** Answers that were held against it, by operation and status. */
  readonly seen: ReadonlyMap<string, number>
}

export const startValidatingProxy = async (scope: Scope, apiPort: number): Promise<ValidatingProxy> => {
  const origin = `http://127.0.0.1:${apiPort}`
  const definition = (await (await fetch(`${origin}/api/v1/openapi.json`)).json()) as Document
  const described = new OpenAPIBackend({
    definition,
    apiRoot: '/api/v1',
    quick: true,
    coerceTypes: true,
    ajvOpts: { strict: false, formats },
  })
  await described.init()
  const violations: string[] = []
  const seen = new Map<string, number>()

  const server = createServer(async (req, res) => {
    const headers = Object.fromEntries(Object.entries(req.headers).map(([name, value]) => [name, String(value)]))
    const { connection: _, host: __, ...others } = headers
    const answer = await fetch(`${origin}${req.url}`, { method: req.method ?? 'GET', headers: others })
    const text = await answer.text()
    const operation = described.matchOperation({ method: req.method ?? '', path: req.url ?? '', headers })
    if (operation?.operationId === undefined) violations.push(`${req.method} ${req.url} is not described`)
    else {
      const what = `${operation.operationId} ${answer.status}`
      seen.set(what, (seen.get(what) ?? 0) + 1)
      const body = text === '' ? undefined : JSON.parse(text)
      const checks = [
        answer.ok && described.validateRequest({ method: req.method ?? '', path: req.url ?? '', headers }, operation),
        body !== undefined && described.validateResponse(body, operation, answer.status),
        described.validateResponseHeaders(Object.fromEntries(answer.headers), operation, {
          statusCode: answer.status,
          setMatchType: SetMatchType.Superset,
        }),
      ]
      const errors = checks.flatMap(check => (check === false ? [] : (check.errors ?? [])))
      if (errors.length > 0) violations.push(`${what}: ${JSON.stringify(errors)}`)
      if (!(String(answer.status) in (operation.responses ?? {}))) violations.push(`${what} is not described`)
    }
    const {
      'content-encoding': ___,
      'transfer-encoding': ____,
      connection: _____,
      ...passed
    } = Object.fromEntries(answer.headers)
    res.writeHead(answer.status, passed).end(text)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  scope.onTestFinished(async () => void server.closeAllConnections())
  scope.onTestFinished(async () => void server.close())
  return { port: (server.address() as AddressInfo).port, violations, seen }
}
