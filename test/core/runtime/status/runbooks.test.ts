/** The page of the runbooks, and the alerts that the status pages link to. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { runbookAddress, runbooksHtml, runbooksPage } from '../../../../core/runtime/status/runbooks.ts'
import { within } from '../../../support/sources.ts'

const rules = readFileSync('deploy/monitoring/rules.yml', 'utf8')

test('has each paragraph that the annotations of the alerts name, and no Markdown left', async () => {
  const page = await runbooksPage()
  const anchors = [...rules.matchAll(/runbook: docs\/runbooks\.md#(\w+)/g)].map(([, anchor]) => anchor)
  expect(anchors.length).toBeGreaterThan(15)
  expect(anchors.filter(anchor => !page.includes(` id="${anchor}">`))).toEqual([])
  const text = page.replace(/<style>.*<\/style>/s, '').replaceAll(/<code>[^<]*<\/code>/g, '')
  expect(text).not.toMatch(/\*\*|`|\]\(/)
})

test('each alert that a status page links to has a rule', () => {
  const pages = within('api', 'projector').filter(({ path }) => path.endsWith('/status-page.ts'))
  const named = pages.flatMap(({ spoken }) =>
    [...spoken.matchAll(/'(Commission[A-Z]\w+)'/g)].map(([, name = '']) => name),
  )
  expect(new Set(named).size).toBeGreaterThan(7)
  expect(named.filter(name => !rules.includes(`runbook: docs/${runbookAddress(name).replace('#', '.md#')}`))).toEqual(
    [],
  )
})

test('texts are escaped, and files that are not served are named in place of a link', () => {
  const html = runbooksHtml(
    '# A\n\n<b> `x<y` **bold** [stop *code*](operating.md#stop-codes) [in](#a) [rules](../deploy/r.yml)',
  )
  expect(html).toContain(
    '<p>&#60;b&#62; <code>x&#60;y</code> <strong>bold</strong> stop <em>code</em> <span class="quiet">(docs/operating.md#stop-codes)</span> <a href="#a">in</a> rules <span class="quiet">(deploy/r.yml)</span></p>',
  )
})
