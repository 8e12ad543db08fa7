import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { compareRatios } from '../../../bench/report/compare.ts'
import { drawPicture } from '../../../bench/report/picture.ts'
import { quotedFigures, twoDigits, withFigures } from '../../../bench/report/quoted-figures.ts'
import { pictureFile, renderPage } from '../../../bench/report/report.ts'
import { readResults, replaceFigures, requireMeasured } from '../../../bench/report/results.ts'
import { type Figure, figureNames } from '../../../bench/rig/bench.ts'

const root = join(import.meta.dirname, '../../..')
const place = (name: string): string => `<!--${name}-->\n<!--/${name}-->`
const places = figureNames.map(place).join('\n\n')
const figure: Figure = {
  name: 'replay',
  title: 'How fast',
  rows: [
    { what: 'rate', unit: 'events/s', value: 12_345.6, lowest: 12_000, highest: 13_000 },
    { what: 'share', unit: '', value: 0.8123, isRatio: true, atLeast: 0.85 },
  ],
  notes: ['As it was.'],
  pictures: [
    { name: 'rates', title: 'Rates', unit: 'events/s', bars: [{ name: 'projector', value: 1, lowest: 0, highest: 2 }] },
  ],
}

test('the page has, of each figure, its picture, its headlines and the rows whose bound is missed', () => {
  const other = { what: 'CPU of Kafka, projecting', unit: 'ms per event', value: 1 }
  const projector = { what: 'projector', unit: 'events/s', value: 12_345.6, lowest: 12_000, highest: 13_000 }
  const reached = { what: 'restart', unit: 's', value: 1.5, atMost: 3 }
  const rows = [projector, other, reached, { ...reached, what: 'memory' }, ...figure.rows]
  const page = renderPage(`${place('machine')}\n\n${places}`, { cores: '2' }, [{ ...figure, rows }])
  const lines = page.split('\n').map(line => line.replaceAll(/ +/g, ' '))
  expect(lines).toEqual(
    expect.arrayContaining([
      '| cores | 2 |',
      '![Rates](pictures/bench-rates.svg)',
      '| **How fast** | 2 more: reached |',
      '| projector | 12,346 events/s (12,000–13,000) |',
      '| share | 0.812; ≥ 0.85: missed |',
    ]),
  )
  for (const left of ['CPU of Kafka', '| rate', '| restart', '| memory', 'As it was.']) expect(page).not.toContain(left)
  expect(page.split('Not measured in this run.')).toHaveLength(figureNames.length)
})

test('the page says which figures were measured apart', () => {
  const apart = replaceFigures({ machine: {}, figures: [figure] }, { machine: { run: 'Tuesday' }, figures: [figure] })
  expect(renderPage(`${place('machine')} ${places}`, {}, apart.figures)).toContain('Measured apart: Tuesday, commit')
})

test('a figure without a place, and a place without a figure, are refused', () => {
  expect(() => renderPage(places, {}, [figure])).toThrow('<!--machine-->')
  expect(() => renderPage(`${place('machine')} ${places} ${place('reply')}`, {}, [figure])).toThrow('<!--reply-->')
})

test('figures that were measured apart replace the stored ones of their name, and say when they were measured', () => {
  const other: Figure = { ...figure, name: 'api', title: 'Pages' }
  const stored = { machine: { run: 'whole run, Monday' }, figures: [figure, other] }
  const apart = { machine: { run: 'part, Tuesday', commit: 'abc' }, figures: [{ ...figure, title: 'Faster' }] }
  const { machine, figures } = replaceFigures(stored, apart)
  expect(machine).toEqual(stored.machine)
  expect(figures.map(({ title }) => title)).toEqual(['Faster', 'Pages'])
  expect(figures[0]?.notes[0]).toContain('part, Tuesday, commit abc')
  expect(figures[1]).toEqual(other)
})

test('a figure with a value of nothing is refused: it would be stored as null', () => {
  const [rate] = figure.rows
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
    const rows = rate === undefined ? [] : [{ ...rate, value }]
    expect(() => requireMeasured({ ...figure, rows })).toThrow(`How fast, rate: nothing was measured, got ${value}`)
  }
  expect(() => requireMeasured(figure)).not.toThrow()
})

