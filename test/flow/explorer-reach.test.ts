/** The explorer for everybody: what axe-core finds, narrow screens, the keyboard, and keys that may read little. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { axeFindings } from '../support/axe.ts'
import { keyCreated, newKeyText, payoutCalculated, periodRecorded, repRecorded } from '../support/events.ts'
import { goTo, keep, startExplorer, untilRead } from '../support/explorer.ts'
import { keys, narrowKeys } from '../support/explorer-records.ts'
import { browserProgram } from '../support/programs.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()
let started: ReturnType<typeof startExplorer> | undefined
const shared = () => (started ??= startExplorer(scope))

const views = {
  overview: 'overview',
  payouts: 'payouts',
  payout: 'payout/payout_1',
  recorded: 'payout/payout_3',
  history: 'history/payout_1',
  compared: 'compare/payout_2?from=payout_1',
  payroll: 'payroll/payroll_1',
  changes: 'changes',
  corrections: 'corrections?since=2026-01-01',
  past: 'overview?as_of=payout_1',
  rep: 'payouts?rep=rep_1',
  refused: 'payout/payout_none',
  unknown: 'nonsense',
}
const withoutTable = ['payroll', 'refused', 'unknown']
/** Of the head of the page on a phone, in pixels: two rows of it. */
const HEAD_MAX = 95
const looks = (['light', 'dark'] as const).flatMap(colorScheme =>
  [1280, 320].map(width => ({ colorScheme, width, name: `${colorScheme}-${width}` })),
)

/** All that can have the focus, in the order of the page. */
const reachable = "[...document.querySelectorAll('a[href], button:enabled, input, select')]"
/** The element that has the focus: where it is in that order, and whether one sees that it has it. */
const focused = `(() => {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement)
  const { top, bottom, left, right } = document.activeElement.getBoundingClientRect()
  const isInside = bottom > 0 && right > 0 && top < innerHeight && left < innerWidth
  const isSeen = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && isInside
  return { at: ${reachable}.indexOf(document.activeElement), isSeen }
})()`

const press = async (page: Page, key: string): Promise<{ at: number; isSeen: boolean }> => {
  await page.keyboard.press(key)
  return page.evaluate(focused)
}

