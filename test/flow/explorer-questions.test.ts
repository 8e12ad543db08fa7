/** Questions that a person asks the explorer, in a real browser on a real API: each is answered in few steps. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { createClient } from '../../client/src/index.ts'
import { keyPermissions } from '../../schemas/values.ts'
import {
  keyCreated,
  line,
  newKeyText,
  payoutCalculated,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
} from '../support/events.ts'
import { asDecimals, columnOf, goTo, keep, startExplorer, untilRead } from '../support/explorer.ts'
import { browserProgram } from '../support/programs.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()
const org_id = 'org_asked'
const far = 'org_far'
const moved = 'org_moved'
const [whole, withoutPayroll, changesOnly] = [newKeyText(), newKeyText(), newKeyText()]
const keys = { whole, withoutPayroll, changesOnly, far: newKeyText(), moved: newKeyText() }
const most = keyPermissions.filter(permission => permission !== 'read' && permission !== 'payroll:read')

/** Two reps of one name. Line ids repeat in each payout, as many publishers number them. */
const records = [
  keyCreated({ org_id, id: 'key_1', text: keys.whole }),
  keyCreated({ org_id, id: 'key_2', text: keys.withoutPayroll, permissions: most }),
  keyCreated({ org_id, id: 'key_3', text: keys.changesOnly, permissions: ['changes:read'] }),
  repRecorded({ org_id, id: 'rep_1', name: 'Ada Same', email: 'ada1@example.com' }),
  repRecorded({ org_id, id: 'rep_2', name: 'Ada Same', email: null }),
  periodRecorded({ org_id, id: 'period_1', name: 'January 2026' }),
  periodRecorded({
    ...{ org_id, id: 'period_2', name: 'February 2026' },
    ...{ starts_at: '2026-02-01T00:00:00+01:00', ends_at: '2026-03-01T00:00:00+01:00' },
  }),
  payoutCalculated({
    ...{ org_id, id: 'payout_1', rep_id: 'rep_1', period_id: 'period_1', net_amount: '300.50' },
    line_items: [
      line({ id: 'line_1', description: 'Deal 17', amount: '200.50', deal_id: 'deal_17' }),
      line({ id: 'line_2', description: 'Deal 18', amount: '100.00', deal_id: 'deal_18' }),
    ],
  }),
  payrollRecorded({ org_id, id: 'payroll_1', payout_id: 'payout_1', amount: '300.50' }),
  payoutCalculated({
    ...{ org_id, id: 'payout_2', rep_id: 'rep_1', period_id: 'period_2', net_amount: '150.20' },
    line_items: [
      line({ id: 'line_1', description: 'Deal 18', amount: '100.00', deal_id: 'deal_18' }),
      line({ id: 'line_2', description: 'Deal 19', amount: '60.20', deal_id: 'deal_19' }),
      line({ id: 'line_3', description: 'Cancelled', category: 'recovered', amount: '-10.00', deal_id: 'deal_17' }),
    ],
  }),
  payoutCalculated({
    ...{ org_id, id: 'payout_3', rep_id: 'rep_2', period_id: 'period_2', net_amount: '99.90' },
    line_items: [line({ description: 'Deal 17', amount: '99.90', deal_id: 'deal_17' })],
  }),
  payrollRecorded({
    ...{ org_id, id: 'payroll_2', rep_id: 'rep_2', period_id: 'period_2', payout_id: 'payout_3', amount: '99.90' },
  }),
  payoutCalculated({
    ...{
      org_id,
      id: 'payout_4',
      rep_id: 'rep_2',
      period_id: 'period_2',
      supersedes_id: 'payout_3',
      net_amount: '80.00',
    },
    line_items: [line({ description: 'Deal 17', amount: '80.00', deal_id: 'deal_17' })],
  }),
  payrollVoided({ org_id, id: 'payroll_3', reverses_id: 'payroll_2', amount: '-99.90' }),
  keyCreated({ org_id: far, id: 'key_4', text: keys.far, permissions: ['changes:read', 'totals:read'] }),
  repRecorded({ org_id: far }),
  periodRecorded({ org_id: far }),
  payoutCalculated({ org_id: far, net_amount: '10.00' }),
  ...Array.from({ length: 60 }, (_, at) => repRecorded({ org_id: far, name: `Ada ${at}` })),
  payoutCalculated({ org_id: far, id: 'payout_2', supersedes_id: 'payout_1', net_amount: '12.00' }),
  keyCreated({ org_id: moved, id: 'key_5', text: keys.moved }),
  repRecorded({ org_id: moved }),
  repRecorded({ org_id: moved, id: 'rep_2' }),
  periodRecorded({ org_id: moved, name: 'January 2026' }),
  // The same lines in another currency.
  ...['EUR', 'USD', 'USD'].map((currency, at) =>
    payoutCalculated({
      ...{ org_id: moved, id: `payout_${at + 1}`, currency, ...(at > 0 && { supersedes_id: `payout_${at}` }) },
      ...{ net_amount: '100.00', line_items: [line({ description: 'Deal 17', amount: '100.00' })] },
    }),
  ),
  payoutCalculated({ org_id: moved, id: 'payout_9', rep_id: 'rep_2' }),
]

