// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs in what operators and publishers are told, and in what a start puts back: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const wordsMutants: readonly Mutant[] = [
  // --- details of parked records
  {
    name: 'a detail quotes the value that breaks a rule',
    inside: 'describeValue',
    find: "return `${name} of ${length} character${length === 1 ? '' : 's'}`",
    replace: 'return `${name}: ${value} (${length})`',
  },
  {
    name: 'a detail names the content type that the publisher wrote',
    inside: 'readEnvelope',
    find: "?? 'another content type'",
    replace: '?? contentType',
  },
  {
    name: 'the receipt of a record that is not data_invalid has no detail',
    inside: 'answerQuestion',
    find: 'const detail = await explain({ ...location, partitions, code: outcome.code }, gone)',
    replace:
      "const detail = outcome.code === 'data_invalid' ? await explain({ ...location, partitions, code: outcome.code }, gone) : undefined",
  },
  {
    name: 'a duplicate key is told as JSON that ends too early',
    inside: 'whyNotStrictJson',
    find: "if (end === undefined) return 'an object that has a key twice'",
    replace: "if (end === undefined) return 'no JSON: it ends too early'",
  },
  {
    name: 'a period that ends when it starts is applied',
    inside: 'wrongBoundaries',
    find: 'if (from !== undefined && to !== undefined && from < to) return undefined',
    replace: 'if (from !== undefined && to !== undefined && from <= to) return undefined',
  },
  // --- settings of indices
  {
    name: 'a refresh interval that was set back to its default stops a projector',
    inside: 'checkIndex',
    find: "const [stop] = putBack ? [] : wrong.filter(({ consequence }) => consequence === 'put back or stop')",
    replace: 'const [stop] = wrong',
  },
  {
    name: 'a projector that may not change settings does not start for a harmless one',
    inside: 'isPutBack',
    find: "    if (error instanceof StopError && error.code === 'access_refused') return false\n",
    replace: '',
  },
  {
    name: 'a projector starts although acknowledged documents can be lost',
    inside: 'checkIndex',
    find: '  if (stop !== undefined) throw unsuitable(name, stop)\n',
    replace: '',
  },
  {
    name: 'a pipeline that changes documents is only told',
    inside: 'inspectIndex',
    find: "const [stop] = found.filter(({ consequence }) => consequence === 'stop')",
    replace:
      "const [stop] = found.filter(({ consequence, setting }) => consequence === 'stop' && !setting.endsWith('pipeline'))",
  },
  {
    name: 'a projector starts although searches find no record',
    inside: 'indexSettingRules',
    find: 'isFine: atLeast(SEARCHED_LENGTH_MAX),',
    replace: 'isFine: () => true,',
    flow: 'test/flow/start.test.ts',
  },
  {
    name: 'nothing tells of a setting of mappings that nobody has tried',
    inside: 'indexSettingRules',
    find: 'harmlessMapping.test(setting) || hasRule.has(setting)',
    replace: 'true',
  },
  {
    name: 'a refused index names no template of others',
    inside: 'create',
    file: 'core/store/generations/prepare.ts',
    find: '${answer}${why}${others}',
    replace: '${answer}${why}',
  },
  {
    name: 'a consumer that gave up names no code of the protocol',
    inside: 'wordsOf',
    file: 'core/log/follow/consume.ts',
    find: 'if (refused === undefined) return',
    replace: 'if (error) return',
  },
  {
    name: 'a consumer that gave up names no code of an error that the client wrapped',
    inside: 'causesOf',
    find: 'cause = cause instanceof Error ? cause.cause : undefined',
    replace: 'cause = undefined',
  },
  {
    name: 'of several reasons of a part that does not work, the log has only the first',
    inside: 'createHealth',
    find: 'if (known.has(reason) || known.size >= REASONS_LOGGED) return',
    replace: 'if (known.size > 0) return',
  },
  // --- the doctor, and the status of a projection
  {
    name: 'the doctor does not ask what a start asks of the API keys',
    inside: 'inspectGeneration',
    find: '  await assertSameIndices(identity, steps)\n  return { identity, told }',
    replace: '  if (isOfEvents(generation)) await assertSameIndices(identity, steps)\n  return { identity, told }',
  },
  {
    name: 'the doctor does not look at positions',
    inside: 'inspectStream',
    find: '  await inspectPositions(inspected.identity, steps)\n',
    replace: '',
  },
  {
    name: 'the doctor creates the index template that it only asks about',
    inside: 'inspectCommon',
    find: 'putTemplate(steps, true)',
    replace: 'putTemplate(steps)',
  },
  {
    name: 'the status of a projection at rest shows the time of its last record',
    inside: 'positionDocumentsOf',
    find: 'return withTime(found._source.body, times[0]?.partitions[partition])',
    replace: 'return found._source.body',
  },
  // --- files, blocks, figures
  {
    name: 'validate does not tell UTF-16 from a wrong line',
    inside: 'assertOneJson',
    find: '  if (form !== undefined) throw new CommandError(`${expected} ${form.name}: ${mends[form.kind]}`)\n',
    replace: '',
  },
  {
    name: 'a block quotes the whole reason of Elasticsearch',
    inside: 'blockedIndex',
    find: 'blocked by: \\[/.exec(reasonOf(answer))?.[1]',
    replace: 'blocked by: \\[/.exec(reasonOf(answer))?.[1] ?? reasonOf(answer)',
  },
  {
    name: 'README keeps the figure of an older run',
    inside: 'withFigures',
    find: 'return page.replace(before, () => quoted.text(figures, before))',
    replace: 'return page',
  },
  {
    name: 'the example publishes another amount than README.md shows',
    inside: 'replacement',
    find: "payout.id, '8260.00', '619.50')",
    replace: "payout.id, '8260.00', '619.51')",
  },
]