describe.skipIf(browserProgram === undefined)('in a browser', () => {
  test('axe-core finds nothing on any view, in dark and light, wide and narrow, and none scrolls sideways', async () => {
    const { explorer, origin } = await shared()
    const { page, wrong } = await explorer.open(`${origin}/`)
    const found: string[] = []
    const look = async (view: string): Promise<void> => {
      for (const { colorScheme, width, name } of looks) {
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize({ width, height: 900 })
        found.push(...(await axeFindings(page)).map(finding => `${view}, ${name}: ${finding}`))
        const shown = await page.evaluate<number>('document.documentElement.scrollWidth')
        if (shown > width) found.push(`${view}, ${name}: ${shown} pixels wide`)
        const head = await page.evaluate<number>("document.querySelector('header')?.offsetHeight ?? 0")
        if (head > HEAD_MAX) found.push(`${view}, ${name}: the head is ${head} pixels high`)
        await keep(page, `${view}-${name}`)
      }
    }
    await page.getByLabel('API key').waitFor()
    await look('key')
    await page.getByLabel('API key').fill(keys.whole)
    await page.getByRole('button', { name: 'Open' }).click()
    for (const [view, fragment] of Object.entries(views)) {
      await goTo(page, `#/${fragment}`)
      if (!withoutTable.includes(view)) await page.getByRole('table').first().waitFor()
      await untilRead(page)
      await look(view)
    }
    expect(found).toEqual([])
    expect(wrong).toEqual([])
  })

  test.for(Object.entries(views))(
    'the keyboard reaches everything of %s, in its order, and the focus is seen',
    async ([view, fragment]) => {
      const { explorer, origin } = await shared()
      const { page } = await explorer.open(
        `${origin}/#/${fragment}${fragment.includes('?') ? '&' : '?'}key=${keys.whole}`,
      )
      if (!withoutTable.includes(view)) await page.getByRole('table').first().waitFor()
      await untilRead(page)
      // A view begins with its heading. Back from there to the first one, which skips the head of the page.
      const back = [await press(page, 'Shift+Tab')]
      while ((back.at(-1)?.at ?? 0) > 0) back.push(await press(page, 'Shift+Tab'))
      expect(back).toEqual(Array.from(back, (_, at) => ({ at: back.length - 1 - at, isSeen: true })))
      const count = await page.evaluate<number>(`${reachable}.length`)
      expect(count).toBeGreaterThan(back.length)
      const visited = []
      for (let at = 1; at < count; at++) visited.push(await press(page, 'Tab'))
      expect(visited).toEqual(Array.from(visited, (_, at) => ({ at: at + 1, isSeen: true })))
      await page.evaluate("document.querySelector('.skip').focus()")
      await page.keyboard.press('Enter')
      expect(await page.evaluate('document.activeElement.localName')).toBe('h1')
    },
  )

  test.for(narrowKeys)(
    'a key with $permission alone sees in words what it cannot see',
    async ({ permission, text }) => {
      const { explorer, origin } = await shared()
      const { page } = await explorer.open(`${origin}/#key=${text}`)
      const says = async (needed: string, words: string): Promise<void> => {
        await untilRead(page)
        if (permission !== needed) await page.getByText(words).first().waitFor()
        else expect(await page.getByText(words).count()).toBe(0)
      }
      await says('totals:read', 'This key may not read totals: it lacks the permission totals:read.')
      await page.getByText('This key may not read corrections: it lacks the permission').waitFor()
      await keep(page, `alone-${permission.replace(':', '-')}`)
      if (permission === 'changes:read') await page.getByText('live', { exact: true }).waitFor()
      else await page.getByText('This key may not follow changes, so the page shows new ones only').waitFor()
      const unnamed = ['reps:read', 'periods:read'].filter(needed => needed !== permission)
      const lists = unnamed.map(needed => needed.split(':')[0]).join(' and ')
      await page.getByText(`This key may not read ${lists}: their ids stand in place of their names.`).waitFor()
      await goTo(page, '#/payouts')
      await says('payouts:read', 'it lacks the permission payouts:read.')
      await goTo(page, '#/changes')
      await says('changes:read', 'it lacks the permission changes:read.')
      // A statement has all that a payout has.
      await goTo(page, '#/payout/payout_1')
      await untilRead(page)
      if (permission === 'payouts:read') await page.getByText('it lacks the permission statements:read.').waitFor()
      else if (permission === 'statements:read') await page.getByText('1,300,000.00004').waitFor()
      else await page.getByText('it lacks the permission payouts:read.').waitFor()
    },
  )

  test('a key with changes:read alone follows the changes', async () => {
    const { explorer, origin, topics } = await shared()
    const [org_id, text] = ['org_feed', newKeyText()]
    await topics.publish([
      keyCreated({ org_id, id: 'key_feed', text, permissions: ['changes:read'] }),
      repRecorded({ org_id }),
      periodRecorded({ org_id }),
      payoutCalculated({ org_id, net_amount: '10.00' }),
    ])
    await expect
      .poll(
        () => fetch(`${origin}/api/v1/changes`, { headers: { authorization: `Bearer ${text}` } }).then(r => r.text()),
        {
          timeout: 60_000,
        },
      )
      .toContain('payout_1')
    const { page, wrong } = await explorer.open(`${origin}/#/changes?key=${text}`)
    await page.getByText('No change yet. The page shows each one as it comes.').waitFor()
    await topics.publish([payoutCalculated({ org_id, id: 'payout_2', supersedes_id: 'payout_1', net_amount: '12.50' })])
    const latest = page.getByRole('table', { name: 'Since this page was opened' })
    await latest.waitFor({ timeout: 60_000 })
    expect(await latest.locator('tbody tr').allInnerTexts()).toEqual([expect.stringContaining('12.50')])
    expect(wrong).toEqual([])
  })
})
