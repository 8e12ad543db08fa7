/** docs/logs.md has every log line of the sources; a line that cannot be read is refused. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Logged, readLogLines } from './log-lines.ts'
import { LOGS_PAGE, logsPage, productLines } from './logs-page.ts'

/** The compiler reads the whole project. */
const TIME_MAX = 120_000

test(
  'docs/logs.md has the lines of the sources; else run `npm run contract`, and say in the changelog what changed',
  () => {
    const logged = productLines()
    expect(readFileSync(LOGS_PAGE, 'utf8') === logsPage(logged)).toBe(true)
    const [line, ...others] = logged.lines
    if (line === undefined) throw new Error('no line')
    const fields = [...line.fields, { name: 'salary', type: 'number', optional: false }]
    expect(() => logsPage({ ...logged, lines: [{ ...line, fields }, ...others] })).toThrow('without a meaning: salary;')
    expect(() => logsPage({ ...logged, lines: [{ ...line, messages: ['{id} came'] }, ...others] })).toThrow('{id} came')
    const withoutGroups = logged.lines.filter(({ file }) => !file.endsWith('group.ts'))
    expect(() => logsPage({ ...logged, lines: withoutGroups })).toThrow('not in a line: members')
  },
  TIME_MAX,
)

test.for(['projector', 'api'])('each line of the %s names its process', program => {
  const main = readFileSync(join(import.meta.dirname, '../..', program, 'main.ts'), 'utf8')
  expect(main).toContain(`base: { process: '${program}' }`)
})

const declarations = `
  type Write = (details: object, message: string) => void
  declare const log: { info: Write & ((message: string) => void); warn: Write; error: Write; fatal: Write }
  declare const say: (level: 'info' | 'warn', message: string, details?: object) => void
  declare const where: Readonly<Record<string, string | number>>
  declare const count: number | undefined
  declare const isBad: boolean
  declare class StopError { constructor(code: string, detail: string, where?: object) }
  declare const run: (steps: { warn?: Write; write?: Write }) => void
`

const read = (source: string): Logged => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'log-lines-')))
  onTestFinished(() => rmSync(root, { recursive: true }))
  mkdirSync(join(root, 'projector'))
  writeFileSync(join(root, 'projector/one.ts'), `export {}\n${declarations}\n${source}\n`)
  const compilerOptions = { strict: true, noEmit: true, target: 'ES2024', lib: ['ES2024'], types: [] }
  writeFileSync(join(root, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['projector'] }))
  return readLogLines(root, path => path.startsWith('projector/'))
}
const described = (source: string): string[] =>
  read(source).lines.map(({ levels, messages, fields, open }) =>
    [
      levels.join('|'),
      messages.join('|'),
      ...fields.map(({ name, type, optional }) => `${name}${optional ? '?' : ''}: ${type}`),
      ...(open ? ['open'] : []),
    ].join(', '),
  )

describe('in a source', () => {
  test.for([
    ['a message alone', `log.info('began')`, 'info, began'],
    [
      'fields',
      `log.warn({ part: 'a', count, all: ['x'] }, 'm')`,
      'warn, m, part: string, count?: number, all: array of strings',
    ],
    ['fields of an error', `log.fatal({ code: 'x', ...where }, 'm')`, 'fatal, m, code: string, open'],
    ['the level first', `say('warn', 'm', { a: isBad })`, 'warn, m, a: boolean'],
    ['a level that is chosen', `log[isBad ? 'warn' : 'info']({ a: null }, 'm')`, 'info|warn, m, a: null'],
    ['messages that are chosen', `log.warn({}, isBad ? 'bad' : 'good')`, 'warn, bad|good'],
    ['a message with a part that differs', `log.warn({}, \`lost \${count} of it\`)`, 'warn, lost {count} of it'],
    [
      'a method under its own name',
      `const { warn } = log; run({ warn: log.warn.bind(log) }); warn({}, 'm')`,
      'warn, m',
    ],
    ['a method that may be absent', `const steps: { warn?: Write } = log; steps.warn?.({}, 'm')`, 'warn, m'],
  ] as const)('a line with %s is read', ([, source, line]) => {
    expect(described(source)).toEqual([line])
  })

  test.for([
    [`const write = log.info`, 'log.info'],
    [`run({ write: log.warn })`, 'log.warn'],
    [`run({ write: log.warn.bind(log) })`, 'log.warn'],
    [`const { warn: write } = log`, 'warn: write'],
    [`log.info({ a: 1 } as never)`, 'log.info'],
    [`say(String(count) as never, 'm')`, 'say'],
    [`throw new StopError('a', 'detail', where)`, 'StopError'],
    [`throw new StopError(String(count), 'detail')`, 'StopError'],
  ] as const)('%s is refused', ([source, named]) => {
    expect(() => read(source)).toThrow(named)
  })

  test('the fields of a stop code are those of its errors', () => {
    expect(read(`throw new StopError(isBad ? 'a' : 'b', 'detail', { offset: 1 })`).stops).toEqual(
      ['a', 'b'].map(code => ({ code, fields: [{ name: 'offset', type: 'number', optional: false }] })),
    )
  })
})
