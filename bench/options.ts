/** The command line of the bench. */
import { parseArgs } from 'node:util'
import { type FigureName, figureNames } from './rig/bench.ts'

export const help = `npm run bench -- [options]

Measures this machine: what the projector and the API do, beside what Elasticsearch alone and plain pipes do, in one run.
Kafka and Elasticsearch come from KAFKA_BROKERS and ELASTICSEARCH_URL, else they are started and removed again.
A whole run, some 40 minutes, is kept in bench/results.json, and docs/performance.md with its pictures is made of it.
It needs some 15 GiB where the servers keep their data: in memory where there is enough, else, or where TMPDIR says, on disk.

  --quick           smaller sizes, under three minutes; nothing is kept
  --only FIGURE     ${figureNames.join(', ')}; may be repeated; nothing is kept
  --compare         keeps nothing, and fails when a ratio with a bound is more than 15 % worse than the one kept
  --render          measures nothing: makes docs/performance.md and its pictures of bench/results.json again
  --profile FOLDER  one more replay round under Node's CPU profiler: prints where the time goes, leaves the profile there
  --help            this text
`

export type Options = {
  readonly help: boolean
  readonly quick: boolean
  readonly compare: boolean
  readonly render: boolean
  readonly figures: readonly FigureName[]
  readonly profile: string | undefined
}

/** @throws Error that says what is wrong, fit to be shown */
export const readOptions = (args: readonly string[]): Options => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      compare: { type: 'boolean', default: false },
      render: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [] },
      profile: { type: 'string' },
    },
  })
  const { quick, compare, render, only, profile } = values
  for (const name of only) {
    if (!isFigure(name)) throw new Error(`--only: expected one of ${figureNames.join(', ')}; got ${name}`)
  }
  // Ratios of small sizes are others: the JVM is cold, and what is done once weighs more.
  if (compare && quick) throw new Error('--compare is with a whole run: expected without --quick')
  if (render && (quick || compare || only.length > 0 || profile !== undefined)) {
    throw new Error('--render measures nothing: expected alone')
  }
  const figures = figureNames.filter(name => only.length === 0 || only.includes(name))
  if (profile !== undefined && !figures.includes('replay')) {
    throw new Error('--profile is of a replay round: expected replay among the figures')
  }
  return { help: values.help, quick, compare, render, figures, profile }
}

const isFigure = (name: string): name is FigureName => figureNames.some(figure => figure === name)
