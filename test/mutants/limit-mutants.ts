// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs in the limits for clients of the API: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const RATE = 'test/flow/api-rate.test.ts'
const MANY_WAITS = 'test/flow/api-many-waits.test.ts'
const SHARES = 'test/flow/api-shares.test.ts'

export const limitMutants: readonly Mutant[] = [
  {
    name: 'a key that is revoked while its request queues for the first search of its wait gets the page',
    inside: 'waitForChange',
    find: 'await state.recheckKey()',
    replace: 'if (waitsSince !== undefined) await state.recheckKey()',
  },
  {
    name: 'a wait whose client leaves while it queues keeps its place',
    inside: 'createChangeWatch',
    find: 'AbortSignal.any([scope.signal, leaving, timeIsUp])',
    replace: 'AbortSignal.any([scope.signal, timeIsUp])',
  },
  {
    name: 'a wait whose time ends while it queues is refused',
    inside: 'createChangeWatch',
    find: 'AbortSignal.any([scope.signal, leaving, timeIsUp])',
    replace: 'AbortSignal.any([scope.signal, leaving])',
  },
  {
    name: 'a process that stops searches for the waits that queue',
    inside: 'createChangeWatch',
    find: 'onTurn()\n        if (ended) return undefined\n',
    replace: 'onTurn()\n',
  },
  {
    name: 'the waits of all organizations begin to search at the same moment',
    inside: 'createApi',
    find: 'runPermitted(shares.waitSearches)',
    replace: 'runPermitted({ ...shares.waitSearches, acquire: async () => () => undefined })',
    flow: MANY_WAITS,
  },
  {
    name: 'a wait whose first search has no turn yet is refused',
    inside: 'WAIT_SEARCHES',
    find: 'queue: WAITS.permits,',
    replace: 'queue: 0,',
    flow: MANY_WAITS,
  },
  {
    name: 'a search that finds little reserves the room of a page',
    inside: 'searchSmall',
    find: ', reading, SMALL_SEARCH_BYTES))',
    replace: ', reading))',
    flow: MANY_WAITS,
  },
  {
    name: 'a wait begins when its first search is done',
    inside: 'createChangeWatch',
    find: 'Math.max(0, milliseconds - (elapsed() - begun))',
    replace: 'milliseconds',
  },
  {
    name: 'the heap grows to four times what it has, however much that is',
    inside: 'createHeapGrowth',
    find: 'Math.min(HEAP_GROWTH_PERCENT_MAX, Math.max(HEAP_GROWTH_PERCENT_MIN, fitting))',
    replace: 'HEAP_GROWTH_PERCENT_MAX',
  },
  {
    name: 'totals without a row are remembered without a limit',
    inside: 'createReadTotals',
    find: 'sizeCalculation: bytesOf }',
    replace: 'sizeCalculation: one => bytesOf(one, "") - TOTALS_BYTES.each + 1 }',
  },
  {
    name: 'the first request over a limit is no increase of its counter',
    inside: 'createApiMetrics',
    find: '  for (const by of LIMITED_BY) rateLimited.inc({ by }, 0)\n',
    replace: '',
  },
  {
    name: 'a try of an unknown key is counted after its look-up',
    inside: 'createFailedLogins',
    find: '      window.count++\n      let isTakenBack = false\n      return () => {\n        if (!isTakenBack) window.count--\n',
    replace:
      '      queueMicrotask(() => window.count++)\n      let isTakenBack = false\n      return () => {\n        if (!isTakenBack) window.count--\n',
  },
  {
    name: 'an address without tries left is refused without a look-up of its key',
    inside: 'createAdmitKey',
    find: '    const release = await lanes.keyLookupsExhausted.acquire(signal)\n',
    replace: '    const release = failures.hasTry(address) && (await lanes.keyLookupsExhausted.acquire(signal))\n',
    flow: RATE,
  },
  {
    name: 'a key that queues takes a try of its address',
    inside: 'createAdmitKey',
    find: '      const release = await lanes.keyLookups.acquire(signal)\n',
    replace:
      '      const early = failures.reserve(address)\n      const release = await lanes.keyLookups.acquire(signal).finally(early)\n',
  },
  {
    name: 'a key in the queue is looked up although its address has no try left',
    inside: 'createAdmitKey',
    find: '        if (takeBack) return await lookupTried(key, address, takeBack, signal)\n',
    replace: '        return await lookupTried(key, address, takeBack ?? (() => undefined), signal)\n',
  },
  {
    name: 'a good key counts against its address',
    inside: 'createAdmitKey',
    find: '      if (!isUnknown) takeBack()',
    replace: '      if (result === undefined) takeBack()',
  },
  {
    name: 'the client address is the first hop of X-Forwarded-For',
    inside: 'createAddressOf',
    find: 'hops.pop()',
    replace: 'hops.shift()',
  },
  {
    name: 'a checksum is expected in every key that begins with ck_',
    inside: 'checked',
    file: 'schemas/key-text.ts',
    find: '{${KEY_SECRET_LENGTH}})_([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`)',
    replace: '{${KEY_SECRET_LENGTH - CHECKSUM_LENGTH}})_?([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`)',
  },
  {
    name: 'one organization may use all read permits',
    inside: 'READS_OF_ORGANIZATION',
    find: 'READS_OF_ORGANIZATION = { permits: READS_IN_FLIGHT_MAX / 5,',
    replace: 'READS_OF_ORGANIZATION = { permits: READS_IN_FLIGHT_MAX,',
    flow: SHARES,
  },
  {
    name: 'a request counts as finished before its answer is delivered',
    inside: 'limitInFlight',
    find: '    await next()\n',
    replace: '    await next()\n    ofKey()\n    ofOrganization()\n',
    flow: SHARES,
  },
  {
    name: 'a 304 to If-None-Match: * is not counted',
    inside: 'answerNotModified',
    find: '  if (!isAny(asked)) refundUnit()',
    replace: '  if (asked) refundUnit()',
    flow: RATE,
  },
  {
    name: 'a permit that is released twice counts twice',
    inside: 'createSemaphore',
    find: '      if (given) return\n',
    replace: '',
  },
  {
    name: 'one organization may use all permits for totals',
    inside: 'createReadTotals',
    find: 'ofOrganization < TOTALS_OF_ORGANIZATION',
    replace: 'ofOrganization < TOTALS_AT_ONCE',
  },
  {
    name: 'all refused clients get the same Retry-After',
    inside: 'retryAfter',
    find: 'Math.floor(random() * (RETRY_AFTER_MAX - RETRY_AFTER_MIN + 1))',
    replace: 'Math.floor(random())',
  },
  {
    name: 'every request costs one unit, whatever its size',
    inside: 'unitsOf',
    find: 'Math.max(1, Math.ceil(bytes / RATE_UNIT_BYTES))',
    replace: 'Math.max(1, Math.ceil(bytes / RATE_UNIT_BYTES / 1_000))',
    flow: RATE,
  },
  {
    name: 'the extra cost of a large answer is shown but not counted',
    inside: 'limitRate',
    find: '      charge(counter, counterKey, more)\n',
    replace: '      charge(counter, counterKey, 0)\n',
    flow: RATE,
  },
  {
    name: 'large payouts are compared in one piece',
    inside: 'createPace',
    file: 'core/reading/pace.ts',
    find: 'return items >= slice.items || bytes >= slice.bytes',
    replace: 'return items >= 10 * slice.items || bytes >= 10 * slice.bytes',
  },
  {
    name: 'lines of equal length count as equal',
    inside: 'isEqual',
    find: ' && a.bytes.compare(b.bytes, b.from, b.to, a.from, a.to) === 0',
    replace: '',
  },
  {
    name: 'the entity tag does not change with the form of answers',
    inside: 'entityTag',
    find: '${what} ${ANSWER_FORM} ${position',
    replace: '${what} 1${ANSWER_FORM - ANSWER_FORM} ${position',
  },
  {
    name: 'each request of a flood without a key is logged',
    inside: 'answerAndLog',
    find: 'ctx.state.key !== undefined && !isLimited',
    replace: '!isLimited',
  },
  {
    name: 'a client that leaves before the end of a large read pays one unit',
    inside: 'unitsToAdd',
    find: 'ended.bytesWhenGone, arrived, ',
    replace: 'arrived, ',
  },
  {
    name: 'every refusal of a flood is logged',
    inside: 'createAdmitLine',
    find: 'window.lines >= REFUSALS_LOGGED || ',
    replace: '',
  },
  {
    name: 'an error repeats the whole name of an unknown parameter',
    inside: 'unknownParameter',
    find: 'usual.slice(0, PARAMETER_NAME_SHOWN)',
    replace: 'usual',
  },
]
