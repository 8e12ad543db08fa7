/** Bugs in the server for agents: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const AGENTS = 'test/flow/agents.test.ts'

export const agentMutants: readonly Mutant[] = [
  {
    name: 'an amount of an agent goes through a double',
    inside: 'viewPayout',
    find: '{ ...payout, line_count: line_items.length }',
    replace: '{ ...payout, net_amount: String(Number(payout.net_amount)), line_count: line_items.length }',
    flow: AGENTS,
  },
  {
    name: 'an error of the runtime quotes the key to an agent',
    inside: 'failureInWords',
    find: ".replaceAll(key, '[key]')",
    replace: '',
  },
  {
    name: 'a server for agents takes a key that the runtime quotes',
    inside: 'keyProblem',
    find: 'const isHeaderText = ',
    replace: 'const isHeaderText = key.length > 0 || ',
  },
  {
    name: 'a page that was cut for an agent has the cursor of the page of the API',
    inside: 'readPage',
    find: "isCut ? (data[shown.length - 1]?.id ?? '') : nextCursor",
    replace: 'nextCursor',
  },
  {
    name: 'a page that was cut for an agent says that it is the last',
    inside: 'readPage',
    find: 'hasMore || isCut',
    replace: 'hasMore',
  },
  {
    name: 'the parts of a payout leave a line out',
    inside: 'answerPart',
    find: 'const next = from + data.length',
    replace: 'const next = from + data.length + 1',
  },
  {
    name: 'an agent is told that a recorded payout was calculated',
    inside: 'stepsText',
    find: 'if (!statement.calculation_trace_recorded)',
    replace: 'if (statement.id.length === 0)',
    flow: AGENTS,
  },
  {
    name: 'an agent asks for one moment and reads another',
    inside: 'clientAt',
    find: 'as_of === undefined ? client : client.asOf(as_of)',
    replace: 'as_of === undefined ? client : client.asOf(as_of) && client',
    flow: AGENTS,
  },
  {
    name: 'changes after a sequence begin with the first one',
    inside: 'changesOf',
    file: 'client/mcp/src/changes.ts',
    find: 'client.changes({ ...options, after: after_sequence })',
    replace: 'client.changes(options)',
    flow: AGENTS,
  },
  {
    name: 'a permission that a key lacks counts as allowed',
    inside: 'mayRead',
    find: "error.code === 'forbidden') return false",
    replace: "error.code === 'forbidden') return true",
    flow: AGENTS,
  },
  {
    name: 'the server for agents writes to standard output beside the protocol',
    inside: 'start',
    file: 'client/mcp/src/main.ts',
    find: '  const ending = new AbortController()\n',
    replace: "  const ending = new AbortController()\n  console.log('ready')\n",
    flow: AGENTS,
  },
  {
    name: 'a request of an agent that is gone keeps its process',
    inside: 'start',
    file: 'client/mcp/src/main.ts',
    find: "process.stdin.once('end', () => ending.abort())",
    replace: 'void ending',
    flow: AGENTS,
  },
]
