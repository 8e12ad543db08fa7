/** The demo as a newcomer runs it, on the shared services, and its detection of wrong answers. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { Client } from '@elastic/elasticsearch'
import kafkajs from 'kafkajs'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { createClient } from '../../client/src/index.ts'
import { expectedOf } from '../../demo/data/expected.ts'
import { type DemoParts, runDemo } from '../../demo/demo.ts'
import { removeIndices, removeTopics } from '../../demo/run/cleanup.ts'
import { install, namesFor } from '../../demo/run/installation.ts'
import { readCounts, waitUntilCaughtUp } from '../../demo/run/projector-admin.ts'
import { isAlive } from '../../services/run-program.ts'
import { curlInTime } from '../support/in-time.ts'

const services = { KAFKA_BROKERS: inject('kafkaBrokers'), ELASTICSEARCH_URL: inject('elasticsearchUrl') }
const root = join(import.meta.dirname, '..', '..')
const minutes = 60_000

test('npm run demo -- --once ends with 0, and leaves no process, file, topic or index behind', async () => {
  const demo = await startDemo('--once')
  await demo.line('API runs')
  const processes = await processesOf(demo.pid)
  expect(processes.length).toBeGreaterThanOrEqual(2)
  expect(await demo.ended, demo.output.join('\n')).toBe(0)

  expect(demo.output).toContain('Everything the API returned is what was published.')
  expect(demo.output.join('\n')).toMatch(/parked +16$/m)
  expect(await readdir(demo.folder)).toEqual([])
  const topic = demo.output.find(line => line.includes('.events created'))?.split(' ')[0] ?? ''
  expect(topic).toMatch(/^demo-[0-9a-f]{8}\.events$/)
  expect(await topics()).not.toContain(topic)
  expect(await indices(`${topic.split('.')[0]}-*`)).toEqual([])
  expect(processes.filter(({ pid }) => isAlive(pid))).toEqual([])
})

test('Ctrl-C in the middle ends the demo with 130, and leaves nothing behind', async () => {
  const demo = await startDemo()
  await demo.line('publishing: ')
  expect(await readdir(demo.folder)).toHaveLength(1)

  demo.kill('SIGINT')
  expect(await demo.ended, demo.output.join('\n')).toBe(130)
  expect(await readdir(demo.folder)).toEqual([])
})

test('a killed demo takes its projector, its API and its files with it', async () => {
  const demo = await startDemo()
  await demo.line('API runs')
  const processes = await processesOf(demo.pid)
  demo.kill('SIGKILL')
  await vi.waitFor(
    async () => {
      expect(processes.filter(({ pid }) => isAlive(pid))).toEqual([])
      expect(await readdir(demo.folder)).toEqual([])
    },
    { timeout: 2 * minutes, interval: 100 },
  )
})

test('the death of its projector ends the demo with 1 and shows the end of the log; nothing is left behind', async () => {
  const demo = await startDemo()
  await demo.line('API runs')
  const projector = (await processesOf(demo.pid)).find(({ command }) => command.includes('projector/main.ts'))
  process.kill(projector?.pid ?? Number.NaN, 'SIGKILL')
  expect(await demo.ended).toBe(1)
  expect(demo.output.join('\n')).toMatch(/^The projector ended with SIGKILL\. The end of its log:\n\{/m)
  expect(await readdir(demo.folder)).toEqual([])
})

test('an answer of the API that differs from the expected one is named', async () => {
  const said: string[] = []
  const differences = await runDemo(
    { seed: 3, once: true, years: 1, probes: 2 },
    {
      ...partsOf(said),
      expect: (org_id, sent) => {
        const { payouts, ...expected } = expectedOf(org_id, sent)
        const [first, ...rest] = payouts
        return { ...expected, payouts: first ? [{ ...first, net_amount: '0.01' }, ...rest] : [] }
      },
    },
  )
  expect(differences.map(({ what }) => what)).toEqual(
    expect.arrayContaining([expect.stringMatching(/^Nordlicht Instruments, \/payouts, payout_\w+: net_amount$/)]),
  )
  expect(said.join('\n')).toContain('DIFFERENCES between what was published and what the API returned')
})

test('the API returns what docs/publishing.md publishes; published again, all records are duplicates', async () => {
  const { signal } = new AbortController()
  const { environment, node, elasticsearchAt } = partsOf([])
  const names = namesFor(crypto.randomUUID().slice(0, 8))
  const client = elasticsearchAt(services.ELASTICSEARCH_URL)
  await using stack = new AsyncDisposableStack()
  stack.defer(() => client.close())
  stack.defer(() => removeIndices(names, client))
  stack.defer(() => removeTopics(names, kafka))
  const { base, projectorAdmin } = await install(stack, {
    names,
    partitions: 3,
    environment,
    node,
    say: () => {},
    signal,
  })

  const env = {
    ...environment,
    KAFKA_EVENTS_TOPIC: names.topics.events,
    KAFKA_API_KEYS_TOPIC: names.topics['api-keys'],
    API: base,
    ADMIN: projectorAdmin,
  }
  let printed = ''
  for (let time = 1; time <= 2; time++) {
    const { stdout } = await promisify(execFile)(process.execPath, [join(root, 'demo', 'run', 'publish-one.ts')], {
      env,
    })
    expect(stdout).toMatch(/^published 5 records\. The last one is at [^,]+, partition \d+, offset \d+\.$/m)
    printed = stdout
  }
  await waitUntilCaughtUp(projectorAdmin, 10, () => {}, signal)

  expect(await readCounts(projectorAdmin, signal)).toEqual({ applied: 5, duplicate: 5, parked: 0 })
  // The printed requests work as they are. One whose time is up is sent again.
  const [receipt, payouts] = [...printed.matchAll(/^ {2}(curl .*)$/gm)].map(([, command = '']) => command)
  const answerTo = async (command = '') =>
    JSON.parse((await promisify(execFile)('sh', ['-c', curlInTime(command)])).stdout)
  expect(await answerTo(receipt)).toMatchObject({ state: 'published', topic: names.topics.events, offset: 7 })
  expect((await answerTo(payouts)).data).toEqual([expect.objectContaining({ id: 'payout_Second' })])
  const api = createClient({ baseUrl: base, key: 'example_key_for_reading_only', signal })
  expect((await Array.fromAsync(api.payouts())).map(({ id }) => id)).toEqual(['payout_Second'])
  expect(await api.payout('payout_First')).toMatchObject({ net_amount: '618.75', superseded_by_id: 'payout_Second' })
})

test('an unknown option or a wrong setting is reported in one message', async () => {
  const unknown = await startDemo('--twice')
  expect(await unknown.ended).toBe(1)
  expect(unknown.output.join('\n')).toContain('--twice')
  const wrong = await startDemo('--seed', 'x')
  expect(await wrong.ended).toBe(1)
  expect(wrong.output).toEqual(['--seed: expected a whole number from 0 to 999999, got x'])
})

/** Starts the demo like `npm run demo`, with its own temporary folder. */
const startDemo = async (...args: string[]) => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-test-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const node = ['--disable-warning=TimeoutNegativeWarning', join(root, 'demo', 'main.ts'), ...args]
  const env = { ...process.env, ...services, TMPDIR: folder, npm_lifecycle_event: undefined }
  const child = spawn(process.execPath, node, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const output: string[] = []
  for (const stream of [child.stdout, child.stderr]) createInterface(stream).on('line', line => output.push(line))
  const ended = once(child, 'close').then(([code]): number | null => code)
  const says = (text: string) => expect(output.join('\n')).toContain(text)
  const line = (text: string) =>
    Promise.race([vi.waitFor(() => says(text), { timeout: 2 * minutes, interval: 20 }), ended.then(() => says(text))])
  return { pid: child.pid, folder, output, ended, line, kill: (signal: NodeJS.Signals) => child.kill(signal) }
}

