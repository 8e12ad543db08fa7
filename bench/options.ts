/** The command line of the bench. */
import { parseArgs } from 'node:util'
import { type FigureName, figureNames } from './rig/bench.ts'

export const help = `npm run bench -- [options]

Measures projector and API on this machine, beside Elasticsearch alone and plain pipes, in one run.
Kafka and Elasticsearch come from KAFKA_BROKERS and ELASTICSEARCH_URL, else they are started and removed again.
A whole run takes 55 to 75 minutes. It is stored in bench/results.json and shown in docs/performance.md with its pictures.
The servers need some 15 GiB for their data: in memory if there is enough, else on disk, or in TMPDIR if it is set.

  --quick           smaller sizes, under five minutes; stores nothing
  --only FIGURE     ${figureNames.join(', ')}; may be repeated; stores nothing
  --live            only the figures of a projection that follows a stream: --only freshness
  --store           stores what --only or --live measured in place of the stored figures of the same name
  --compare         stores nothing, and fails if a ratio with a bound is more than 15 % worse than the stored one
  --render          measures nothing: makes docs/performance.md and its pictures again from bench/results.json
  --profile FOLDER  one more replay round under Node's CPU profiler: prints where the time goes, and leaves the profile there
  --help            this text
`

export type Options = {
  readonly help: boolean
  readonly quick: boolean
  readonly compare: boolean
  readonly render: boolean
  readonly store: boolean
  readonly figures: readonly FigureName[]
  readonly profile: string | undefined
}

/** @throws Error with a message for the user */
export const readOptions = (args: readonly string[]): Options => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      compare: { type: 'boolean', default: false },
      render: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [] },
      live: { type: 'boolean', default: false },
      store: { type: 'boolean', default: false },
      profile: { type: 'string' },
    },
  })
  const { quick, compare, render, live, store, profile } = values
  const only = [...values.only, ...(live ? ['freshness'] : [])]
  for (const name of only) {
    if (!isFigure(name)) throw new Error(`--only: expected one of ${figureNames.join(', ')}; got ${name}`)
  }
  // Small sizes give other ratios: the JVM is cold, and one-time work counts more.
  if (compare && quick) throw new Error('--compare needs a whole run: expected without --quick')
  if (store && (quick || compare)) {
    throw new Error('--store needs full sizes and no comparison: expected without --quick and --compare')
  }
  if (render && (quick || compare || store || only.length > 0 || profile !== undefined)) {
    throw new Error('--render measures nothing: expected alone')
  }
  const figures = figureNames.filter(name => only.length === 0 || only.includes(name))
  if (profile !== undefined && !figures.includes('replay')) {
    throw new Error('--profile needs a replay round: expected replay among the figures')
  }
  return { help: values.help, quick, compare, render, store: store || only.length === 0, figures, profile }
}

const isFigure = (name: string): name is FigureName => figureNames.some(figure => figure === name)
