/** Bugs in the explorer: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const EXPLORER = 'test/flow/explorer.test.ts'

export const explorerMutants: readonly Mutant[] = [
  {
    name: 'an amount of the explorer goes through a double',
    inside: 'groupDigits',
    find: "  const point = amount.indexOf('.')\n",
    replace: "  amount = String(parseFloat(amount))\n  const point = amount.indexOf('.')\n",
  },
  {
    name: 'the key stays in the address of the explorer',
    file: 'explorer/src/main.tsx',
    find: "history.replaceState(null, '', rest)",
    replace: 'void rest',
    flow: EXPLORER,
  },
  {
    name: 'the explorer stores its key',
    inside: 'openSession',
    find: '  let upTo: string | undefined\n',
    replace: "  let upTo: string | undefined\n  sessionStorage.setItem('key', key)\n",
    flow: EXPLORER,
  },
  {
    name: 'the former organization stays in memory when a link with another key is opened',
    inside: 'useAddress',
    find: 'location.reload()',
    replace: 'setAddress(readAddress(takeKey(location.hash).rest))',
    flow: EXPLORER,
  },
  {
    name: 'the explorer compares a corrected payout with itself',
    inside: 'withBefore',
    find: "byId.get(after.supersedes_id ?? '')",
    replace: 'after',
  },
  {
    name: 'the explorer shows only the first part of a page of large changes',
    inside: 'changesBetween',
    find: 'if (change.sequence >= end) break',
    replace: 'if (found.length >= 10 || change.sequence >= end) break',
  },
  {
    name: 'the explorer says of a part of the changes that no payout was replaced',
    inside: 'search',
    file: 'explorer/src/state/corrections.ts',
    find: '!isEnough && hasMore',
    replace: 'false',
  },
  {
    name: 'the explorer takes any text for a moment, and writes it into the address',
    inside: 'momentIn',
    find: 'if (date === undefined) return undefined',
    replace: 'if (date === undefined) return text',
  },
  {
    name: 'the explorer shows a line with a new id as added and as removed',
    inside: 'compareLines',
    find: '  take(contentOf)\n',
    replace: '',
  },
  {
    name: 'a key without totals reads the changes of the largest organization to their end',
    inside: 'lastChangeOf',
    find: 'pages >= PAGES_MAX',
    replace: 'pages < 0',
  },
  {
    name: 'an address that no view has shows the overview, as if somebody had asked for it',
    inside: 'readAddress',
    find: "return { view: 'unknown', ...parameterFields }",
    replace: "return { view: 'overview', ...parameterFields }",
  },
  {
    name: 'the explorer says of a refused moment that everything is as it was then',
    inside: 'momentWords',
    find: 'isAccepted ? texts.moment.shown : texts.moment.refused',
    replace: 'texts.moment.shown',
    flow: EXPLORER,
  },
  {
    name: 'the page of a rep shows the totals of all reps',
    inside: 'PayoutsView',
    find: 'await client.totals(filter)',
    replace: 'await client.totals()',
    flow: EXPLORER,
  },
  {
    name: 'the explorer shows one moment and reads another',
    inside: 'Open',
    find: 'session.client.asOf(asOf)',
    replace: 'session.client',
    flow: EXPLORER,
  },
]
