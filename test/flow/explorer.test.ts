/** The explorer in a real browser, on a real API, with recalculations. SCREENSHOTS=folder stores screenshots. */
import { describe, expect, test } from 'vitest'
import { createClient } from '../../client/src/index.ts'
import { keyCreated, newKeyText, payoutCalculated, periodRecorded, repRecorded } from '../support/events.ts'
import {
  asDecimals,
  columnOf,
  ExactDecimal,
  goTo,
  keep,
  leftBehind,
  memoryOf,
  startExplorer,
  untilRead,
} from '../support/explorer.ts'
import { keys, LARGE, recalculated } from '../support/explorer-records.ts'
import { startApi } from '../support/processes.ts'
import { browserProgram } from '../support/programs.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()
let started: ReturnType<typeof startExplorer> | undefined
const shared = () => (started ??= startExplorer(scope))

const clientOf = async (key: string) => createClient({ baseUrl: (await shared()).api.url, key })

const overview = 'Owed and paid by period in EUR'

describe.skipIf(browserProgram === undefined)('in a browser', () => {
  test('the overview shows the totals of the API, and what is open, in a table and in a picture', async () => {
    const { explorer, origin } = await shared()
    const { page, wrong } = await explorer.open(`${origin}/#key=${keys.whole}`)
    const { totals } = await (await clientOf(keys.whole)).totals()
    expect(totals.map(({ owed_amount }) => owed_amount)).toEqual(['1300010.25', LARGE])
    const newestFirst = totals.toReversed()
    await page.getByRole('link', { name: 'February 2026' }).waitFor()
    expect(asDecimals(await columnOf(page, overview, 'Owed'))).toEqual(newestFirst.map(total => total.owed_amount))
    expect(asDecimals(await columnOf(page, overview, 'Paid'))).toEqual(newestFirst.map(total => total.paid_amount))
    const open = newestFirst.map(({ owed_amount, paid_amount }) => new ExactDecimal(owed_amount).minus(paid_amount))
    expect(asDecimals(await columnOf(page, overview, 'Open'))).toEqual(open.map(amount => amount.toFixed()))
    await page.getByText('99,999,999,999,999,999,999,999,999.01').first().waitFor()

    // The picture says the same in words.
    await untilRead(page)
    const said = await page.locator('svg.bars g > title').allTextContents()
    expect(said).toEqual([
      'January 2026: Owed 1,300,010.25, Paid 1,000,000.00, Open 300,010.25',
      `February 2026: Owed 99,999,999,999,999,999,999,999,999.01, Paid 0.00, Open 99,999,999,999,999,999,999,999,999.01`,
    ])
    await page.getByText(/^Includes everything published up to \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC live$/).waitFor()
    expect(await page.locator('.state time').getAttribute('title')).toMatch(/:\d\d\.\d+ UTC$/)
    await keep(page, 'overview')
    expect(wrong).toEqual([])
  })

  test('the key is in the memory of the page only: in no storage, and not in the address', async () => {
    const { explorer, origin } = await shared()
    const { page } = await explorer.open(`${origin}/#/payouts?key=${keys.whole}&rep=rep_1`)
    await page.getByRole('link', { name: 'Explain' }).waitFor()
    expect(page.url()).toBe(`${origin}/#/payouts?rep=rep_1`)
    expect(await leftBehind(page)).not.toContain(keys.whole)
    expect(await page.content()).not.toContain(keys.whole)
    expect(await memoryOf(page)).toContain(keys.whole)
    // A reload forgets it, and keeps the view.
    await page.reload()
    await page.getByLabel('API key').fill(keys.whole)
    await page.getByRole('button', { name: 'Open' }).click()
    await page.getByRole('link', { name: 'Explain' }).waitFor()
    expect(page.url()).toBe(`${origin}/#/payouts?rep=rep_1`)
    expect(await leftBehind(page)).not.toContain(keys.whole)
    expect(await page.content()).not.toContain(keys.whole)
  })

  test('another key begins with nothing of the former one, neither shown nor in memory', async () => {
    const { explorer, origin } = await shared()
    const { page, wrong } = await explorer.open(`${origin}/#key=${keys.whole}`)
    await goTo(page, '#/payouts')
    await page.locator('td', { hasText: 'Canary Ada' }).first().waitFor()
    expect(await memoryOf(page)).toContain('Canary Ada')
    await page.getByRole('button', { name: 'Use another key' }).click()
    await page.getByLabel('API key').fill(keys.other)
    await page.getByRole('button', { name: 'Open' }).click()
    await page.locator('td', { hasText: 'Canary Zoe' }).first().waitFor()
    const former = ['Canary Ada', keys.whole, LARGE, 'payout_3']
    const left = async (): Promise<string[]> => {
      const texts = [await memoryOf(page), await page.content(), await leftBehind(page)].join(' ')
      return former.filter(text => texts.includes(text))
    }
    await expect.poll(left).toEqual([])
    // A link with a key that is opened in the same page, too.
    await goTo(page, `#/payouts?key=${keys.whole}`)
    await page.locator('td', { hasText: 'Canary Ada' }).first().waitFor()
    expect(page.url()).toBe(`${origin}/#/payouts`)
    await expect.poll(async () => (await memoryOf(page)).includes('Canary Zoe')).toBe(false)
    expect(wrong).toEqual([])
  })

  test('a payout is explained: its lines, the steps of its calculation in order, and what was paid', async () => {
    const { explorer, origin } = await shared()
    const client = await clientOf(keys.whole)
    const { page, wrong } = await explorer.open(`${origin}/#/payouts?key=${keys.whole}`)
    const payouts = await Array.fromAsync(client.payouts())
    // The API lists them as they were published, and the page by their periods.
    const latestFirst = payouts.map(({ net_amount }) => net_amount).toReversed()
    expect(await columnOf(page, 'Current payouts', 'Owed')).toEqual(latestFirst)
    await keep(page, 'payouts')
    await page.getByLabel('Rep', { exact: true }).selectOption({ label: 'Canary Ada' })
    await page.getByText('1 shown: all').waitFor()
    await page.getByRole('link', { name: 'Explain' }).click()
    await page.getByRole('heading', { name: 'Canary Ada, January 2026' }).waitFor()

    const { net_amount, calculation_trace } = await client.statement('payout_2')
    const lines = await columnOf(page, 'The lines that add up to what is owed', 'Amount')
    expect(lines).toEqual(recalculated.map(({ amount }) => amount))
    expect(asDecimals(await columnOf(page, 'The lines that add up to what is owed', 'Sum so far'))).toEqual([
      net_amount,
    ])
    const steps = page.locator('.trace li')
    await steps.first().waitFor()
    expect(await steps.locator('h3').allInnerTexts()).toEqual(calculation_trace.map(({ name }) => name))
    const results = (await steps.locator('.amount').allInnerTexts()).map(text => text.replaceAll(',', ''))
    expect(results).toEqual(calculation_trace.map(({ output_amount }) => output_amount))
    expect(await steps.nth(1).innerText()).toContain('half-even, version 3')
    const paid = page.locator('.paid-and-open')
    await paid.waitFor()
    expect(await paid.locator('.amount').allInnerTexts()).toEqual(['1,000,000.00', '300,010.25'])
    const facts = (await page.locator('.facts').first().innerText()).replaceAll(/\s+/g, ' ')
    expect(facts).toContain('Owed 1,300,010.25 EUR Paid 1,000,000.00 EUR Open 300,010.25 EUR')
    await keep(page, 'payout')

    // A payout that was only recorded, of a person who was forgotten.
    await goTo(page, '#/payout/payout_3')
    await page.getByText('nothing was calculated here').waitFor()
    await page.getByRole('heading', { name: 'rep_2 (erased), February 2026' }).waitFor()
    expect(wrong).toEqual([])
  })

  test('a history shows each difference of the API, and those of two payouts', async () => {
    const { explorer, origin } = await shared()
    const { page, wrong } = await explorer.open(`${origin}/#/history/payout_1?key=${keys.whole}`)
    const steps = await Array.fromAsync((await clientOf(keys.whole)).history('payout_1'))
    expect(await columnOf(page, 'History', 'Owed')).toEqual(steps.map(({ net_amount }) => net_amount))
    const differences = steps.flatMap(({ difference }) => difference?.net_amount ?? [])
    expect(differences).toHaveLength(1)
    expect(asDecimals(await columnOf(page, 'History', 'Difference'))).toEqual(differences)
    const compared = page.getByRole('table', { name: 'Compare two payouts' })
    await compared.locator('tbody tr').first().waitFor()
    expect((await compared.locator('tbody tr').allInnerTexts()).map(row => row.replace(/\s+/g, ' '))).toEqual([
      'Deal 17 changed deal_17 1,300,000.0000 1,300,010.2500 +10.2500',
      'Advance removed – −65,432.5 – +65,432.5000',
    ])
    // Both were calculated at the same instant: the labels of their bars differ all the same.
    const labels = await page.locator('svg.bars text.label').allTextContents()
    expect(labels).toEqual(['2026-02-01', '08:30, 1.', '2026-02-01', '08:30, 2.'])
    await keep(page, 'history')
    // The replaced payout as it was when it was published.
    await page
      .getByRole('link', { name: /as.it.was.then/ })
      .first()
      .click()
    await page.getByText('As of payout_1: everything here is as it was published then.').waitFor()
    expect(page.url()).toBe(`${origin}/#/payout/payout_1?as_of=payout_1`)
    expect(wrong).toEqual([])
  })

  test('the overview says what was corrected lately, and by how much', async () => {
    const { explorer, origin } = await shared()
    const client = await clientOf(keys.whole)
    const { page, wrong } = await explorer.open(`${origin}/#key=${keys.whole}`)
    const [, step] = await Array.fromAsync(client.history('payout_2'))
    const corrected = 'Corrected lately'
    expect(await columnOf(page, corrected, 'Before')).toEqual([(await client.payout('payout_1')).net_amount])
    expect(await columnOf(page, corrected, 'After')).toEqual([step?.net_amount])
    expect(asDecimals(await columnOf(page, corrected, 'Difference'))).toEqual([step?.difference?.net_amount])
    const row = page.getByRole('table', { name: corrected }).locator('tbody tr')
    await row.getByRole('link', { name: 'History' }).click()
    await page.getByRole('heading', { name: 'History of Canary Ada, January 2026' }).waitFor()
    expect(page.url()).toBe(`${origin}/#/history/payout_2`)

    // As of the first payout, nothing was corrected.
    await goTo(page, '#/overview?as_of=payout_1')
    await page.getByText('No payout was replaced.').waitFor()
    expect(wrong).toEqual([])
  })

  test('the deal of a line leads to all payouts that have a line of it, as of the same moment', async () => {
    const { explorer, origin } = await shared()
    const { page, wrong } = await explorer.open(`${origin}/#/payout/payout_1?key=${keys.whole}&as_of=payout_1`)
    const lines = page.getByRole('table', { name: 'The lines that add up to what is owed' })
    await lines.getByRole('link', { name: 'deal_17' }).click()
    await page.getByRole('heading', { name: 'Current payouts' }).waitFor()
    expect(page.url()).toBe(`${origin}/#/payouts?deal=deal_17&as_of=payout_1`)
    expect(await columnOf(page, 'Current payouts', 'Owed')).toEqual(['1234567.5000'])
    await page.getByRole('link', { name: 'Back to now' }).click()
    await expect.poll(() => columnOf(page, 'Current payouts', 'Owed')).toEqual(['1300010.25'])
    await page.getByText('1 shown: all. The latest period first.').waitFor()
    const [sum] = (await (await clientOf(keys.whole)).totals({ dealId: 'deal_17' })).line_totals ?? []
    await page.locator('.sums .amount').first().waitFor()
    const shownSum = await page.locator('.sums .amount').allInnerTexts()
    expect(asDecimals(shownSum.map(text => text.replaceAll(',', '')))).toEqual([sum?.amount])
    expect(asDecimals(await columnOf(page, 'Current payouts', 'Of the deal'))).toEqual(['1300010.25'])
    await page.getByLabel('Deal', { exact: true }).fill('deal_unknown')
    await page.getByLabel('Deal', { exact: true }).press('Enter')
    await page.getByText('No payout matches: nothing is owed, or there is no such rep, period or deal.').waitFor()
    expect(page.url()).toBe(`${origin}/#/payouts?deal=deal_unknown`)
    // A key that is pasted here reaches no address.
    await page.getByLabel('Deal', { exact: true }).fill(keys.whole)
    await page.getByLabel('Deal', { exact: true }).press('Enter')
    await page.getByText('Expected the id of a deal').waitFor()
    expect(page.url()).toBe(`${origin}/#/payouts?deal=deal_unknown`)
    await page.getByLabel('Deal', { exact: true }).fill('')
    await page.getByLabel('Deal', { exact: true }).press('Enter')
    await expect.poll(() => columnOf(page, 'Current payouts', 'Owed')).toEqual([LARGE, '1300010.25'])
    expect(wrong).toEqual([])
  })

  test('a rep has a page: the totals of the API, and what was paid and is open of each payout', async () => {
    const { explorer, origin } = await shared()
    const { page, wrong } = await explorer.open(`${origin}/#/payout/payout_2?key=${keys.whole}`)
    await page.locator('.facts').getByRole('link', { name: 'Canary Ada' }).click()
    await page.getByRole('heading', { name: 'Current payouts of Canary Ada' }).waitFor()
    expect(page.url()).toBe(`${origin}/#/payouts?rep=rep_1`)
    const [total] = (await (await clientOf(keys.whole)).totals({ repId: 'rep_1' })).totals
    const ofRep = [total?.owed_amount, total?.paid_amount, total?.open_amount]
    await page.locator('.sums .amount').first().waitFor()
    const sums = (await page.locator('.sums .amount').allInnerTexts()).map(text => text.replaceAll(',', ''))
    expect(asDecimals(sums)).toEqual(ofRep)
    const columns = ['Owed', 'Paid', 'Open'].map(head => columnOf(page, 'Current payouts', head))
    expect(asDecimals((await Promise.all(columns)).flat())).toEqual(ofRep)
    await keep(page, 'rep')
    // The totals of all reps are no totals of one.
    await page.getByLabel('Rep', { exact: true }).selectOption({ label: 'All reps' })
    await page.getByText('2 shown: all').waitFor()
    expect(await page.locator('.sums').count()).toBe(0)
    expect(wrong).toEqual([])
  })

  test('an address that no view has says so, and leads to the overview of the same moment', async () => {
    const { explorer, origin } = await shared()
    const { page, wrong } = await explorer.open(`${origin}/#/nonsense?key=${keys.whole}&as_of=payout_1`)
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
    expect(await page.getByRole('table').count()).toBe(0)
    await page.locator('main').getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    expect(page.url()).toBe(`${origin}/#/overview?as_of=payout_1`)
    expect(wrong).toEqual([])
  })

  test('a copied amount has the minus sign of a keyboard and no commas, unlike that of the page', async () => {
    const { explorer, origin } = await shared()
    const { page } = await explorer.open(`${origin}/#/payout/payout_1?key=${keys.whole}`)
    const amount = page.getByRole('table', { name: 'The lines that add up to what is owed' }).locator('.amount.below')
    expect(await amount.innerText()).toBe('−65,432.5')
    const copied = page.evaluate<string>(`new Promise(resolve => {
      const amount = document.querySelector('td .amount.below')
      getSelection().selectAllChildren(amount)
      addEventListener('copy', event => resolve(event.clipboardData.getData('text/plain')))
      document.execCommand('copy')
    })`)
    expect(await copied).toBe('-65432.5')
  })

  test('as of a moment, the whole page is of then, and the address says so', async () => {
    const { explorer, origin } = await shared()
    const { page, wrong } = await explorer.open(`${origin}/#key=${keys.whole}`)
    await page.getByLabel('As of').fill('payout_1')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByText('As of payout_1: everything here is as it was published then.').waitFor()
    expect(page.url()).toBe(`${origin}/#/overview?as_of=payout_1`)
    // A key that is pasted here reaches no address.
    await page.getByLabel('As of').fill(keys.whole)
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByText('Expected an instant such as').waitFor()
    expect(page.url()).toBe(`${origin}/#/overview?as_of=payout_1`)
    await expect.poll(() => columnOf(page, overview, 'Owed')).toEqual(['1234567.50'])
    expect(asDecimals(await columnOf(page, overview, 'Paid'))).toEqual(['0'])
    await page.getByRole('link', { name: 'January 2026' }).click()
    expect(await columnOf(page, 'Current payouts', 'Owed')).toEqual(['1234567.5000'])
    expect(page.url()).toBe(`${origin}/#/payouts?period=period_1&as_of=payout_1`)
    await keep(page, 'as-of')

    await page.getByLabel('As of').fill('2999-01-01T00:00:00Z')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByText('Nothing can be shown as of this moment.').first().waitFor()
    await page.getByText('The service says: `as_of` must not be later than').first().waitFor()
    await page.getByText('As of 2999-01-01 00:00:00 UTC: the service refuses this moment').waitFor()
    expect(await page.getByText('everything here is as it was published then').count()).toBe(0)
    await page.getByRole('link', { name: 'Back to now' }).click()
    await expect.poll(() => columnOf(page, 'Current payouts', 'Owed')).toEqual(['1300010.25'])
    expect(wrong).toEqual([])
  })

  test('a recalculation is shown without a reload', async () => {
    const { explorer, origin, topics } = await shared()
    const live = newKeyText()
    const org = 'org_live'
    await topics.publish([
      keyCreated({ org_id: org, id: 'key_4', text: live }),
      repRecorded({ org_id: org }),
      periodRecorded({ org_id: org }),
      payoutCalculated({ org_id: org, net_amount: '10.00' }),
    ])
    const client = await clientOf(live)
    await expect.poll(() => client.totals().then(({ totals }) => totals.length, String)).toBe(1)
    const { page, wrong } = await explorer.open(`${origin}/#key=${live}`)
    expect(await columnOf(page, overview, 'Owed')).toEqual(['10'])
    await page.getByText('live', { exact: true }).waitFor()
    await topics.publish([
      payoutCalculated({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1', net_amount: '12.50' }),
    ])
    await expect.poll(() => columnOf(page, overview, 'Owed')).toEqual(['12.50'])
    await expect.poll(() => columnOf(page, 'Corrected lately', 'Difference')).toEqual(['2.50'])
    const latest = page.getByRole('table', { name: 'Changes since this page was opened' })
    expect(await latest.locator('tbody tr').first().innerText()).toContain('Payout, replaces payout_1')
    await keep(page, 'live')

    // As of the moment before, it is neither among the corrections nor among the changes.
    await goTo(page, '#/overview?as_of=payout_1')
    await page.getByText('No payout was replaced.').waitFor()
    expect(await columnOf(page, overview, 'Owed')).toEqual(['10'])
    expect(await latest.count()).toBe(0)
    await page.getByRole('link', { name: 'Back to now' }).click()
    await expect.poll(() => columnOf(page, 'Corrected lately', 'Difference')).toEqual(['2.50'])
    await expect.poll(() => latest.locator('tbody tr').count()).toBe(1)
    expect(wrong).toEqual([])
  })

  test('refusals are said in words, with what to do, and the rest of the page works', async () => {
    const { explorer, origin, settings, prefix } = await shared()
    const { page } = await explorer.open(`${origin}/#key=${keys.payoutsOnly}`)
    await page.getByText('it lacks the permission totals:read. Ask the operator').first().waitFor()
    await keep(page, 'forbidden')
    await page.getByRole('link', { name: 'Payouts' }).click()
    expect(await columnOf(page, 'Current payouts', 'Owed')).toEqual(['1300010.25', LARGE])

    const unknown = await explorer.open(`${origin}/#key=an_unknown_key_of_24_characters`)
    await unknown.page.getByText('This key is unknown, revoked or expired.').waitFor()
    await unknown.page.getByLabel('API key').fill(keys.whole)
    await unknown.page.getByRole('button', { name: 'Open' }).click()
    await unknown.page.getByRole('heading', { name: 'All periods in' }).first().waitFor()
    expect(await unknown.page.getByText('This key is unknown').count()).toBe(0)
    await goTo(page, '#/payout/payout_none')
    await page.getByText('There is no such record').first().waitFor()

    const slow = await startApi(scope, prefix, { settings: { ...settings, RATE_LIMIT_REQUESTS: '2' } })
    const limited = await explorer.open(`${await explorer.serve(slow.url)}/#/payouts?key=${keys.whole}`)
    await limited.page.getByText(/^Too many requests \(429\)\. The page asks again in \d+ s: wait\.$/).waitFor()
    await slow.stop()
    await limited.page.reload()
    await limited.page.getByLabel('API key').fill(keys.whole)
    await limited.page.getByRole('button', { name: 'Open' }).click()
    await limited.page.getByText(/^The service cannot answer now \(502\)\. The page asks again soon: wait\.$/).waitFor()
  })

  test('amounts stand with their decimal points below one another', async () => {
    const { explorer, origin } = await shared()
    const { page } = await explorer.open(`${origin}/#/payout/payout_1?key=${keys.whole}`)
    const lines = page.getByRole('table', { name: 'The lines that add up to what is owed' })
    await lines.waitFor()
    const points = await page.evaluate<number[]>(`
      [...document.querySelectorAll('td[data-head="Amount"] .amount')].slice(0, 2).map(({ firstChild: text }) => {
        const range = document.createRange()
        range.setStart(text, text.data.indexOf('.'))
        range.setEnd(text, text.data.indexOf('.') + 1)
        return Math.round(range.getBoundingClientRect().left)
      })`)
    expect(points).toHaveLength(2)
    expect(new Set(points).size).toBe(1)
  })
})
