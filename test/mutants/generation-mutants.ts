// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands here is code as text
/** Bugs that somebody could make in rebuilding, comparing and swapping generations: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const GENERATIONS = 'test/flow/projection.test.ts'
const CHANGE = 'test/flow/change-of-rules.test.ts'

export const generationMutants: readonly Mutant[] = [
  {
    name: 'a generation under other rules decides for itself from the beginning',
    file: 'projector/flow/follow.ts',
    find: '  if (follows === undefined) return undefined\n',
    replace: '  if (follows === undefined || follows !== undefined) return undefined\n',
    flow: CHANGE,
  },
  {
    name: 'a generation under other rules does not wait for the one it follows',
    file: 'projector/flow/follow.ts',
    find: '    if (!isAlone() && decidedTo() < batch.end) await untilDecided(batch)\n',
    replace: '    if (!isAlone() && decidedTo() < 0) await untilDecided(batch)\n',
    flow: CHANGE,
  },
  {
    name: 'a generation that follows another is past what that one has only begun to decide',
    file: 'projector/flow/follow.ts',
    find: 'const until = isAlone() ? batch.end : Math.min(decidedTo(), batch.end)',
    replace: 'const until = batch.end',
  },
  {
    name: 'what was parked is taken over for ever, also what the other one parks after the swap',
    file: 'projector/flow/follow.ts',
    find: '    const parkedUntil = alone ?? until\n',
    replace: '    const parkedUntil = until\n',
  },
  {
    name: 'a generation that follows another waits for the end of a batch in the middle of which that one stopped',
    file: 'projector/flow/follow.ts',
    find: '  const untilDecided = ({ from }: Batch): Promise<void> =>\n',
    replace: '  const untilDecided = ({ end: from }: Batch): Promise<void> =>\n',
  },
  {
    name: 'what is not decided yet is lost where a batch is cut',
    file: 'projector/flow/flow.ts',
    find: 'for (const later of [undecided, rest]) this',
    replace: 'for (const later of [rest]) this',
  },
  {
    name: 'the position of the followed one is read after what is live',
    file: 'projector/flow/follow.ts',
    find: '    const [position] = await multiGet([{ _index, _id: positionId(follows, partition) }])\n    const [live] = await multiGet([{ _index, _id: LIVE_ID }])\n',
    replace:
      '    const [live] = await multiGet([{ _index, _id: LIVE_ID }])\n    const [position] = await multiGet([{ _index, _id: positionId(follows, partition) }])\n',
  },
  {
    name: 'where a generation begins to decide by itself is written down anew each time',
    file: 'projector/generations/generations.ts',
    find: 'alone: { [now.live]: floor, ...now.alone }',
    replace: 'alone: { ...now.alone, [now.live]: floor }',
  },
  {
    name: 'parked there, a record is assessed here first',
    file: 'projector/flow/follow.ts',
    find: "  if (code === undefined || 'passedOver' in assessed) return assessed\n",
    replace:
      "  if (code === undefined || 'passedOver' in assessed || typeof assessed.verdict !== 'string') return assessed\n",
    flow: CHANGE,
  },
  {
    name: 'a generation beside one that took positions over asks nobody',
    file: 'commands/generations/rebuild.ts',
    find: 'live.rules_version === rulesVersion && live.follows === undefined ? undefined',
    replace: 'live.rules_version === rulesVersion ? undefined',
    flow: CHANGE,
  },
  {
    name: 'going back does not look at what would no longer be parked',
    file: 'commands/generations/check-parked.ts',
    find: '  if (count === 0) return reached\n',
    replace: '  if (count >= 0) return reached\n',
    flow: CHANGE,
  },
  {
    name: 'an API process shows less of a new generation than another one showed of the one before',
    file: 'api/read/position.ts',
    find: '(floor === null ? Number.POSITIVE_INFINITY : (floor?.[partition] ?? 0))',
    replace: '(floor === null ? 0 : (floor?.[partition] ?? 0))',
  },
  {
    name: 'a swap does not wait for the generation that is made live',
    file: 'commands/generations/swap.ts',
    find: '    if (behind === 0) return\n',
    replace: '    if (behind >= 0) return\n',
    flow: GENERATIONS,
  },
  {
    name: 'what was not compared is made live',
    file: 'commands/generations/compared.ts',
    find: '  if (note === undefined) {',
    replace: '  if (note === null) {',
    flow: GENERATIONS,
  },
  {
    name: 'the one that was live before is not kept up after a swap',
    file: 'commands/generations/swap.ts',
    find: '    return { ...now, live: generation, previous: before, floor: null }\n',
    replace: '    return { ...now, live: generation, kept: [generation], previous: before, floor: null }\n',
    flow: GENERATIONS,
  },
  {
    name: 'the live one can be dropped',
    file: 'commands/generations/drop.ts',
    find: '    if (seen.live === generation) throw new CommandError(`${generation} is live: it cannot be dropped`)\n',
    replace: '',
    flow: GENERATIONS,
  },
  {
    name: 'generations are compared by what is in them, not by their documents',
    file: 'commands/documents/summarize.ts',
    find: '.update(`${kind}\\n${id}\\n${JSON.stringify(source)}`)',
    replace: '.update(`${kind}\\n${id}`)',
    flow: GENERATIONS,
  },
  {
    name: 'nobody says how far the one before may have been seen, where the command was cut short',
    file: 'projector/start.ts',
    find: '    if (generations.floor === null) await finishSwap(steps, health)\n',
    replace: '',
  },
  {
    name: 'what is live is read before the position that is shown',
    file: 'api/read/position.ts',
    find: '      const [positionNow, liveNow, ...found] = await read(\n        [control(positionId(generation.name, partition)), control(LIVE_ID), ...names],',
    replace:
      '      const [liveNow, positionNow, ...found] = await read(\n        [control(LIVE_ID), control(positionId(generation.name, partition)), ...names],',
  },
  {
    name: 'what came after a comparison began counts as a difference',
    file: 'commands/documents/as-of.ts',
    find: "  const current = { until_seq: UNTIL_FOREVER, ...('superseded_by_id' in fields && { superseded_by_id: null }) }\n",
    replace: '  const current = {}\n',
  },
  {
    name: 'a rebuild that was stopped begins anew beside what it made',
    file: 'commands/generations/rebuild.ts',
    find: 'isNew = before.building === null',
    replace: 'isNew = true',
    flow: GENERATIONS,
  },
]
