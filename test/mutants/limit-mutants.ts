// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands here is code as text
/** Bugs that somebody could make in what limits the clients of the API: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const RATE = 'test/flow/api-rate.test.ts'
const SHARES = 'test/flow/api-shares.test.ts'

export const limitMutants: readonly Mutant[] = [
  {
    name: 'tries of keys are counted after their look-up',
    file: 'api/access/failed-logins.ts',
    find: '      window.count++\n      let taken = false\n      return () => {\n        if (!taken) window.count--\n',
    replace:
      '      queueMicrotask(() => window.count++)\n      let taken = false\n      return () => {\n        if (!taken) window.count--\n',
  },
  {
    name: 'an address without a try left is refused whatever its key',
    file: 'api/access/admit-keys.ts',
    find: '    let result: Admission | undefined\n',
    replace: "    if (!takeBack) return 'refused'\n    let result: Admission | undefined\n",
    flow: RATE,
  },
  {
    name: 'a good key counts against its address',
    file: 'api/access/admit-keys.ts',
    find: "      if (result !== 'unknown') takeBack?.()",
    replace: "      if (result === 'refused') takeBack?.()",
  },
  {
    name: 'the first hop of X-Forwarded-For is believed',
    file: 'api/http/client-address.ts',
    find: 'hops.pop()',
    replace: 'hops.shift()',
  },
  {
    name: 'a checksum is looked for in any key that begins with ck_',
    file: 'schemas/key-text.ts',
    find: '{${KEY_SECRET_LENGTH}})_([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`)',
    replace: '{${KEY_SECRET_LENGTH - CHECKSUM_LENGTH}})_?([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`)',
  },
  {
    name: 'one organization may take all reading slots',
    file: 'api/limits.ts',
    find: 'READS_OF_ORGANIZATION = { permits: READS_IN_FLIGHT_MAX / 5,',
    replace: 'READS_OF_ORGANIZATION = { permits: READS_IN_FLIGHT_MAX,',
    flow: SHARES,
  },
  {
    name: 'a request is no longer under way once its answer is made',
    file: 'api/access/limit-under-way.ts',
    find: '    await next()\n',
    replace: '    await next()\n    ofKey()\n    ofOrganization()\n',
    flow: SHARES,
  },
  {
    name: 'a 304 to If-None-Match: * is not counted',
    file: 'api/answer/answer-page.ts',
    find: '  if (!isAny(asked)) ctx.state.uncount?.()',
    replace: '  if (asked) ctx.state.uncount?.()',
    flow: RATE,
  },
  {
    name: 'a permit that is given back twice counts twice',
    file: 'api/capacity/semaphore.ts',
    find: '      if (given) return\n',
    replace: '',
  },
  {
    name: 'one organization sums its totals in all places there are',
    file: 'api/read/read-totals.ts',
    find: 'ofOrganization < TOTALS_OF_ORGANIZATION',
    replace: 'ofOrganization < TOTALS_AT_ONCE',
  },
  {
    name: 'all who are refused for now are told to come again at the same time',
    file: 'api/failures.ts',
    find: 'Math.floor(random() * (RETRY_AFTER_MAX - RETRY_AFTER_MIN + 1))',
    replace: 'Math.floor(random())',
  },
  {
    name: 'every request costs one, whatever it takes',
    file: 'api/access/limit-rate.ts',
    find: 'Math.max(1, Math.ceil(bytes / RATE_UNIT_BYTES))',
    replace: 'Math.max(1, Math.ceil(bytes / RATE_UNIT_BYTES / 1_000))',
    flow: RATE,
  },
  {
    name: 'what a large answer costs is shown but not counted',
    file: 'api/access/limit-rate.ts',
    find: '    charge(counter, place, more)\n',
    replace: '    charge(counter, place, 0)\n',
    flow: RATE,
  },
  {
    name: 'large payouts are compared in one piece',
    file: 'api/pace.ts',
    find: 'return items >= slice.items || bytes >= slice.bytes',
    replace: 'return items >= 10 * slice.items || bytes >= 10 * slice.bytes',
  },
  {
    name: 'lines of one length are the same line',
    file: 'api/answer/compare-payouts.ts',
    find: ' && a.bytes.compare(b.bytes, b.from, b.to, a.from, a.to) === 0',
    replace: '',
  },
  {
    name: 'the entity tag stays when the form of answers changes',
    file: 'api/answer/answer-page.ts',
    find: '${what} ${ANSWER_FORM} ${position',
    replace: '${what} 1${ANSWER_FORM - ANSWER_FORM} ${position',
  },
  {
    name: 'every refusal of a flood is logged',
    file: 'api/answer/log-refusals.ts',
    find: 'window.lines >= REFUSALS_LOGGED || ',
    replace: '',
  },
  {
    name: 'the name of an unknown parameter is repeated whole',
    file: 'api/read/read-parameters.ts',
    find: 'usual.slice(0, PARAMETER_NAME_SHOWN)',
    replace: 'usual',
  },
]
