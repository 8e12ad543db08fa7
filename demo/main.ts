/** `npm run demo`: reads the options, builds the clients, runs the demo, sets the exit code. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { Client } from '@elastic/elasticsearch'
import kafkajs from 'kafkajs'
import { kafkaConfig } from '../core/log/index.ts'
import { elasticsearchSettings, kafkaSettings, readSettings } from '../core/runtime/index.ts'
import { elasticsearchConfig } from '../core/store/index.ts'
import { waitForInterruption } from '../services/interruption.ts'
import { progressBar } from '../services/progress-bar.ts'
import type { ReportProgress } from '../services/service.ts'
import { expectedOf } from './data/expected.ts'
import { type DemoOptions, Interrupted, runDemo } from './demo.ts'

const help = `npm run demo [-- --once] [-- --seed N]

Starts Kafka and Elasticsearch (or uses KAFKA_BROKERS and ELASTICSEARCH_URL), the projector and the API,
publishes three believable organizations, reads everything back over HTTP and compares. Then it keeps running.

  --once     stops after the comparison: exit code 0 if everything is equal, else 1
  --seed N   makes other organizations; the same N makes the same ones (default 1)
  --help     this text`

const say = (line: string): void => console.log(line)

const readOptions = (): DemoOptions | undefined => {
  const { values } = parseArgs({
    options: {
      once: { type: 'boolean', default: false },
      seed: { type: 'string', default: '1' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return undefined
  if (!/^\d{1,6}$/.test(values.seed))
    throw new Error(`--seed: expected a whole number from 0 to 999999, got ${values.seed}`)
  return { once: values.once, seed: Number(values.seed), years: 10, probes: 100 }
}

const bar = progressBar(process.stdout, say)
let drawn: Parameters<ReportProgress>[0] | undefined
const progress: ReportProgress = step => {
  drawn = step
  bar(step)
}
/** Clears an interrupted bar, which would stay before the next line and keep line wrapping off. */
const wipeBar = (): void => {
  if (process.stdout.isTTY && drawn && drawn.done < drawn.total) progress({ ...drawn, done: drawn.total })
}

/** Reports the interruption at once: stopping takes some seconds. */
const reportInterruption = (reason: string): string => {
  wipeBar()
  say(`${reason}: stopping all that was started`)
  return reason
}

const run = async (options: DemoOptions): Promise<number> => {
  const settingsAt = (name: string, value: string) => ({ ...process.env, [name]: value })
  const differences = await runDemo(options, {
    environment: process.env,
    say,
    progress,
    interrupted: waitForInterruption(process).then(reportInterruption),
    kafkaAt: brokers => {
      const settings = readSettings(kafkaSettings, settingsAt('KAFKA_BROKERS', brokers), readFileSync)
      return new kafkajs.Kafka(kafkaConfig(settings, 'commission-demo', readFileSync, Date.now))
    },
    elasticsearchAt: url => {
      const settings = readSettings(elasticsearchSettings, settingsAt('ELASTICSEARCH_URL', url), readFileSync)
      return new Client(elasticsearchConfig(settings, readFileSync))
    },
    node: [process.execPath, ...process.execArgv],
    run: randomBytes(4).toString('hex'),
    elapsed: () => performance.now(),
    expect: expectedOf,
  })
  return differences.length === 0 ? 0 : 1
}

/** Reports the first error, then errors of the cleanup. */
const codeOf = (error: unknown): number => {
  if (error instanceof SuppressedError) {
    const code = codeOf(error.suppressed)
    say(`while cleaning up: ${messageOf(error.error)}`)
    return code
  }
  if (error instanceof Interrupted) return 130
  wipeBar()
  say(messageOf(error))
  return 1
}
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const start = async (): Promise<number> => {
  const options = readOptions()
  if (options !== undefined) return run(options)
  say(help)
  return 0
}

// Ends the process too: interrupted work must not continue.
process.exit(await start().catch(codeOf))
