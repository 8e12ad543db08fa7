/** Which index templates of others apply to an index. `prepare.test.ts` has those that stop a start. */
import { expect, test } from 'vitest'
import { templatesThatApply } from '../../../../core/store/generations/index-templates.ts'
import { StartedElasticsearch } from '../../../projector/started-elasticsearch.ts'

const name = 'test-g1-payouts'

test.each([
  ['*', true],
  ['test-*', true],
  ['test-g1-payouts', true],
  ['*-payouts', true],
  ['test-*-pay*', true],
  ['test-g1-payout', false],
  ['test-g1-payouts*x', false],
  ['*-reps', false],
])('a template with the pattern %s applies: %s', async (pattern, applies) => {
  const elasticsearch = new StartedElasticsearch()
  elasticsearch.templates.push({ name: 'its-name', index_template: { index_patterns: pattern } })
  expect(await templatesThatApply(name, elasticsearch.request)).toBe(
    applies ? '; index templates of others that apply to it: its-name' : '',
  )
})
