/** `npm run bench`: starts the services, measures the figures in order, prints, and stores or compares the results. */
import { progressBar } from '../services/progress-bar.ts'
import { startServices } from '../services/services.ts'
import { measureApi } from './figures/api.ts'
import { measureArchive } from './figures/archive.ts'
import { measureConnectionLoad } from './figures/connection-load.ts'
import { measureCorrections } from './figures/corrections.ts'
import { measureFreshness } from './figures/freshness.ts'
import { measureGrowth } from './figures/growth.ts'
import { measureNodes } from './figures/nodes/nodes.ts'
import { measurePartitions } from './figures/partitions.ts'
import { measureReplay } from './figures/replay.ts'
import { measureShards } from './figures/shards.ts'
import { measureTotals } from './figures/totals.ts'
import { help, type Options, readOptions } from './options.ts'
import { compareRatios, WORSE_PERCENT } from './report/compare.ts'
import { reportCompared, reportFigure, reportMachine } from './report/report.ts'
import {
  keepResults,
  type Results,
  readResults,
  renderResults,
  replaceFigures,
  requireMeasured,
} from './report/results.ts'
import { type Bench, type Figure, type FigureName, figureNames, type Measure } from './rig/bench.ts'
import { createBenchElasticsearch } from './rig/elasticsearch.ts'
import { describeMachine } from './rig/machine.ts'
import { quickRun, wholeRun } from './rig/sizes.ts'

const measureOf = (name: FigureName): Measure => {
  switch (name) {
    case 'replay':
      return measureReplay
    case 'partitions':
      return measurePartitions
    case 'growth':
      return measureGrowth
    case 'shards':
      return measureShards
    case 'nodes':
      return measureNodes
    case 'totals':
      return measureTotals
    case 'freshness':
      return measureFreshness
    case 'corrections':
      return measureCorrections
    case 'archive':
      return measureArchive
    case 'api':
      return measureApi
    case 'crowd':
      return measureConnectionLoad
    default:
      return name satisfies never
  }
}

const modeOf = (quick: boolean, figures: readonly FigureName[]): string => {
  if (quick) return 'quick run'
  return figures.length === figureNames.length ? 'whole run' : `run of ${figures.join(', ')}`
}

const say = (line: string): void => console.log(line)

const run = async ({ quick, figures, profile }: Options, interrupted: AbortController): Promise<Results> => {
  const { signal } = interrupted
  await using services = await startServices({
    say,
    progress: progressBar(process.stdout, say),
    environment: process.env,
  })
  signal.throwIfAborted()
  for (const service of [services.kafka, services.elasticsearch]) {
    void service?.died.then(error => interrupted.abort(error))
  }
  const elasticsearch = createBenchElasticsearch(services.elasticsearchUrl)
  const machine = await describeMachine(services, elasticsearch, modeOf(quick, figures))
  say(`\n${reportMachine(machine)}\n`)

  const bench: Bench = { services, elasticsearch, sizes: quick ? quickRun : wholeRun, say, signal, profile }
  const measured: Figure[] = []
  for (const name of figures) {
    const began = performance.now()
    for (const figure of [await measureOf(name)(bench)].flat()) {
      say(`\n${reportFigure(figure)}\n`)
      requireMeasured(figure)
      measured.push(figure)
    }
    say(`${name} took ${((performance.now() - began) / 1000).toFixed(0)} s\n`)
  }
  return { machine, figures: measured }
}

/** @throws Error if a ratio is worse than WORSE_PERCENT allows */
const compare = (kept: Results, { machine, figures }: Results): void => {
  const [before, now] = [kept.machine.machine, machine.machine]
  if (before !== now) say(`the stored results are of another machine, whose ratios may differ: ${before}`)
  const compared = compareRatios(kept.figures, figures)
  if (compared.length === 0) throw new Error('nothing was compared: these figures have no stored ratio with a bound')
  say(reportCompared(compared))
  const worse = compared.filter(({ isTooMuch }) => isTooMuch).map(({ key }) => key)
  if (worse.length > 0)
    throw new Error(`more than ${WORSE_PERCENT} % worse than the stored results: ${worse.join('; ')}`)
  say(`\nno ratio is more than ${WORSE_PERCENT} % worse than the stored one`)
}

const main = async (): Promise<void> => {
  const options = readOptions(process.argv.slice(2))
  if (options.help) return say(help)
  if (options.render) return renderResults(await readResults())
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (!interrupted.signal.aborted) say('\nstopping what was started')
      interrupted.abort(new Error(`stopped by ${signal}`))
    })
  }
  // Read first: a run without results to compare with must not start.
  const kept = options.compare ? await readResults() : undefined
  const results = await run(options, interrupted)
  if (kept !== undefined) return compare(kept, results)
  if (options.quick || !options.store) return
  const isWhole = options.figures.length === figureNames.length
  const stored = isWhole ? results : replaceFigures(await readResults(), results)
  await keepResults(stored)
  await renderResults(stored)
  say('stored in bench/results.json and shown in docs/performance.md')
}

try {
  await main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
