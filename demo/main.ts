/** `npm run demo`: reads what was asked for, builds the clients, runs the demo, chooses the exit code. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { Client } from '@elastic/elasticsearch'
import kafkajs from 'kafkajs'
import { elasticsearchConfig, kafkaConfig } from '../projector/client-options.ts'
import { elasticsearchSettings, kafkaSettings, readSettings } from '../schemas/settings.ts'
import { untilInterrupted } from '../services/interruption.ts'
import { progressBar } from '../services/progress-bar.ts'
import type { Progress } from '../services/service.ts'
import { expectedOf } from './data/expected.ts'
import { type DemoOptions, Interrupted, runDemo } from './demo.ts'

const help = `npm run demo [-- --once] [-- --seed N]

Starts Kafka and Elasticsearch (or uses KAFKA_BROKERS and ELASTICSEARCH_URL), the projector and the API,
publishes three believable organizations, reads everything back over HTTP and compares. Then it stays up.

  --once     stops after the comparison: exit code 0 when it holds, 1 when it does not
  --seed N   other organizations; the same ones for the same N (1)
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
  if (!/^\d{1,6}$/.test(values.seed)) throw new Error(`--seed: expected a whole number to 999999, got ${values.seed}`)
  return { once: values.once, seed: Number(values.seed), years: 10, pulse: 100 }
}

const bar = progressBar(process.stdout, say)
let drawn: Parameters<Progress>[0] | undefined
const progress: Progress = step => {
  drawn = step
  bar(step)
}
/** A bar that was cut short is wiped out: it would stand before the next line, and keep the terminal from wrapping. */
const wipeBar = (): void => {
  if (process.stdout.isTTY && drawn && drawn.done < drawn.total) progress({ ...drawn, done: drawn.total })
}

/** At once: what was started takes some seconds to stop. */
const sayInterrupted = (reason: string): string => {
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
    interrupted: untilInterrupted(process).then(sayInterrupted),
    kafkaAt: brokers => {
      const settings = readSettings(kafkaSettings, settingsAt('KAFKA_BROKERS', brokers))
      return new kafkajs.Kafka(kafkaConfig(settings, 'commission-demo', readFileSync))
    },
    elasticsearchAt: url => {
      const settings = readSettings(elasticsearchSettings, settingsAt('ELASTICSEARCH_URL', url))
      return new Client(elasticsearchConfig(settings, readFileSync))
    },
    node: [process.execPath, ...process.execArgv],
    run: randomBytes(4).toString('hex'),
    now: () => performance.now(),
    expect: expectedOf,
  })
  return differences.length === 0 ? 0 : 1
}

/** Says what went wrong, and then what went wrong while cleaning up after it. */
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

// Not only an exit code: what was cut short must not go on.
process.exit(await start().catch(codeOf))
