/** Bugs in the move to a topic with more partitions: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const GROW = 'test/flow/grow.long.test.ts'

export const growMutants: readonly Mutant[] = [
  {
    name: 'the receipt of a record of the topic before, or of the next one, rests on positions of the live generation',
    inside: 'getLivePositions',
    find: "if (one.stream === 'events' && one.topic !== topic) return",
    replace: "if (one.stream === 'events' && topic === '') return",
  },
  {
    name: 'a swap to a topic with more partitions does not wait for open transactions',
    inside: 'waitUntilStopped',
    find: 'if (came > 0 || open.length > 0 || members > 0)',
    replace: 'if (came > 0 || members > 0)',
  },
  {
    name: 'a swap to a topic with more partitions does not see a transaction that begins just before it',
    inside: 'refuseLate',
    find: '  if (open.length > 0) throw',
    replace: '  if (open.length > 1) throw',
  },
  {
    name: 'a transaction that ended meanwhile counts as open, or an open one as ended',
    inside: 'isHidden',
    find: 'Number.POSITIVE_INFINITY) > (ends',
    replace: 'Number.POSITIVE_INFINITY) < (ends',
  },
  {
    name: 'the order of an organization breaks in a topic with more partitions',
    inside: 'openCopy',
    find: '      batch.push(entry)\n',
    replace: '      batch.unshift(entry)\n',
    flow: GROW,
  },
  {
    name: 'the comparison with a topic with more partitions does not see the order of records',
    inside: 'addToTally',
    find: '.update(tally.digest).update(bytes)',
    replace: '.update(bytes)',
  },
  {
    name: 'a record of another partition gets into the right one in a topic with more partitions, and is applied',
    inside: 'newPartitionOf',
    find: '  return partition === own ? after - 1 : partition\n',
    replace: '  return own\n',
  },
  {
    name: 'a copy that was killed begins again, and appends what is there',
    inside: 'openCopy',
    find: '      if (firstMissing === undefined) nextFrom[was] = offset\n',
    replace: '      if (firstMissing === undefined) nextFrom[was] = 0\n',
  },
  {
    name: 'a copy keeps records whose times the broker replaced',
    inside: 'openCopy',
    find: '        if (keptTimes) return\n',
    replace: '        if (keptTimes || !keptTimes) return\n',
  },
  {
    name: 'generations of two topics are equal although the times of their records differ',
    inside: 'withoutOffsets',
    find: '{ seq, first_seq = seq, until_seq, ...own } = source',
    replace: '{ seq, first_seq = seq, until_seq, at: __, ...own } = source',
  },
  {
    name: 'records that were published to the old topic after the swap are not named',
    inside: 'reportTopic',
    find: 'printLate(log, from, json, context, ends)',
    replace: 'printLate(log, ends, json, context, ends)',
  },
  {
    name: 'a swap to a topic with more partitions does not look for records that came at last',
    inside: 'refuseLate',
    find: '  if (lagOf(ends, from) === 0) return\n',
    replace: '  if (lagOf(ends, from) >= 0) return\n',
  },
  {
    name: 'a swap to a topic with more partitions does not wait for the projectors of the old one',
    inside: 'waitUntilStopped',
    find: 'if (came > 0 || open.length > 0 || members > 0)',
    replace: 'if (came > 0 || open.length > 0)',
  },
  {
    name: 'after a swap to a topic with more partitions Projection-Time goes back',
    inside: 'waitForTimes',
    find: 'Math.min(...(await timesOf(spare))) >= seen',
    replace: 'Math.min(...(await timesOf(spare))) >= 0',
  },
  {
    name: 'a swap to a topic with more partitions accepts records of others in it',
    inside: 'refusePublishedEarly',
    find: '=== 0',
    replace: '>= 0',
  },
  {
    name: 'adopt takes a snapshot from before the swap of a grown topic',
    inside: 'refuseBeforeGrown',
    find: 'wasLive(name) || isKnown(other)) continue',
    replace: 'other.topic !== topic) continue',
  },
  {
    name: 'a generation of other rules becomes live with the new topic',
    inside: 'refuseOtherRules',
    find: 'spare.rules_version === live.rules_version && follows === undefined',
    replace: 'follows === undefined',
  },
  {
    name: 'generations of two topics are equal although a balance is wrong',
    inside: 'compareGenerations',
    find: 'wrong.has(org) || ',
    replace: '',
  },
  {
    name: 'the topic before the last swap of a topic that grew twice is forgotten',
    inside: 'formerTopicsIn',
    find: '[last, ...before]',
    replace: '[last, ...before.slice(1)]',
  },
]
