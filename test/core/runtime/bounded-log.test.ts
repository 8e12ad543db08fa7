import files, { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, test, vi } from 'vitest'
import { boundLog } from '../../../core/runtime/bounded-log.ts'
import { createPipe } from '../../support/pipes.ts'
import { eventually } from '../../support/scope.ts'

const LINE = 'x'.repeat(1_000)

/** Its clock goes on by 100 ms at each look: the pauses of a busy machine take no time. */
const loggingInto = (fd: number) => {
  let time = 0
  const bounded = boundLog({ stdout: undefined }, files, () => (time += 100))
  const stream = pino.destination({ ...bounded.options, dest: fd })
  const said: number[] = []
  const log = pino({ base: null }, stream)
  bounded.watch(stream, dropped => {
    said.push(dropped)
    log.warn({ dropped }, 'dropped')
  })
  return { log, said, elapsed: () => time, end: () => bounded.end(stream) }
}

test('unread log lines are bounded, and the number of dropped lines is logged once', async scope => {
  const pipe = createPipe(scope)
  pipe.fill()
  const { log, said, end } = loggingInto(pipe.nonBlockingEnd())
  const lines = 20_000
  for (let n = 0; n < lines; n++) log.info({ n, text: LINE }, 'line')
  expect(said).toEqual([])
  let text = ''
  await eventually(
    () => {
      text += pipe.read()
      expect(text).toContain('"msg":"dropped"}\n')
    },
    { every: 1 },
  )
  const kept = [...text.matchAll(/"n":(\d+),/g)].map(([, n]) => Number(n))
  // The oldest lines are kept, in order. Only the counted lines are lost.
  expect(kept).toEqual(Array.from({ length: kept.length }, (_, n) => n))
  expect(said).toEqual([lines - kept.length])
  expect(kept.length * LINE.length).toBeGreaterThan(3 * 1024 * 1024)
  expect(kept.length * LINE.length).toBeLessThan(5 * 1024 * 1024)
  end()
})

test('the end waits only for a moment if nobody reads', async scope => {
  const pipe = createPipe(scope)
  pipe.fill()
  const { log, elapsed, end } = loggingInto(pipe.nonBlockingEnd())
  log.info('line')
  end()
  expect(elapsed()).toBeLessThan(2_000)
})

test('the end writes the waiting lines if somebody reads', async scope => {
  const pipe = createPipe(scope)
  const { log, end } = loggingInto(pipe.nonBlockingEnd())
  log.info('the last line')
  end()
  await eventually(() => expect(pipe.read()).toContain('the last line'))
})

test('the end waits only for a moment if the reader has left', async scope => {
  const pipe = createPipe(scope)
  const { log, elapsed, end } = loggingInto(pipe.nonBlockingEnd())
  pipe.closeReader()
  // The first line is being written when the second one is flushed.
  for (const line of ['first', 'second']) log.info(line)
  end()
  expect(elapsed()).toBeLessThan(2_000)
})

test('a fatal line, which is flushed at once, waits only for a moment', async scope => {
  const pipe = createPipe(scope)
  pipe.fill()
  const { log, elapsed, end } = loggingInto(pipe.nonBlockingEnd())
  log.info('line')
  log.fatal('fatal')
  expect(elapsed()).toBeLessThan(2_000)
  end()
})

test('lines that find no room on the disk wait, and are written when there is room, whole and in order', async scope => {
  const folder = mkdtempSync(join(tmpdir(), 'commission-log-'))
  scope.onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'log')
  const { log, end } = loggingInto(openSync(file, 'w'))
  // The type of `spyOn` knows only one of the forms of `write`.
  const full = vi.spyOn(files, 'write').mockImplementation(((...given: unknown[]) => {
    const done = given.at(-1) as (error: Error) => void
    setImmediate(() => done(Object.assign(new Error('no space'), { code: 'ENOSPC' })))
  }) as never)
  scope.onTestFinished(() => full.mockRestore())
  for (const tries of [1, 2]) {
    log.info(`before ${tries}`)
    await eventually(() => expect(full).toHaveBeenCalledTimes(tries))
    await new Promise(setImmediate)
  }
  full.mockRestore()
  log.info('after')
  const said = () => readFileSync(file, 'utf8').match(/(?<="msg":")[^"]*/g)
  await eventually(() => expect(said()).toEqual(['before 1', 'before 2', 'after']))
  end()
})
