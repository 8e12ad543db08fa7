/** Runs commands like an operator: `tools/main.ts` on this Node, with settings in the environment. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '@elastic/elasticsearch'
import { expect, inject } from 'vitest'
import { openCluster } from '../../core/log/records/open-cluster.ts'
import { createElasticsearch } from '../../core/store/elasticsearch/client.ts'
import type { CommandContext } from '../../tools/context.ts'
import type { Contexts } from '../../tools/contexts.ts'
import { isAbort } from '../../tools/failures.ts'
import { readLive } from '../../tools/live.ts'
import { positionOf, readParked } from '../../tools/parked/find.ts'
import { publishAgain, type Result } from '../../tools/parked/publish-again.ts'
import { runProgram } from '../../tools/program.ts'
import { compileCache } from './compile-cache.ts'
import type { Outgoing } from './events.ts'
import type { Published, Topics } from './topics.ts'

const project = join(import.meta.dirname, '..', '..')

export type Ran = {
  readonly code: number | null
  readonly out: Buffer
  /** Messages for the operator: stderr. */
  readonly said: string
}

export const runCommand = async (
  args: readonly string[],
  settings: Readonly<Record<string, string | undefined>>,
): Promise<Ran> => {
  const child = spawn(process.execPath, ['--disable-warning=TimeoutNegativeWarning', 'tools/main.ts', ...args], {
    cwd: project,
    env: { ...compileCache, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const out: Buffer[] = []
  let said = ''
  child.stdout.on('data', (bytes: Buffer) => out.push(bytes))
  child.stderr.setEncoding('utf8').on('data', text => (said += text))
  const [code] = await once(child, 'close')
  return { code, out: Buffer.concat(out), said }
}

/** Runs a read-only command in this process: a Node process for each of many commands would be slow. */
export const readHere = async (args: readonly string[], prefix: string): Promise<Ran> => {
  const out: Buffer[] = []
  let said = ''
  const client = new Client({ node: inject('elasticsearchUrl').split(',') })
  const context: CommandContext = {
    out: bytes => void out.push(Buffer.from(bytes)),
    say: line => (said += `${line}\n`),
    send: createElasticsearch(client).send,
    prefix,
    sleep: milliseconds => sleep(milliseconds),
    now: Date.now,
    elapsed: () => performance.now(),
  }
  const contexts = { readContext: () => context } as Partial<Contexts> as Contexts
  const code = await runProgram(args, (_name, _options, run) => run(contexts), {
    out: context.out,
    error: context.say,
  })
  await client.close()
  return { code, out: Buffer.concat(out), said }
}

export const commandSettings = (topics: Topics, prefix: string): Record<string, string> => ({
  KAFKA_BROKERS: topics.brokers,
  KAFKA_EVENTS_TOPIC: topics.events,
  KAFKA_API_KEYS_TOPIC: topics.apiKeys,
  ELASTICSEARCH_URL: inject('elasticsearchUrl'),
  ELASTICSEARCH_INDEX_PREFIX: prefix,
})

/** Parses the output of a command as lines of JSON. */
export const jsonLines = ({ out }: Ran): Record<string, unknown>[] =>
  out
    .toString('utf8')
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line))

/** Checks the lines of `projection verify --json`: each of these organizations was compared, and all are equal. */
export const expectFoundEqual = (lines: readonly Record<string, unknown>[], organizations: readonly string[]): void => {
  expect(lines.map(({ organization }) => organization)).toEqual(expect.arrayContaining([...organizations]))
  for (const line of lines) expect(line).toMatchObject({ equal: true })
}

/**
 * Publishes records again, and others just before them, after the forecast of the first.
 * @param until the number of sent records after which it is interrupted
 */
export const publishAgainAfter = async (
  { topics, prefix }: { readonly topics: Topics; readonly prefix: string },
  others: readonly Outgoing[],
  records: readonly Published[],
  until?: number,
): Promise<Result[]> => {
  const { send } = createElasticsearch(new Client({ node: inject('elasticsearchUrl').split(',') }))
  const live = await readLive(send, prefix)
  const found = await readParked(
    send,
    live,
    records.map(record => ({ ...record, topic: topics.name(record.stream) })),
  )
  const producer = topics.kafka.producer()
  const interrupted = new AbortController()
  const config = { brokers: inject('kafkaBrokers').split(',') }
  let sent = 0
  const results: Result[] = []
  const publishing = publishAgain(
    {
      async *pagesOf({ identity }) {
        yield found.flatMap(record => (record?.fields.topic === identity.topic ? [record.fields] : []))
      },
      has: fields => found.some(record => record !== undefined && positionOf(record.fields) === positionOf(fields)),
    },
    { publish: true, force: false, waitSeconds: 60 },
    {
      send,
      prefix,
      live,
      say: () => undefined,
      admin: topics.admin,
      openCluster: topic => openCluster({ config, logger: topics.kafka.logger() }, topic, interrupted.signal),
      topics: { events: topics.events, 'api-keys': topics.apiKeys },
      producer: async () => {
        await topics.publish(others)
        await producer.connect()
        return {
          send: async record => {
            const answer = await producer.send(record)
            if (++sent === until) interrupted.abort()
            return answer
          },
        }
      },
      sleep: milliseconds => sleep(milliseconds),
      elapsed: () => performance.now(),
      signal: interrupted.signal,
      room: () => Number.POSITIVE_INFINITY,
      onResults: chunk => results.push(...chunk),
    },
  )
  await publishing.catch((error: unknown) => {
    if (!isAbort(error, interrupted.signal)) throw error
  })
  await producer.disconnect()
  return results
}
