/** The command line of the bench. */
import { parseArgs } from 'node:util'
import { type FigureName, figureNames } from './bench.ts'

export const help = `npm run bench -- [options]

Measures this machine: what the projector and the API do, beside what Elasticsearch alone does, in one run.
Kafka and Elasticsearch come from KAFKA_BROKERS and ELASTICSEARCH_URL, else they are started and removed again.
A whole run is kept in bench/results.md.

  --quick           smaller sizes, some three minutes; nothing is kept
  --only FIGURE     ${figureNames.join(', ')}; may be repeated; nothing is kept
  --profile FOLDER  one more replay round under Node's CPU profiler: prints where the time goes, leaves the profile there
  --help            this text
`

export type Options = {
  readonly help: boolean
  readonly quick: boolean
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
      only: { type: 'string', multiple: true, default: [] },
      profile: { type: 'string' },
    },
  })
  for (const name of values.only) {
    if (!isFigure(name)) throw new Error(`--only: expected one of ${figureNames.join(', ')}; got ${name}`)
  }
  const figures = figureNames.filter(name => values.only.length === 0 || values.only.includes(name))
  return { help: values.help, quick: values.quick, figures, profile: values.profile }
}

const isFigure = (name: string): name is FigureName => figureNames.some(figure => figure === name)