test('the legend of a picture says who made each bar, and each has a colour of its own', () => {
  const names = ['bulk ceiling', 'projector', 'kafkajs + helpers.bulk']
  const bars = names.map((name, at) => ({ name, value: at + 1 }))
  const drawn = drawPicture({ name: 'replay', title: 'Replay', unit: 'documents/s', bars })
  for (const maker of ['Elasticsearch alone', 'projector', 'plain pipe']) expect(drawn).toContain(`>${maker}<`)
  for (const color of ['#f58518', '#4c78a8', '#8a8a8a']) expect(drawn).toContain(`fill="${color}"`)
})

test('the legend tells p50 from p99 for each maker, and a bar of an unknown maker is refused', () => {
  const names = ['20 events/s: p50', '20 events/s: p99', '20 events/s: plain pipe, p50', '20 events/s: plain pipe, p99']
  const draw = (all: readonly string[]) =>
    drawPicture({ name: 'freshness', title: 'Visible', unit: 'ms', bars: all.map(name => ({ name, value: 1 })) })
  const drawn = draw(names)
  for (const entry of ['projector and API, p50', 'projector and API, p99', 'plain pipe, p50', 'plain pipe, p99'])
    expect(drawn).toContain(`>${entry}<`)
  for (const color of ['#4c78a8', '#9ecae9', '#8a8a8a', '#c8c8c8']) expect(drawn).toContain(`fill="${color}"`)
  expect(() => draw(['somebody else'])).toThrow('got "somebody else"')
})

test('the pictures of the pages have the texts of the stored results', async () => {
  const { figures } = await readResults()
  const pictures = figures.flatMap(({ pictures = [] }) => pictures)
  expect(pictures.length).toBeGreaterThan(5)
  const textsOf = (svg: string): string[] => [...svg.matchAll(/<text[^>]*>([^<]*)</g)].map(([, text = '']) => text)
  for (const picture of pictures) {
    const stored = await readFile(join(root, 'docs', pictureFile(picture)), 'utf8')
    expect(textsOf(stored), picture.name).toEqual(textsOf(drawPicture(picture)))
  }
})

test('bars with their spread, and lines, are drawn', () => {
  const bars = figure.pictures?.[0]
  const drawn = bars && drawPicture(bars)
  for (const text of ['<svg', '>Rates<', '>events/s<', '</svg>']) expect(drawn).toContain(text)
  const lines = drawPicture({
    name: 'lines',
    title: 'Growth',
    unit: 'ms',
    x: { title: 'payouts', isLog: true },
    lines: [
      { name: 'walk', points: [] },
      {
        name: 'page',
        points: [
          [10_000, 2],
          [1_000_000, 3],
        ],
      },
    ],
  })
  for (const text of ['<svg', '>Growth<', '>payouts<', '>page<', '</svg>']) expect(lines).toContain(text)
})

test.each(quotedFigures)('$file quotes the stored results: $line', async quoted => {
  const { figures } = await readResults()
  const page = await readFile(join(root, quoted.file), 'utf8')
  expect(withFigures(page, quoted, figures)).toBe(page)
})

test('a figure of another run is found, and replaced', async () => {
  const { figures } = await readResults()
  const [first] = quotedFigures
  const old = 'a\nOn two cores for everything: half of them are visible after 25 to 35 ms\nb'
  expect(first && withFigures(old, first, figures)).toMatch(
    /^a\nOn two cores for everything: a replay projects 8,400 payouts\/s; at 200 events\/s, half of them are visible after 47 ms; the API answers 330 pages of 200 a second\nb$/,
  )
  expect([8421, 49.18, 333, 0.1003, 0.107, 1.0].map(twoDigits)).toEqual(['8,400', '49', '330', '0.10', '0.11', '1.0'])
})

test('README and the pages quote rates and times of the bench only where they are written from it', async () => {
  const quoting = /[0-9] ?(?:payouts|events)\/s|^On two cores|visible after [0-9]/
  const pages = ['README.md', ...(await readdir(join(root, 'docs'))).map(name => `docs/${name}`)]
  for (const page of pages.filter(name => name.endsWith('.md') && name !== 'docs/performance.md')) {
    const own = quotedFigures.filter(({ file }) => file === page)
    const lines = (await readFile(join(root, page), 'utf8')).split('\n').filter(line => quoting.test(line))
    expect(
      lines.filter(line => !own.some(quoted => quoted.line.test(line))),
      page,
    ).toEqual([])
  }
})

test('docs/performance.md has the stored results', async () => {
  const { machine, figures } = await readResults()
  const page = await readFile(join(root, 'docs/performance.md'), 'utf8')
  expect(page).toBe(renderPage(page, machine, figures))
  expect(compareRatios(figures, figures).filter(({ isTooMuch }) => isTooMuch)).toEqual([])
})
