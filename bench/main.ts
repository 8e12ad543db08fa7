/** `npm run bench`: starts what is needed, measures one figure after the other, prints and keeps the result. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { progressBar } from '../services/progress-bar.ts'
import { startServices } from '../services/services.ts'
import { measureApi } from './api.ts'
import { type Bench, type Figure, type FigureName, figureNames, type Measure } from './bench.ts'
import { measureCrowd } from './crowd.ts'
import { createElasticsearch } from './elasticsearch.ts'
import { measureFreshness } from './freshness.ts'
import { describeMachine } from './machine.ts'
import { help, type Options, readOptions } from './options.ts'
import { measureReplay } from './replay.ts'
import { reportAll, reportFigure, reportMachine } from './report.ts'
import { quickRun, wholeRun } from './sizes.ts'

const measures: Record<FigureName, Measure> = {
  replay: measureReplay,
  freshness: measureFreshness,
  api: measureApi,
  crowd: measureCrowd,
}
const resultsFile = join(import.meta.dirname, 'results.md')

const say = (line: string): void => console.log(line)

const run = async ({ quick, figures, profile }: Options, interrupted: AbortController): Promise<void> => {
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
  const elasticsearch = createElasticsearch(services.elasticsearchUrl)
  const machine = await describeMachine(services, elasticsearch, quick ? 'quick run' : 'whole run')
  say(`\n${reportMachine(machine)}\n`)

  const bench: Bench = { services, elasticsearch, sizes: quick ? quickRun : wholeRun, say, signal, profile }
  const measured: Figure[] = []
  for (const name of figures) {
    const figure = await measures[name](bench)
    say(`\n${reportFigure(figure)}\n`)
    measured.push(figure)
  }
  if (quick || figures.length < figureNames.length) return
  await writeFile(resultsFile, reportAll(machine, measured))
  say('kept in bench/results.md')
}

const main = async (): Promise<void> => {
  const options = readOptions(process.argv.slice(2))
  if (options.help) return say(help)
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (!interrupted.signal.aborted) say('\nstopping what was started')
      interrupted.abort(new Error(`stopped by ${signal}`))
    })
  }
  await run(options, interrupted)
}

try {
  await main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
