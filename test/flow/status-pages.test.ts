/** The status pages of real processes in a real browser, wide and narrow, light and dark. */
import { once } from 'node:events'
import { chromium } from 'playwright-core'
import { Registry } from 'prom-client'
import { describe, expect, test } from 'vitest'
import { startAdmin } from '../../projector/admin/admin.ts'
import { payoutCalculated, periodRecorded, repRecorded } from '../support/events.ts'
import { startApi } from '../support/processes.ts'
import { browserProgram } from '../support/programs.ts'
import { startProjection } from '../support/projection.ts'
import { newPage, unreadableIn, untilHeading } from '../support/readable.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'

const scope = fileScope()
const org_id = 'org_seen'

const setUp = async () => {
  // The sandbox of Chromium refuses to run as root, the usual user in a container.
  const browser = await chromium.launch({ executablePath: browserProgram ?? '', args: ['--no-sandbox'] })
  scope.onTestFinished(() => browser.close())
  const unknownRep = payoutCalculated({ org_id, rep_id: 'rep_secret' })
  const projection = await startProjection(scope, [repRecorded({ org_id }), periodRecorded({ org_id }), unknownRep])
  return { browser, projector: projection.projector, api: await startApi(scope, projection.prefix) }
}
let started: ReturnType<typeof setUp> | undefined
const shared = () => (started ??= setUp())

/** Opens a page. `wrong` collects its errors, refused requests, and requests for anything but pages of this process. */
const open = async (t: Scope, address: string) => {
  const { browser } = await shared()
  const page = await newPage(browser)
  t.onTestFinished(() => page.close())
  const wrong: string[] = []
  page.on('console', message => void (message.type() === 'error' && wrong.push(message.text())))
  page.on('request', request => void (request.isNavigationRequest() || wrong.push(request.url())))
  await page.goto(address)
  return { page, wrong }
}

describe.skipIf(browserProgram === undefined)('in a browser', () => {
  test('the page of the API has the live generation, and a picture of the age of its answers', async t => {
    const { api } = await shared()
    const { page, wrong } = await open(t, api.adminUrl)
    await untilHeading(page, 'Commission API: ready')
    await page.getByText('Generation g1 is live').waitFor()
    const picture = page.getByRole('img', { name: /^Age of the answers, .*: now [\d.]+ s; between .* in the last/ })
    await picture.waitFor()
    expect(await picture.locator('path').getAttribute('d')).toMatch(/^M/)
    expect(await unreadableIn(page, 'status-api')).toEqual([])
    expect(wrong.filter(url => !url.startsWith('data:'))).toEqual([])
  })

  test('the page of the projector tells how many records were parked and why, with a way to the runbook', async t => {
    const { projector } = await shared()
    const { page, wrong } = await open(t, projector.adminUrl)
    await untilHeading(page, 'Commission projector: ready')
    await page.getByText('Readers see generation g1: it is live.').waitFor()
    const picture = page.getByRole('img', { name: /^Age of what this process publishes for readers: now/ })
    await eventually(async () => {
      await page.reload()
      expect(await picture.count()).toBe(1)
    })
    const code = page.getByRole('row').filter({ hasText: 'rep_unknown' })
    expect(await code.locator('td').allInnerTexts()).toEqual([
      ...['rep_unknown', '1'],
      ...[expect.stringMatching(/^20\d\d-.* UTC$/), expect.stringMatching(/^20\d\d-.* UTC$/)],
    ])
    expect(await page.content()).not.toMatch(/org_seen|rep_secret/)
    expect(await unreadableIn(page, 'status-projector')).toEqual([])
    await page.getByRole('link', { name: 'Runbook: CommissionRecordsParked' }).click()
    expect(new URL(page.url()).hash).toBe('#commissionrecordsparked')
    const paragraph = page.locator('h3:target + p')
    expect(await paragraph.innerText()).toContain('npx commission parked list --newest')
    expect(await unreadableIn(page, 'runbooks')).toEqual([])
    expect(wrong.filter(url => !url.startsWith('data:'))).toEqual([])
  })

  test('a page on which everything is wrong marks what is live, being built and failed, and can be read', async t => {
    const partition = { topic: 'commission.events.v1', partition: 0, searchable_to: 1_234_567, end: 1_234_600 }
    const now = Date.UTC(2026, 1, 3, 4, 5, 6)
    const server = await startAdmin('127.0.0.1', 0, {
      health: { reasons: () => ({ kafka: 'does not answer', 'g1 owners': 'no projector of x owns partitions 1' }) },
      registry: new Registry(),
      failed: () => [{ generation: 'g3', code: 'index_missing' }],
      clocks: () => ({ elasticsearch_ahead_ms: 9_000, agree: false }),
      live: () => 'g1',
      now: () => now,
      ages: { list: () => [10_000, 70_000, 90_000].map((age, at) => ({ at: now - 60_000 + at * 30_000, age })) },
      published: () => [{ partition: 0, time: now - 90_000 }],
      parkedLately: async () => ({
        codes: [{ code: 'supersedes_mismatch', records: 1_234, first: now - 7_000_000, last: now }],
        ahead: 0,
      }),
      status: async () => [
        { generation: 'g1', ...partition, lag: 20_033, lost: 0, parked: 1_234 },
        { generation: 'g2', ...partition, lag: 1_000_033, lost: 0, parked: 0 },
        { generation: 'api-keys', ...partition, topic: 'commission.api_keys.v1', lag: 0, lost: 0, parked: 0 },
      ],
      receipts: {
        sources: () => [],
        ask: async () => ({ state: 'not_yet' }),
        askRun: async () => ({ state: 'unavailable' }),
        explain: async () => 'why',
      },
      asyncapi: () => undefined,
      log: { error: () => undefined },
    })
    t.onTestFinished(async () => {
      server.closeAllConnections()
      await Promise.all([once(server, 'close'), server.close()])
    })
    const address = server.address()
    const { page } = await open(t, `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`)
    expect(await page.locator('h1').innerText()).toBe('Commission projector: not ready')
    const generations = page.locator('section').filter({ has: page.getByRole('heading', { name: 'Generations' }) })
    expect(await generations.locator('tbody tr').allInnerTexts()).toEqual([
      'g1\tlive\t20,033\t1,234',
      'g2\tbeing built\t1,000,033\t0',
      'api-keys\tthe API keys\t0\t0',
      'g3\tfailed: index_missing\t\t',
    ])
    expect(await page.locator('.wrong li a').evaluateAll(all => all.map(one => one.getAttribute('href')))).toEqual([
      ...['runbooks#commissionpartitionstuck', 'runbooks#commissionpartitionwithoutowner', 'runbooks#commissionstale'],
      ...['runbooks#commissionlaggrows', 'runbooks#commissionrecordsparked', 'runbooks#commissiongenerationfailed'],
      'runbooks#commissionclockwrong',
    ])
    expect(await unreadableIn(page, 'status-wrong')).toEqual([])
  })
})