let started: ReturnType<typeof startExplorer> | undefined
const shared = () => (started ??= startExplorer(scope, records))
const open = async (fragment: string, key = keys.whole) => {
  const { explorer, origin, api } = await shared()
  const address = `${origin}/#/${fragment}${fragment.includes('?') ? '&' : '?'}key=${key}`
  return { ...(await explorer.open(address)), origin, client: createClient({ baseUrl: api.url, key: keys.whole }) }
}

const find = async (page: Page, id: string): Promise<void> => {
  await page.getByLabel('Find', { exact: true }).fill(id)
  await page.getByLabel('Find', { exact: true }).press('Enter')
}
const rowsOf = async (page: Page, caption: string): Promise<string[]> => {
  const rows = page.getByRole('table', { name: caption }).locator('tbody tr')
  await rows.first().waitFor()
  return (await rows.allInnerTexts()).map(row => row.replace(/\s+/g, ' '))
}

describe.skipIf(browserProgram === undefined)('in a browser', () => {
  test('who was paid on this deal, and is anything open: one id typed', async () => {
    const { page, wrong, origin, client } = await open('overview')
    await find(page, 'deal_17')
    await page.getByRole('heading', { name: 'Current payouts with a line of deal_17' }).waitFor()
    const columns = ['Owed', 'Of the deal', 'Paid', 'Open'].map(head => columnOf(page, 'Current payouts', head))
    const owed = await Array.fromAsync(client.payouts({ dealId: 'deal_17' }))
    // In the order of the periods, the latest first.
    expect(owed.map(({ id }) => id)).toEqual(['payout_1', 'payout_2', 'payout_4'])
    expect(await Promise.all(columns)).toEqual([
      ['150.20', '80.00', '300.50'],
      ['-10.00', '80.00', '200.50'],
      ['0.00', '0.00', '300.50'],
      ['150.20', '80.00', '0.00'],
    ])
    // The API adds up the lines: the page has no sum of its own.
    const lines = (await client.totals({ dealId: 'deal_17' })).line_totals ?? []
    expect(lines.map(({ category, amount }) => [category, amount]).toSorted()).toEqual([
      ['earned', '200.5'],
      ['earned', '80'],
      ['recovered', '-10'],
    ])
    expect(await page.locator('.sums').innerText()).toMatch(
      /All lines\s+270\.50 EUR\s+earned\s+280\.50 EUR\s+recovered\s+−10\.00 EUR/,
    )
    await keep(page, 'deal')
    await page.getByLabel('Only payouts with something open').check()
    await page.getByText('2 of the 3 payouts: all were looked through.').waitFor()
    expect(await columnOf(page, 'Current payouts', 'Open')).toEqual(['150.20', '80.00'])
    expect(page.url()).toBe(`${origin}/#/payouts?deal=deal_17&open=only`)
    expect(wrong).toEqual([])
  })

  test('why did this rep get less than last month: one link from the list of the rep, or from the payout', async () => {
    const { page, wrong, origin } = await open('payouts?rep=rep_1')
    await page.getByRole('link', { name: 'Compare' }).first().click()
    await page.getByRole('heading', { name: 'compared with January 2026' }).waitFor()
    await goTo(page, '#/payout/payout_2')
    await page.getByRole('link', { name: 'With the period before' }).click()
    await page
      .getByRole('heading', { name: 'Ada Same (ada1@example.com): February 2026 compared with January 2026' })
      .waitFor()
    expect(page.url()).toBe(`${origin}/#/compare/payout_2`)
    await page.getByText('Difference: −150.30 EUR').waitFor()
    expect(await rowsOf(page, 'Difference by kind')).toEqual([
      'earned 300.50 160.20 −140.30',
      'recovered 0.00 −10.00 −10.00',
    ])
    // The line of deal 18 is in both, with another id. Lines of other deals with its id are no changes of it.
    expect(await rowsOf(page, 'Compare two payouts')).toEqual([
      'Deal 19 only in February 2026 deal_19 – 60.20 +60.20',
      'Cancelled only in February 2026 deal_17 – −10.00 −10.00',
      'Deal 17 only in January 2026 deal_17 200.50 – −200.50',
    ])
    await keep(page, 'compare')
    // The first payout has none before it. Any two of the rep can be compared.
    await page.getByLabel('After').selectOption({ label: 'January 2026: 300.50 EUR' })
    await page.getByLabel('Before').selectOption({ label: 'February 2026: 150.20 EUR' })
    await page.getByText('Difference: +150.30 EUR').waitFor()
    await goTo(page, '#/compare/payout_1')
    await page.getByText('This rep has no payout for an earlier period of the same kind.').waitFor()
    expect(wrong).toEqual([])
  })

  test('what did this statement say then: a moment typed, and the link to the payout that was there', async () => {
    const { page, wrong, origin } = await open('payout/payout_4')
    await page.getByLabel('As of').fill('payroll_2')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByText('At this moment, the payout of its rep and period was').waitFor()
    // The later payout was not there yet: this is no refusal.
    expect(await page.getByRole('alert').count()).toBe(0)
    await page.getByRole('link', { name: 'payout_3' }).click()
    await page.getByRole('heading', { name: 'Ada Same (rep_2), February 2026' }).waitFor()
    await untilRead(page)
    expect(page.url()).toBe(`${origin}/#/payout/payout_3?as_of=payroll_2`)
    const facts = (await page.locator('.facts').first().innerText()).replaceAll(/\s+/g, ' ')
    expect(facts).toContain('Owed 99.90 EUR Paid 99.90 EUR Open 0.00 EUR')
    // Before the first payout there was none.
    await goTo(page, '#/history/payout_4?as_of=payout_2')
    await page.getByText('At this moment, its rep and period had no payout.').waitFor()
    // Of an id that never was a payout, nobody knows the rep.
    await goTo(page, '#/payout/payout_99?as_of=payout_2')
    await page.getByRole('alert').getByText('There is no such record').waitFor()
    expect(wrong).toEqual([])
  })

  test('what was corrected since a date, and by how much: one link, and the date', async () => {
    const { page, wrong, origin } = await open('overview')
    await page.getByRole('link', { name: 'All corrections, since a date' }).click()
    await page.getByLabel('Published since').fill('2026-01-01')
    await page.getByRole('main').getByRole('button', { name: 'Show', exact: true }).click()
    const row = /^\S+ \S+ UTC Ada Same \(rep_2\) February 2026 99\.90 80\.00 −19\.90 EUR Explain History$/
    await expect.poll(() => page.url()).toBe(`${origin}/#/corrections?since=2026-01-01`)
    await expect.poll(() => rowsOf(page, 'Corrected lately')).toEqual([expect.stringMatching(row)])
    const sum = page.locator('.sums').getByText('−19.90')
    expect((await sum.locator('xpath=..').innerText()).replaceAll(/\s+/g, ' ')).toBe('−19.90 EUR')
    await page.getByText(/^1 correction among \d+ changes: all were looked through\.$/).waitFor()
    // After the correction, only a void was published.
    await page.getByLabel('Published since').fill('payout_4')
    await page.getByLabel('Published since').press('Enter')
    await page.getByText('0 corrections among 1 change: all were looked through.').waitFor()
    await page.getByLabel('Published since').fill('last week')
    await page.getByLabel('Published since').press('Enter')
    await page.getByRole('alert').getByText('Expected an instant').waitFor()
    expect(page.url()).toBe(`${origin}/#/corrections?since=payout_4`)
    expect(wrong).toEqual([])
  })

  test('each change says what it added to the payout that it replaced, and payroll records lead to their payout', async () => {
    const { page, wrong } = await open('changes')
    const table = page.getByRole('table', { name: 'All changes' })
    await table.waitFor()
    await expect.poll(() => columnOf(page, 'All changes', 'Difference')).toEqual(['-19.90'])
    await keep(page, 'changes-differences')
    const voided = table.locator('tbody tr').first()
    expect((await voided.innerText()).replace(/\s+/g, ' ')).toContain('Void of payroll_2')
    await voided.getByRole('link', { name: 'payroll_2' }).click()
    await page.getByRole('heading', { name: 'Payroll record' }).waitFor()
    await page.getByRole('link', { name: 'payout_3' }).click()
    await page.getByText('This payout was replaced').waitFor()
    expect(wrong).toEqual([])
  })

  test('was this payment reversed: its page says so, and that it does not know', async () => {
    const { page, wrong } = await open('payroll/payroll_2')
    const facts = async () => (await page.locator('.facts').innerText()).replaceAll(/\s+/g, ' ')
    await expect.poll(facts).toContain('Paid until it was reversed 99.90 EUR')
    expect(await facts()).toContain('Reversed by payroll_3')
    // Then it was not.
    await goTo(page, '#/payroll/payroll_2?as_of=payroll_2')
    await expect.poll(facts).toContain('Paid 99.90 EUR')
    expect(await facts()).not.toContain('Reversed')
    await goTo(page, '#/payroll/payroll_2')
    await page.getByRole('link', { name: 'payroll_3' }).click()
    await expect.poll(facts).toContain('Reversed −99.90 EUR')
    expect(await facts()).toContain('Reverses payroll_2')
    const json = { error: { code: 'forbidden', message: 'The key lacks payroll:read.' } }
    await page.route(/payroll_files\?/, route => route.fulfill({ status: 403, json }))
    await goTo(page, '#/payroll/payroll_1')
    await page.getByText('It is not known whether this payment was reversed.').waitFor()
    await page.getByText('it lacks the permission payroll:read.').waitFor()
    expect(await facts()).toContain('Amount 300.50 EUR')
    expect(wrong).toEqual([])
  })

  test('how do two payouts in two currencies differ: by all their lines, and by no amount', async () => {
    const { page, wrong } = await open('history/payout_1?from=payout_1&to=payout_2', keys.moved)
    const differ = 'The currency changed from EUR to USD: no difference can be given between two currencies.'
    await page.getByText(differ).waitFor()
    expect(await rowsOf(page, 'Compare two payouts')).toEqual([
      'Deal 17 added – – 100.00',
      'Deal 17 removed – 100.00 –',
    ])
    const heads = page.getByRole('table', { name: 'Compare two payouts' }).getByRole('columnheader')
    expect(await heads.allInnerTexts()).toEqual(['Line', 'Change', 'Deal', 'Before, EUR', 'After, USD'])
    expect(await page.getByText('Both have the same lines.').count()).toBe(0)
    await goTo(page, '#/compare/payout_2?from=payout_1')
    await page.getByText(differ).waitFor()
    expect(await page.getByText('Each difference is').count()).toBe(0)
    expect(wrong).toEqual([])
  })

  test('on paper, two payouts that are compared have their ids, instants and amounts', async () => {
    const { page, wrong } = await open('compare/payout_3?from=payout_2', keys.moved)
    // Both are of January.
    await page.getByText('Each difference is payout_3 less payout_2.').waitFor()
    await page.emulateMedia({ media: 'print' })
    expect(await page.getByLabel('Before').isVisible()).toBe(false)
    const facts = page.locator('.facts')
    expect(await facts.isVisible()).toBe(true)
    expect((await facts.innerText()).replaceAll(/\s+/g, ' ')).toBe(
      'Before 100.00 USD payout_2 2026-02-01 08:30:00 UTC After 100.00 USD payout_3 2026-02-01 08:30:00 UTC',
    )
    await goTo(page, '#/history/payout_1?from=payout_1&to=payout_3')
    await expect.poll(() => facts.innerText()).toContain('payout_1')
    expect(wrong).toEqual([])
  })

  test('an address that names a payout of another rep shows no other pair, and says why', async () => {
    const { page, wrong } = await open('compare/payout_3?from=payout_9', keys.moved)
    const compared = page.locator('.compared')
    await page.getByText('payout_9 is a payout of another rep: the payouts of two people are not compared.').waitFor()
    expect(await compared.count()).toBe(0)
    for (const [end, label] of Object.entries({ from: 'Before', to: 'After' })) {
      await goTo(page, `#/history/payout_3?${end}=payout_9`)
      await page.getByText('payout_9 is not in this history: it is of another rep or period').waitFor()
      await expect.poll(() => page.getByLabel(label, { exact: true }).inputValue()).toBe('')
      expect(await compared.count()).toBe(0)
    }
    await page.getByLabel('After', { exact: true }).selectOption({ index: 1 })
    await compared.waitFor()
    expect(await page.getByText('payout_9').count()).toBe(0)
    expect(wrong).toEqual([])
  })

  test('any id finds its page, as of the same moment, and another text finds nothing', async () => {
    const { page, origin, wrong } = await open('overview?as_of=payroll_3')
    const pages = {
      payout_1: '/#/payout/payout_1?as_of=payroll_3',
      rep_1: '/#/payouts?rep=rep_1&as_of=payroll_3',
      period_2: '/#/payouts?period=period_2&as_of=payroll_3',
      deal_18: '/#/payouts?deal=deal_18&as_of=payroll_3',
      payroll_3: '/#/payroll/payroll_3?as_of=payroll_3',
      'rep_1.1': '/#/payouts?rep=rep_1&as_of=rep_1.1',
    }
    for (const [id, address] of Object.entries(pages)) {
      await find(page, ` ${id} `)
      await untilRead(page)
      expect(page.url()).toBe(`${origin}${address}`)
    }
    await find(page, keys.whole)
    await page.getByText('Expected the id of a payout, rep, period, deal or payroll record').waitFor()
    expect(page.url()).not.toContain(keys.whole)
    expect(wrong).toEqual([])
  })

  test('a key without payroll records sees owed amounts, and neither paid nor open ones', async () => {
    const { page } = await open('payouts', keys.withoutPayroll)
    expect(await columnOf(page, 'Current payouts', 'Owed')).toEqual(['150.20', '80.00', '300.50'])
    await page.getByText('This key may not read payroll records: it lacks the permission payroll:read.').waitFor()
    const heads = () => page.locator('th, dt').allInnerTexts()
    expect(await heads()).toEqual(['Rep', 'Period', 'Owed', 'Currency', 'Payout'])
    expect(await page.getByRole('checkbox').count()).toBe(0)
    await goTo(page, '#/payout/payout_1')
    await page.getByText('This key may not read payroll records').waitFor()
    await untilRead(page)
    expect(await heads()).toContain('Owed')
    for (const head of ['Paid', 'Open', 'Paid in EUR', 'Open in EUR']) expect(await heads()).not.toContain(head)
  })

  test('a key with changes only sees the differences of the changes that are shown, and why it sees no others', async () => {
    const near = await open('changes', keys.changesOnly)
    expect(await columnOf(near.page, 'All changes', 'Difference')).toEqual(['-19.90'])
    // The replaced payout is not among the latest fifty changes.
    const { page } = await open('changes', keys.far)
    await page.getByText('There are no differences to the payouts before. This key may not read payouts').waitFor()
    expect(await page.getByRole('columnheader', { name: 'Difference' }).count()).toBe(0)
    expect(asDecimals(await columnOf(page, 'All changes', 'Amount'))).toEqual(['12'])
  })
})
