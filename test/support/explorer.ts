/** The explorer in a real browser: the built page on an origin of its own, and all that it must not do. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Decimal } from 'decimal.js'
import { type Browser, chromium, type Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { buildPage } from '../../explorer/build-page.ts'
import { serveExplorer } from '../../explorer/serve.ts'
import type { Outgoing } from './events.ts'
import { records as seen } from './explorer-records.ts'
import { startApi } from './processes.ts'
import { browserProgram } from './programs.ts'
import { startProjection } from './projection.ts'
import { newPage } from './readable.ts'
import type { Scope } from './scope.ts'
import { createKeys } from './seal.ts'

export type Explorer = {
  /** Serves the page before an API. Returns the origin of both. */
  readonly serve: (api: string) => Promise<string>
  /** Opens an address of the page. `wrong` collects errors, and requests to other origins. */
  readonly open: (address: string) => Promise<{ readonly page: Page; readonly wrong: readonly string[] }>
}

export const startExplorerBrowser = async (scope: Scope): Promise<Explorer> => {
  const folder = await mkdtemp(join(tmpdir(), 'explorer-'))
  scope.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await buildPage(process.execPath, folder, new AbortController().signal)
  // The sandbox of Chromium refuses to run as root, the usual user in a container.
  const browser = await chromium.launch({ executablePath: browserProgram ?? '', args: ['--no-sandbox'] })
  scope.onTestFinished(() => browser.close())
  return {
    serve: async api => {
      const { origin, close } = await serveExplorer({ folder, api })
      scope.onTestFinished(async () => close())
      return origin
    },
    open: address => openPage(browser, address),
  }
}

/** A projection of the records, an API, and the page before it. */
export const startExplorer = async (scope: Scope, records: readonly Outgoing[] = seen) => {
  const seals = createKeys(scope, [])
  // The key of this person was destroyed.
  seals.putReceipt('k2')
  const [projection, explorer] = await Promise.all([startProjection(scope, records), startExplorerBrowser(scope)])
  const settings = { SEAL_KEYS_DIR: seals.directory }
  const api = await startApi(scope, projection.prefix, { settings })
  return { ...projection, explorer, api, settings, origin: await explorer.serve(api.url) }
}

const openPage = async (browser: Browser, address: string): ReturnType<Explorer['open']> => {
  const page = await newPage(browser, { viewport: { width: 1280, height: 900 } })
  // A page that stays open follows changes, and takes the cores of the tests after it.
  onTestFinished(() => page.close())
  const { origin } = new URL(address)
  const wrong: string[] = []
  // A refused request is an error of the console; each test says which ones it expects.
  page.on('console', message => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) wrong.push(message.text())
  })
  page.on('pageerror', error => void wrong.push(String(error)))
  page.on('request', request => void (request.url().startsWith(`${origin}/`) || wrong.push(request.url())))
  page.on('request', request => {
    const [sent = ''] = request.url().split('#')
    if (sent.includes('ck_')) wrong.push(`a key in ${sent}`)
  })
  await page.goto(address)
  return { page, wrong }
}

/** Everything that the page has stored in the browser, its address, and those that it had. */
export const leftBehind = async (page: Page): Promise<string> => {
  // An item whose name is that of a method, such as `key`, is no property of a storage.
  const stored = await page.evaluate<string>(`Promise.all([indexedDB.databases(), caches.keys()]).then(names =>
    JSON.stringify([
      ...[localStorage, sessionStorage].map(items =>
        Array.from(items, (_, at) => [items.key(at), items.getItem(items.key(at))])),
      document.cookie, document.referrer, location.href, names, navigation.entries().map(({ url }) => url)]))`)
  return `${stored} ${JSON.stringify(await page.context().storageState())}`
}

/** The memory of the page as text, after its garbage was collected. */
export const memoryOf = async (page: Page): Promise<string> => {
  const session = await page.context().newCDPSession(page)
  const chunks: string[] = []
  session.on('HeapProfiler.addHeapSnapshotChunk', ({ chunk }) => chunks.push(chunk))
  await session.send('HeapProfiler.enable')
  await session.send('HeapProfiler.collectGarbage')
  await session.send('HeapProfiler.takeHeapSnapshot', { reportProgress: false })
  await session.detach()
  return chunks.join('')
}

/** Stores a picture of the page in the folder SCREENSHOTS, if it is set. */
export const keep = async (page: Page, name: string): Promise<void> => {
  const folder = process.env.SCREENSHOTS
  if (folder !== undefined) await page.screenshot({ path: join(folder, `explorer-${name}.png`), fullPage: true })
}

/** The shown amounts of a column, as the API writes them. */
export const columnOf = async (page: Page, caption: string, head: string): Promise<string[]> => {
  const cells = page.getByRole('table', { name: caption }).locator(`td[data-head="${head}"] .amount`)
  await cells.first().waitFor()
  return (await cells.allInnerTexts()).map(text => text.replaceAll(',', '').replace(/^\+/, '').replace(/^−/, '-'))
}

/** As many digits as a sum of amounts can have. */
export const ExactDecimal = Decimal.clone({ precision: 200, toExpPos: 200, toExpNeg: -200 })
export const asDecimals = (amounts: readonly string[]): string[] =>
  amounts.map(amount => new ExactDecimal(amount).toFixed())

export const goTo = (page: Page, fragment: string): Promise<void> =>
  page.evaluate(`void (location.hash = ${JSON.stringify(fragment)})`)

/** Waits until the view has read all that it shows. */
export const untilRead = async (page: Page): Promise<void> => {
  await page.locator('main h1').waitFor()
  await page.getByText('Reading…', { exact: true }).first().waitFor({ state: 'detached' })
  await page.locator('.unnamed').waitFor({ state: 'detached' })
}
