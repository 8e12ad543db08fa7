/** The tool that tells what changed since a change, a sequence or an instant. */
import type { Change, Client, List } from '../../src/index.ts'
import { LIMIT_DEFAULT, pageSchema, readPage } from './bounded.ts'
import { contractObject, contractSchema } from './contract.ts'
import { payoutThenSchema, viewPayoutThen } from './payout-view.ts'
import {
  ArgumentsError,
  defineTool,
  filterOptions,
  limitInput,
  onlyGiven,
  type PayoutFilterArguments,
  payoutFilterInput,
} from './tool.ts'

type ChangesArguments = PayoutFilterArguments & {
  limit?: number
  starting_after?: string
  after_sequence?: number
  since?: string
}

const viewChange = (change: Change) =>
  change.kind === 'payouts' ? { ...change, record: viewPayoutThen(change.record) } : change

const changeSchema = {
  anyOf: [
    ...['RepChange', 'PeriodChange', 'PayrollChange'].map(contractSchema),
    contractObject('PayoutChange', { record: payoutThenSchema }),
  ],
}

export const listChanges = defineTool<ChangesArguments>({
  name: 'list_changes',
  title: 'Read what changed',
  description:
    'Every change in order, with the record as it was just after it. Begin after a change (`starting_after`), after a number (`after_sequence`), after an instant that is over (`since`), or with the first change of all. Keep `next_cursor` to ask later what is new. `supersedes_id` names the change that this one replaced. Whether a payout is current, `get_payout` tells.',
  input: {
    starting_after: { type: 'string', description: 'The id of a change, or the `next_cursor` of the page before.' },
    after_sequence: { type: 'integer', minimum: 0, description: 'The `sequence` of a change; 0 is the beginning.' },
    since: { type: 'string', description: 'An instant that is over (RFC 3339). It needs `totals:read`, too.' },
    ...payoutFilterInput,
    ...limitInput,
  },
  output: pageSchema(changeSchema),
  run: async (client, given) => ({ structured: await readPage(changesOf(client, given), viewChange) }),
})

const changesOf = (client: Client, given: ChangesArguments): List<Change> => {
  const { starting_after, after_sequence, since, limit = LIMIT_DEFAULT } = given
  const begins = Object.keys(onlyGiven({ starting_after, after_sequence, since }))
  if (begins.length > 1) throw new ArgumentsError(`expected one of ${begins.join(' and ')}`)
  const options = { limit, ...filterOptions(given) }
  if (since !== undefined) return client.changesSince(since, options)
  if (after_sequence !== undefined) return client.changes({ ...options, after: after_sequence })
  return client.changes({ ...options, ...onlyGiven({ startingAfter: starting_after }) })
}
