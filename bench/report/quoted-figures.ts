/**
 * Sentences of other pages that quote figures of a whole run: README.md and docs/scale.md. `npm run bench` writes them
 * from the results, and a test compares them: a figure of another day does not stay on the first screen.
 */
import type { Figure } from '../rig/bench.ts'
import { type MeasuredFigures, scaleTable } from './scale-model.ts'

type Quoted = {
  /** From the root. */
  readonly file: string
  /** The line to replace. */
  readonly line: RegExp
  /** @param before the line; cells that were measured by hand stay */
  readonly text: (figures: readonly Figure[], before: string) => string
}

/** @throws Error if it was not measured */
const measured = (figures: readonly Figure[], title: RegExp, what: string, unit: string): number => {
  const row = figures
    .find(figure => title.test(figure.title))
    ?.rows.find(each => each.what === what && each.unit === unit)
  if (row === undefined) throw new Error(`the results have no ${what} (${unit}) in ${title}`)
  return row.value
}

/** Two digits that count: 8,421 becomes 8,400, and 0.1003 becomes 0.10. */
export const twoDigits = (value: number): string =>
  Number(value.toPrecision(2)).toLocaleString('en-US', {
    minimumSignificantDigits: value < 10 ? 2 : 1,
    maximumSignificantDigits: 21,
  })

const REPLAY = /^Replay: an existing topic/
const freshness = (rate: string): RegExp => new RegExp(`^Freshness at ${rate} events/s$`)
const partitionRate = (figures: readonly Figure[]): number =>
  measured(figures, /^Two projectors against one/, 'one projector, one partition', 'payout events/s')
const onePartition = (figures: readonly Figure[]): string => twoDigits(partitionRate(figures))
const ofPage = (figures: readonly Figure[], read: string, what: string): string =>
  twoDigits(measured(figures, new RegExp(`^API: ${read}, compared`), `8 connections: ${what}`, 'ms per request'))
const figuresOf = (figures: readonly Figure[]): MeasuredFigures => {
  const ofReplay = (what: string, unit: string): number => measured(figures, REPLAY, what, unit)
  const page = (what: string, unit: string): number =>
    measured(figures, /^API: page of 200, compared/, `8 connections: ${what}`, unit)
  return {
    replayRate: ofReplay('projector', 'payout events/s'),
    partitionRate: partitionRate(figures),
    projectorTime: ofReplay('CPU of the projector, projecting', 'ms per event'),
    elasticsearchTime: ofReplay('CPU of Elasticsearch, projecting', 'ms per event'),
    replicaShare: replicaShare(figures),
    apiTime: page('CPU of the API', 'ms per request'),
    pageTime: page('CPU of Elasticsearch for the API', 'ms per request'),
    pageP50: page('API, p50', 'ms'),
    pageP99: page('API, p99', 'ms'),
  }
}

/** The share is what three nodes use beyond one without replicas. At 200 live events/s both fill the machine. */
const replicaShare = (figures: readonly Figure[]): number =>
  measured(figures, /^Three brokers/, `${REPLAYED}, three / one`, '') - 1
const REPLAYED = 'replay: CPU of Elasticsearch for each record'
const rates = ['20', '200', '1,000', '2,000']

export const quotedFigures: readonly Quoted[] = [
  {
    file: 'README.md',
    line: /^On two cores for everything: .*$/m,
    text: figures => {
      const replay = twoDigits(measured(figures, REPLAY, 'projector', 'payout events/s'))
      const visible = twoDigits(measured(figures, freshness('200'), 'publish → visible, p50', 'ms'))
      const pages = twoDigits(measured(figures, /^API: pages of 200 while/, 'alone', 'requests/s'))
      return `On two cores for everything: a replay projects ${replay} payouts/s; at 200 events/s, half of them are visible after ${visible} ms; the API answers ${pages} pages of 200 a second`
    },
  },
  cellOf('r', figures => twoDigits(measured(figures, REPLAY, 'projector', 'payout events/s')), 4),
  cellOf(
    'p',
    figures => `${twoDigits(measured(figures, REPLAY, 'CPU of the projector, projecting', 'ms per event'))} ms`,
    4,
  ),
  cellOf(
    'e',
    figures => `${twoDigits(measured(figures, REPLAY, 'CPU of Elasticsearch, projecting', 'ms per event'))} ms`,
    4,
  ),
  cellOf(
    'l',
    figures =>
      rates
        .map(rate => {
          const cores = ['CPU of Elasticsearch', 'CPU of the projector']
          return cores.map(what => measured(figures, freshness(rate), what, 'cores').toFixed(2)).join(', ')
        })
        .join('; '),
    3,
  ),
  cellOf('c', figures => replicaShare(figures).toFixed(1), 4),
  cellOf('o', onePartition, 4),
  cellOf(
    'a',
    figures =>
      `${['page of 200', 'page of 50', 'single read'].map(read => ofPage(figures, read, 'CPU of the API')).join('; ')} ms`,
    3,
  ),
  cellOf('s', figures => `${ofPage(figures, 'page of 200', 'CPU of Elasticsearch for the API')} ms`, 3),
  {
    file: 'docs/scale.md',
    line: /^\| [0-9,]+ events\/s of one organization \|/m,
    text: figures => `| ${onePartition(figures)} events/s of one organization |`,
  },
  {
    file: 'docs/scale.md',
    line: /^\| \| 10 million \|.*\n(?:\|.*\n)+/m,
    text: figures => scaleTable(figuresOf(figures)),
  },
]

/** A cell in the first table of docs/scale.md. */
function cellOf(name: string, text: (figures: readonly Figure[]) => string, column: number): Quoted {
  return {
    file: 'docs/scale.md',
    line: new RegExp(`^\\| \`${name}\` \\|.*$`, 'm'),
    text: (figures, before) =>
      before
        .split(' | ')
        .with(column - 1, text(figures))
        .join(' | '),
  }
}

/** Returns the page with the figures of these results. @throws Error if it has no such line */
export const withFigures = (page: string, quoted: Quoted, figures: readonly Figure[]): string => {
  const [before] = quoted.line.exec(page) ?? []
  if (before === undefined) throw new Error(`${quoted.file} has no line ${quoted.line}`)
  return page.replace(before, () => quoted.text(figures, before))
}
