/** The pages of the admin port in a real browser. SCREENSHOTS=folder stores screenshots. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Browser, chromium, type Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { openapi } from '../../schemas/reference/openapi.ts'
import { useStore } from '../support/api.ts'
import { runCommand } from '../support/commands.ts'
import { type Api, startApi } from '../support/processes.ts'
import { browserProgram } from '../support/programs.ts'
import { newPage, untilHeading } from '../support/readable.ts'
import { eventually, fileScope } from '../support/scope.ts'

const scope = fileScope()
const setUp = async (): Promise<{ browser: Browser; api: Api; store: Awaited<ReturnType<typeof useStore>> }> => {
  // The sandbox of Chromium refuses to run as root, the usual user in a container.
  const browser = await chromium.launch({ executablePath: browserProgram ?? '', args: ['--no-sandbox'] })
  scope.onTestFinished(() => browser.close())
  const store = await useStore(scope)
  await store.publish('org_seen', 3)
  return { browser, store, api: await startApi(scope, store.prefix) }
}
let started: ReturnType<typeof setUp> | undefined
const shared = () => (started ??= setUp())

/** Opens a page. `wrong` collects its errors, refused requests, and requests to other addresses. */
const open = async (path: string): Promise<{ page: Page; wrong: string[] }> => {
  const { browser, api } = await shared()
  const page = await newPage(browser, { viewport: { width: 1200, height: 900 } })
  scope.onTestFinished(() => page.close())
  const wrong: string[] = []
  page.on('console', message => void (message.type() === 'error' && wrong.push(message.text())))
  page.on('pageerror', error => void wrong.push(String(error)))
  page.on('requestfailed', request => void wrong.push(`failed: ${request.url()}`))
  page.on('request', request => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(`${api.adminUrl}/`)) wrong.push(request.url())
  })
  page.on('response', answer => void (answer.status() >= 400 && wrong.push(`${answer.status()} ${answer.url()}`)))
  await page.goto(`${api.adminUrl}${path}`)
  return { page, wrong }
}

const keep = async (page: Page, name: string): Promise<void> => {
  const folder = process.env.SCREENSHOTS
  if (folder !== undefined) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
}

const operations = Object.entries(openapi.paths).map(([path, { get }]) => ({ path, id: String(get.operationId) }))