/** The running child processes of a process. */
const processesOf = async (parent: number | undefined): Promise<{ pid: number; command: string }[]> => {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-ww', '-o', 'pid=,ppid=,args='])
  const lines = stdout.split('\n').map(line => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
  return lines.flatMap(line =>
    line?.[3] !== undefined && Number(line[2]) === parent ? [{ pid: Number(line[1]), command: line[3] }] : [],
  )
}

const kafka = new kafkajs.Kafka({ brokers: services.KAFKA_BROKERS.split(','), logLevel: kafkajs.logLevel.NOTHING })
const partsOf = (said: string[]): DemoParts => ({
  environment: { ...process.env, ...services },
  say: line => said.push(line),
  progress: () => {},
  interrupted: new Promise(() => {}),
  kafkaAt: () => kafka,
  elasticsearchAt: node => new Client({ node }),
  node: [process.execPath],
  run: crypto.randomUUID().slice(0, 8),
  elapsed: () => performance.now(),
  expect: expectedOf,
})

const topics = async (): Promise<string[]> => {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await admin.listTopics()
  } finally {
    await admin.disconnect()
  }
}

const indices = async (index: string): Promise<string[]> => {
  const client = new Client({ node: services.ELASTICSEARCH_URL })
  try {
    return Object.keys(await client.indices.get({ index }))
  } finally {
    await client.close()
  }
}
