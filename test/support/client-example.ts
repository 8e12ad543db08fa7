/** An organization for the examples of the client packages, and the lines that each example must print. */
import { createSigningKey, textOfVerifierKey } from '../../core/runtime/index.ts'
import { serveApi, useStore } from './api.ts'
import type { Scope } from './scope.ts'

/** Serves it. `environment` has the variables of the examples. */
export const serveExample = async (scope: Scope) => {
  const store = await useStore(scope, { timeOfFirst: Date.UTC(2026, 0, 1) })
  const org = 'org_example'
  const lines = [{ id: 'line_1', amount: '12.50', description: 'Deal 1', deal: 'deal_1' }]
  store.rep(org, 'rep_1', [{ seq: 0, name: 'Ada' }])
  store.period(org, 'period_1', [{ seq: 1, name: 'January' }])
  store.payout(org, 2, { id: 'payout_1' }, { until: 3, by: 'payout_2' })
  store.payout(org, 3, { id: 'payout_2', amount: '12.50', supersedes: 'payout_1', lines })
  store.payroll(org, 4, 'payroll_1', '-1.50')
  await store.publish(org, 5)
  const key = await store.key(org)
  const checkpointKey = createSigningKey('api.example.com/checkpoints')
  const { port } = await serveApi(scope, store.prefix, { checkpointKey })
  const api = `http://127.0.0.1:${port}/api/v1`
  const answer = await fetch(`${api}/payouts`, { headers: { authorization: `Bearer ${key}` } })
  const [payout] = JSON.parse(await answer.text()).data
  const printed = [
    `owed payout_2 rep_1 ${payout.net_amount} ${payout.currency}`,
    `sum 12.5 ${payout.currency}`,
    'first Ada',
    'copy 1 payroll_1',
    'refused 404 not_found',
  ]
  const publicKey = textOfVerifierKey(checkpointKey.verifier)
  return { store, org, api, key, printed, publicKey, environment: { ...process.env, API: api, KEY: key } }
}

/** Returns the first code block of this language in a page. */
export const exampleIn = (page: string, language: string): string =>
  new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(page)?.[1] ?? ''