describe.skipIf(browserProgram === undefined)('in a browser', () => {
  test('the status page shows that the API is ready, and the position of every partition', async () => {
    const { page, wrong } = await open('/')
    await untilHeading(page, 'Commission API: ready')
    expect(await page.title()).toBe('Commission API: ready')
    const rows = await page.locator('tr').allInnerTexts()
    expect(rows).toHaveLength(7)
    expect(rows.slice(1).map(row => row.split('\t')[0])).toEqual(['0', '1', '2', '3', '4', '5'])
    for (const row of rows.slice(1)) expect(row).toMatch(/^\d\t\d+\t20\d\d-\d\d-\d\d [\d:]+ UTC\t[\d.]+ days$/)
    await keep(page, 'status')
    await page.getByRole('link', { name: 'Reference' }).click()
    await page.locator('.opblock').first().waitFor()
    expect(wrong).toEqual([])
  })

  test('the reference shows every operation with its parameters, answers and examples', async () => {
    const { page, wrong } = await open('/reference')
    await page.locator('.opblock').first().waitFor()
    expect(await page.locator('.opblock').count()).toBe(operations.length)
    const shown = await page
      .locator('.opblock-summary-path')
      .evaluateAll(all => all.map(one => one.getAttribute('data-path')))
    expect(shown.toSorted()).toEqual(operations.map(({ path }) => path).toSorted())
    await keep(page, 'reference')

    const { id } = operations.find(({ path }) => path === '/payouts') ?? { id: '' }
    const operation = page.locator(`[id$="-${id}"]`)
    await operation.locator('.opblock-summary').click()
    for (const name of ['starting_after', 'limit', 'If-None-Match']) {
      await operation.locator(`[data-param-name="${name}"]`).waitFor()
    }
    const statuses = await operation
      .locator('tr.response')
      .evaluateAll(all => all.map(one => one.getAttribute('data-code')))
    expect(statuses).toEqual(Object.keys(openapi.paths['/payouts']?.get.responses as object))
    await expect.poll(() => operation.innerText()).toContain('net_amount')
    await keep(page, 'operation')
    expect(wrong).toEqual([])
  })

  test('the files of `npx commission reference` show every operation without a server', async t => {
    const folder = await mkdtemp(join(tmpdir(), 'commission-reference-'))
    t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const ran = await runCommand(['reference', join(folder, 'new')], {})
    expect(ran.code, ran.said).toBe(0)
    const { browser } = await shared()
    const page = await newPage(browser)
    t.onTestFinished(() => page.close())
    const wrong: string[] = []
    page.on('console', message => void (message.type() === 'error' && wrong.push(message.text())))
    page.on('pageerror', error => void wrong.push(String(error)))
    page.on('request', request => void (/^(?:file|data|blob):/.test(request.url()) || wrong.push(request.url())))
    await page.goto(pathToFileURL(join(folder, 'new', 'index.html')).href)
    await page.locator('.opblock').first().waitFor()
    expect(await page.locator('.opblock').count()).toBe(operations.length)
    expect(JSON.parse(await readFile(join(folder, 'new', 'openapi.json'), 'utf8'))).toEqual(openapi)
    expect(wrong).toEqual([])
  })

  test('the reference sends a request with a key that is typed in, and keeps it in memory only', async () => {
    const { store } = await shared()
    const { page, wrong } = await open('/reference')
    await page.locator('.opblock').first().waitFor()
    const authorize = page.locator('.auth-wrapper').first().getByRole('button', { name: 'Authorize' })
    const dialog = page.locator('.modal-ux')
    await authorize.click()
    await dialog.locator('input').fill(await store.key('org_seen'))
    await dialog.getByRole('button', { name: 'Apply credentials' }).click()
    await dialog.locator('.close-modal').click()
    const { id } = operations.find(({ path }) => path === '/reps') ?? { id: '' }
    const operation = page.locator(`[id$="-${id}"]`)
    await operation.locator('.opblock-summary').click()
    await operation.getByRole('button', { name: 'Try it out' }).click()
    const execute = operation.getByRole('button', { name: 'Execute' })
    // On a busy machine the time of a request may be up.
    await eventually(async () => {
      const isOfReps = (url: string) => new URL(url).pathname.endsWith('/reps')
      const [answered] = await Promise.all([page.waitForResponse(one => isOfReps(one.url())), execute.click()])
      expect(answered.status()).not.toBe(503)
    })
    const answer = operation.locator('.live-responses-table')
    await expect.poll(() => answer.locator('.response-col_status').last().innerText()).toContain('200')
    expect(await answer.innerText()).toContain('"has_more"')
    await keep(page, 'tried')
    const stored = await page.evaluate<string>(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
    )
    expect(stored).toBe('[{},{},""]')
    await page.reload()
    await page.locator('.opblock').first().waitFor()
    await authorize.click()
    expect(await dialog.locator('input').inputValue()).toBe('')
    expect(wrong.filter(text => !/\b503\b/.test(text))).toEqual([])
  })

  test('no text of the reference has the backticks of Markdown; an example is exactly the answer', async () => {
    const { page } = await open('/reference')
    await page.locator('.opblock').first().waitFor()
    const summaries = page.locator('.opblock-summary-control')
    for (let at = 0; at < (await summaries.count()); at++) await summaries.nth(at).click()
    await page.locator('tr.response').nth(operations.length).waitFor()
    await page.addStyleTag({ content: 'pre { display: none !important }' })
    const lines = async () => (await page.locator('body').innerText()).split('\n')
    await expect.poll(async () => (await lines()).length).toBeGreaterThan(300)
    expect((await lines()).filter(text => text.includes('`'))).toEqual([])
  })

  // The last one: the API cannot answer afterwards.
  test('the status page shows what is missing, and reloads itself', async () => {
    const { store, api } = await shared()
    const { page, wrong } = await open('/')
    await store.call('DELETE', `/${store.prefix}-control/_doc/live`)
    await page.getByRole('heading', { name: 'Commission API: not ready' }).waitFor()
    // On a busy machine the page may first say that Elasticsearch is slow.
    await eventually(async () =>
      expect(await page.locator('.wrong li').allInnerTexts()).toEqual([
        'The API cannot answer: no_live_generation. Runbook: CommissionApiNotReady',
      ]),
    )
    expect(await page.locator('body').innerText()).toContain('The positions of the projection cannot be read now.')
    await keep(page, 'not-ready')
    expect((await fetch(`${api.adminUrl}/readyz`)).status).toBe(503)
    expect(wrong).toEqual([])
  })
})
