/** A proxy between a client and the API that checks each request and answer against the OpenAPI document. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createDescription } from './described.ts'
import type { Scope } from './scope.ts'

export type ValidatingProxy = {
  readonly port: number
  /** Violations of the OpenAPI document, in words. */
  readonly violations: readonly string[]
  /** Number of checked answers, by operation and status. */
  readonly seen: ReadonlyMap<string, number>
}

export const startValidatingProxy = async (scope: Scope, apiPort: number): Promise<ValidatingProxy> => {
  const origin = `http://127.0.0.1:${apiPort}`
  const describe = await createDescription((await (await fetch(`${origin}/api/v1/openapi.json`)).json()) as object)
  const violations: string[] = []
  const seen = new Map<string, number>()

  const server = createServer(async (req, res) => {
    const headers = Object.fromEntries(Object.entries(req.headers).map(([name, value]) => [name, String(value)]))
    const { connection: _, host: __, ...others } = headers
    const answer = await fetch(`${origin}${req.url}`, { method: req.method ?? 'GET', headers: others })
    const text = await answer.text()
    const asked = { method: req.method ?? '', path: req.url ?? '', headers }
    const assessed = describe(asked, { status: answer.status, headers: answer.headers, text })
    violations.push(...assessed.violations)
    if (assessed.what === undefined) violations.push(`${req.method} ${req.url} is not described`)
    else seen.set(assessed.what, (seen.get(assessed.what) ?? 0) + 1)
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
