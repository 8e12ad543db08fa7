/** Pages of another origin that read the API, in a real browser. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chromium } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { useStore } from '../support/api.ts'
import { startApi } from '../support/processes.ts'
import { browserProgram } from '../support/programs.ts'
import { newPage } from '../support/readable.ts'
import { eventually, fileScope } from '../support/scope.ts'

const scope = fileScope()
const ORG = 'org_seen'

/** Serves an empty page. Returns its origin. */
const servePage = async (): Promise<string> => {
  const server = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end('<title>page</title>'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  scope.onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const setUp = async () => {
  const store = await useStore(scope)
  for (const n of [1, 2, 3]) store.payout(ORG, n, { id: `payout_${n}`, period: `period_${n}` })
  await store.publish(ORG, 4)
  const newKey = () => store.key(ORG)
  const [allowed, other] = [await servePage(), await servePage()]
  const settings = { API_CORS_ORIGINS: `https://example.com, ${allowed}`, RATE_LIMIT_REQUESTS: '5' }
  return { allowed, other, newKey, api: await startApi(scope, store.prefix, { settings }) }
}
let started: ReturnType<typeof setUp> | undefined
const shared = () => (started ??= setUp())

const preflight = (url: string, origin: string) =>
  fetch(`${url}/payouts`, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'GET',
      'Access-Control-Request-Headers': 'authorization',
    },
  })

test('a preflight request needs no key and costs nothing, and is refused to other origins', async () => {
  const { allowed, other, api, newKey } = await shared()
  for (let n = 0; n < 20; n++) expect((await preflight(api.url, allowed)).status).toBe(204)
  const refused = await preflight(api.url, other)
  expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, null])
  // On a busy machine the time of a request may be up, which costs a unit. Another key has all units.
  await eventually(async () => {
    const headers = { Authorization: `Bearer ${await newKey()}`, Origin: allowed }
    const answer = await fetch(`${api.url}/payouts?limit=1`, { headers })
    expect([answer.status, answer.headers.get('vary')]).toEqual([200, 'Origin, Authorization'])
    expect(answer.headers.get('ratelimit')).toMatch(/^"default";r=4;/)
  })
})

test('without an origin, and to other origins, answers are as without the setting', async () => {
  const { other, api } = await shared()
  for (const headers of [{}, { Origin: other }, { Origin: 'null' }] as Record<string, string>[]) {
    const answer = await fetch(`${api.url}/payouts`, { headers })
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([401, null])
  }
})

describe.skipIf(browserProgram === undefined)('in a browser', () => {
  test('a page of an allowed origin reads answers, their headers and refusals, and any other page reads nothing', async () => {
    const { allowed, other, api, newKey } = await shared()
    // The sandbox of Chromium refuses to run as root, the usual user in a container.
    const browser = await chromium.launch({ executablePath: browserProgram ?? '', args: ['--no-sandbox'] })
    scope.onTestFinished(() => browser.close())
    const readFrom = async (origin: string, secret: string): Promise<unknown> => {
      const page = await newPage(browser)
      await page.goto(origin)
      return page.evaluate(
        async ([url, bearer]) => {
          const headers = { Authorization: `Bearer ${bearer}`, 'If-None-Match': '"none"' }
          const answer = await fetch(`${url}/payouts?limit=2`, { headers }).catch(String)
          if (typeof answer === 'string') return answer
          const [tag, link] = [answer.headers.get('ETag'), answer.headers.get('Link')]
          return { status: answer.status, hasTag: tag !== null, hasLink: link !== null, body: await answer.json() }
        },
        [api.url, secret] as const,
      )
    }
    const body = { data: [{ id: 'payout_1' }, { id: 'payout_2' }], next_cursor: 'payout_2' }
    const answered = { status: 200, hasTag: true, hasLink: true, body }
    await eventually(async () => expect(await readFrom(allowed, await newKey())).toMatchObject(answered))
    const unknown = 'an_unknown_key_of_24_characters'
    await eventually(async () => expect(await readFrom(allowed, unknown)).toMatchObject({ status: 401 }))
    expect(await readFrom(other, await newKey())).toBe('TypeError: Failed to fetch')
  })
})
