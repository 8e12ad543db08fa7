/**
 * The pictures of the explorer in docs/pictures: `npm run pictures:explorer` draws them anew. Without it, they are
 * drawn and not kept.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { type Client, createClient, type Payout } from '../../client/src/index.ts'
import { makeOrganizations } from '../../demo/data/organization.ts'
import type { Outgoing } from '../support/events.ts'
import { startExplorerBrowser, untilRead } from '../support/explorer.ts'
import { startApi } from '../support/processes.ts'
import { browserProgram } from '../support/programs.ts'
import { startProjection } from '../support/projection.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()
const PARTITIONS = 3
const folder = join(import.meta.dirname, '../../docs/pictures')
const BYTES_MAX = 150_000

/** The second organization of the demo: three years, nine reps. */
const [, organization] = makeOrganizations(1, { years: 10, partitions: PARTITIONS })
const records = (organization?.sent ?? []).map(({ stream, message }) => ({ stream, ...message }) as Outgoing)

const setUp = async () => {
  const [projection, explorer] = await Promise.all([
    startProjection(scope, records, { partitions: PARTITIONS }),
    startExplorerBrowser(scope),
  ])
  const api = await startApi(scope, projection.prefix)
  const key = organization?.keys.reading.text ?? ''
  return { explorer, key, origin: await explorer.serve(api.url), client: createClient({ baseUrl: api.url, key }) }
}

/** Draws the upper part of a view. Returns its size. */
const draw = async (page: Page, name: string): Promise<number> => {
  const picture = await page.screenshot({ animations: 'disabled' })
  if (process.env.PICTURES === 'docs') writeFileSync(join(folder, `${name}.png`), picture)
  return picture.length
}

/** Replaced in the same currency, with lines of two kinds, in letters that the fonts of every machine have. */
const findToldPayout = async (client: Client): Promise<Payout> => {
  for await (const payout of client.payouts()) {
    const { supersedes_id, line_items } = payout
    const kinds = new Set(line_items.map(({ category }) => category))
    const isPlain = line_items.every(({ description }) => /^[\x20-\x7e]+$/.test(description))
    if (supersedes_id === null || kinds.size < 2 || line_items.length > 7 || !isPlain) continue
    const steps = await Array.fromAsync(client.history(payout.id))
    if (steps.length > 2 && steps.every(({ currency }) => currency === payout.currency)) return payout
  }
  throw new Error('the demo has no such payout')
}

describe.skipIf(browserProgram === undefined)('in a browser', () => {
  test('the pictures of the documentation can be drawn anew, are there, and are small', async () => {
    const { explorer, origin, key, client } = await setUp()
    const told = await findToldPayout(client)
    const { page, wrong } = await explorer.open(`${origin}/#key=${key}`)
    const views = { overview: 'overview', payout: `payout/${told.id}`, history: `history/${told.id}` }
    for (const [view, fragment] of Object.entries(views)) {
      await page.setViewportSize({ width: 1100, height: 800 })
      await page.evaluate(`void (location.hash = '#/${fragment}')`)
      await page.getByRole('table').first().waitFor()
      await untilRead(page)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        const name = `explorer-${view}-${colorScheme}`
        expect([name, (await draw(page, name)) < BYTES_MAX]).toEqual([name, true])
        const stored = join(folder, `${name}.png`)
        expect([name, existsSync(stored) && readFileSync(stored).length < BYTES_MAX]).toEqual([name, true])
      }
    }
    expect(wrong).toEqual([])
  })
})
