/**
 * The tool that tells what its key may read. The API has no path for that: the tool asks one cheap question for each
 * permission, about a record that is not there. A key that may read gets 404 or an empty answer, any other key 403.
 */
import { type Client, RefusedError } from '../../src/index.ts'
import { readPage } from './bounded.ts'
import { arraySchema, objectSchema } from './contract.ts'
import { defineTool } from './tool.ts'

const questions: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
  'reps:read': client => client.rep('rep_0'),
  'periods:read': client => client.period('period_0'),
  'payouts:read': client => client.payout('payout_0'),
  'statements:read': client => client.statement('payout_0'),
  'payroll:read': client => client.payrollRecord('payroll_0'),
  'totals:read': client => client.totals({ periodId: 'period_0' }),
  'changes:read': client => readPage(client.changes({ limit: 1, repId: 'rep_0' }), ({ id }) => id),
}

/** Their questions are about no record: they get 404 only if the address of the API is wrong. */
const ofNoRecord: readonly string[] = ['totals:read', 'changes:read']

/** @throws all that the client throws, except the refusals that are an answer */
const mayRead = async (client: Client, permission: string, ask: (client: Client) => Promise<unknown>) => {
  try {
    await ask(client)
    return true
  } catch (error) {
    // A proxy before the API may answer 404, too.
    if (error instanceof RefusedError && error.code === 'not_found' && !ofNoRecord.includes(permission)) return true
    if (error instanceof RefusedError && error.status === 403 && error.code === 'forbidden') return false
    throw error
  }
}

/** The permissions that each tool needs. */
const neededBy = {
  'reps:read': ['list_reps'],
  'periods:read': ['list_periods'],
  'payouts:read': ['list_payouts', 'get_payout', 'payout_history'],
  'statements:read': ['explain_payout'],
  'payroll:read': ['list_payroll_records'],
  'totals:read': ['get_totals', 'list_changes with since'],
  'changes:read': ['list_changes'],
} satisfies Record<keyof typeof questions & string, readonly string[]>

export const describeAccess = defineTool<object>({
  name: 'describe_access',
  title: 'Tell what this key may read',
  description:
    'The permissions of the API key of this server, and the tools that each of them opens. `get_totals` with `rep_id` needs `payouts:read` and `payroll:read`, too, and with `deal_id` `payouts:read`.',
  input: {},
  output: objectSchema({
    permissions: arraySchema(
      objectSchema({
        permission: { type: 'string' },
        allowed: { type: 'boolean' },
        tools: arraySchema({ type: 'string' }, 'The tools that need it.'),
      }),
      'All permissions for one part each. The permission `read` counts as all of them.',
    ),
  }),
  run: async client => {
    const permissions = Object.entries(questions).map(async ([permission, ask]) => ({
      permission,
      allowed: await mayRead(client, permission, ask),
      tools: neededBy[permission as keyof typeof neededBy],
    }))
    return { structured: { permissions: await Promise.all(permissions) } }
  },
})
