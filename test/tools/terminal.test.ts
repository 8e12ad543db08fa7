import { expect, test } from 'vitest'
import { PROGRESS_INTERVAL_MS } from '../../tools/limits.ts'
import { createProgressLine } from '../../tools/terminal.ts'

test('without a terminal, a progress line is printed once in each interval', () => {
  const lines: string[] = []
  let time = 1_000
  const show = createProgressLine({ say: line => lines.push(line) }, () => time)
  for (const passed of [0, PROGRESS_INTERVAL_MS - 1, PROGRESS_INTERVAL_MS, PROGRESS_INTERVAL_MS + 1]) {
    time = 1_000 + passed
    show(`${passed}`)
  }
  expect(lines).toEqual([`${PROGRESS_INTERVAL_MS}`])
})

test('a terminal redraws every line', () => {
  const [drawn, printed] = [[] as string[], [] as string[]]
  const show = createProgressLine({ say: line => printed.push(line), draw: line => drawn.push(line) }, () => 0)
  for (const line of ['1', '2', '3']) show(line)
  expect([drawn, printed]).toEqual([['1', '2', '3'], []])
})
