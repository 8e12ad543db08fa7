/** How started servers live, fail and end. Each test starts its own pair, with small heaps. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Client } from '@elastic/elasticsearch'
import kafkajs from 'kafkajs'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { findJdk } from '../../services/jvm.ts'
import { type Service, shortLived } from '../../services/service.ts'
import { type Services, startServices } from '../../services/services.ts'

// A pair starts in 5 s on idle cores, and in ten times that on busy cores.
const retryOptions = 240_000

const project = join(import.meta.dirname, '..', '..')
const servicesModule = pathToFileURL(join(project, 'services', 'services.ts')).href
const small = { kafka: { ...shortLived, heap: '256m' }, elasticsearch: { ...shortLived, heap: '384m' } }
const ownPair = { KAFKA_BROKERS: undefined, ELASTICSEARCH_URL: undefined }
const withJava = test.skipIf((await findJdk(process.env)).jdk === undefined)

withJava('a killed starter leaves no process and no file behind', async () => {
  const folder = await temporaryFolder()
  const starter = startStarter(folder, '')
  await starter.line('started')
  expect(await processesIn(folder)).toHaveLength(2)

  starter.kill('SIGKILL')
  await untilNothingIsLeft(folder)
})

withJava('a starter that fails leaves nothing behind, not even servers that it has frozen or killed', async () => {
  const folder = await temporaryFolder()
  const starter = startStarter(
    folder,
    'await services.kafka.kill(); await services.elasticsearch.freeze(); throw new Error("on purpose")',
  )
  expect(await starter.ended).toBe(1)
  await starter.line('on purpose')
  await untilNothingIsLeft(folder)
})

withJava('npm run services prints the settings to use, and stops on Ctrl-C with nothing left', async () => {
  const folder = await temporaryFolder()
  const run = startChild('npm', ['run', 'services'], folder)
  const settings = await run.line('export ')
  const [, brokers, url] = /^export KAFKA_BROKERS=(\S+:\d+) ELASTICSEARCH_URL=(http:\S+)$/.exec(settings) ?? []
  expect(brokers).toBeDefined()
  expect((await fetch(`${url}/_cluster/health`)).status).toBe(200)

  run.kill('SIGINT')
  expect(await run.ended).toBe(0)
  expect(await processesIn(folder)).toEqual([])
  expect(await serverFoldersIn(folder)).toEqual([])
})

withJava(
  'npm run services -- --only starts one server, of a new cluster; if it is killed, it says that the data is deleted',
  async () => {
    const folder = await temporaryFolder()
    const only = ['run', 'services', '--', '--only', 'kafka']
    const runs = [startChild('npm', only, folder), startChild('npm', only, folder)]
    const ids = await Promise.all(
      runs.map(async run => {
        const [, address = ''] = /^export KAFKA_BROKERS=(\S+:\d+)$/.exec(await run.line('export ')) ?? []
        return withAdmin({ address }, async admin => (await admin.describeCluster()).clusterId)
      }),
    )
    expect(ids[0]).toMatch(/^[\w-]{22}$/)
    expect(ids[1]).not.toBe(ids[0])
    expect(await processesIn(folder)).toHaveLength(2)

    const [run] = runs
    const [, pid, data = ''] = /^kafka: process (\d+), data in (\S+)$/.exec((await run?.line('data in ')) ?? '') ?? []
    expect(await readdir(data)).toContain('meta.properties')
    process.kill(Number(pid), 'SIGKILL')
    await run?.line('its data is deleted')
    expect(await run?.ended).toBe(1)
    await expect(readdir(data)).rejects.toThrow('ENOENT')
  },
)

test('without servers, Docker and a JDK one message lists everything that was tried, and the exit code is not 0', async () => {
  const nowhere = { PATH: '', ES_JAVA_HOME: '/nowhere', DOCKER_HOST: 'unix:///nowhere.sock' }
  const main = join(project, 'services', 'main.ts')
  const failed = promisify(execFile)(process.execPath, [main], { env: nowhere })

  await expect(failed).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /KAFKA_BROKERS and ELASTICSEARCH_URL.*Docker:.*nowhere\.sock.*JDK.*ES_JAVA_HOME=\/nowhere/s,
    ),
  })
})

withJava('a killed starter of three secured brokers leaves no process, no key and no password behind', async () => {
  const folder = await temporaryFolder()
  const starter = startStarter(folder, '', { ...small, cluster: { brokers: 3, secure: { users: [] } } })
  await starter.line('started')
  // Three brokers, Elasticsearch, and the shell that deletes the keys.
  expect(await processesIn(folder)).toHaveLength(5)
  expect(await serverFoldersIn(folder)).toHaveLength(5)

  starter.kill('SIGKILL')
  await untilNothingIsLeft(folder)
})

withJava('npm run services starts three plain brokers, and a topic has three replicas', async () => {
  const folder = await temporaryFolder()
  const run = startChild('npm', ['run', 'services', '--', '--brokers', '3'], folder)
  const settings = await run.line('export ')
  const [, address = ''] =
    /^export KAFKA_BROKERS=((?:\S+:\d+,){2}\S+:\d+) ELASTICSEARCH_URL=http:\S+$/.exec(settings) ?? []
  // One attempt of kafkajs ends after some 10 s. On a full machine, leaders on three new brokers can take longer.
  await vi.waitFor(
    () =>
      withAdmin({ address }, async admin => {
        await admin.createTopics({ topics: [{ topic: 'kept', replicationFactor: -1 }], waitForLeaders: true })
        const { topics } = await admin.fetchTopicMetadata({ topics: ['kept'] })
        expect(topics[0]?.partitions[0]?.replicas).toHaveLength(3)
      }),
    { timeout: retryOptions, interval: 500 },
  )

  run.kill('SIGINT')
  expect(await run.ended).toBe(0)
  expect(await serverFoldersIn(folder)).toEqual([])
})

describe('a separate pair', () => {
  let services: Services
  beforeAll(async () => {
    services = await startServices({ say: () => {}, environment: { ...process.env, ...ownPair }, ...small })
    return services.stop
  })

  test('a server keeps its address and its data when it is killed, frozen or stopped', async () => {
    const [kafka, elasticsearch] = started(services)
    const client = new Client({ node: services.elasticsearchUrl, maxRetries: 0 })
    const isThere = (within = 60_000) => client.exists({ index: 'kept', id: '1' }, { requestTimeout: within })
    await createTopic(kafka, 'kept')
    await client.index({ index: 'kept', id: '1', document: {} })

    await Promise.all([kafka.kill(), elasticsearch.kill()])
    await expect(isThere()).rejects.toThrow()
    await Promise.all([kafka.restart(), elasticsearch.restart()])
    expect(await isThere()).toBe(true)
    expect(await topics(kafka)).toContain('kept')

    await elasticsearch.freeze()
    await expect(isThere(1_000)).rejects.toThrow('timed out')
    await elasticsearch.thaw()
    expect(await isThere()).toBe(true)

    await Promise.all([kafka.restart(), elasticsearch.restart()])
    expect(await isThere()).toBe(true)
    expect(await topics(kafka)).toContain('kept')
  })

  test('a server that dies is reported with the end of its log', async ({ skip }) => {
    const [kafka] = started(services)
    skip(kafka.pid === undefined, 'Docker has the process')
    process.kill(Number(kafka.pid), 'SIGKILL')
    expect((await kafka.died).message).toMatch(/^kafka ended with SIGKILL.*Kafka Server started/s)
    expect(kafka.pid).toBeUndefined()
  })
})

withJava('a server that cannot start is reported with the end of its log, and the other one is stopped', async () => {
  const folder = await temporaryFolder()
  const starter = startStarter(folder, '', { elasticsearch: { settings: { 'no.such.setting': '1' } } })
  await starter.line('elasticsearch ended with')
  await starter.line('unknown setting [no.such.setting]')
  expect(await starter.ended).toBe(1)
  await untilNothingIsLeft(folder)
})

const started = ({ kafka, elasticsearch }: Services): [Service, Service] => {
  if (kafka === undefined || elasticsearch === undefined) throw new Error('both are started here')
  return [kafka, elasticsearch]
}

const temporaryFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-test-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A process that starts both servers with their folders in `folder`, runs `then`, and prints `started`. */
const startStarter = (folder: string, then: string, options: object = small) => {
  const script = `
    import { startServices } from ${JSON.stringify(servicesModule)}
    const options = ${JSON.stringify(options)}
    const services = await startServices({ say: () => {}, environment: process.env, ...options })
    setInterval(() => {}, 60_000)
    ${then}
    console.log('started')`
  return startChild(process.execPath, ['--input-type=module', '--eval', script], folder)
}

/** A child in its own process group, as in a shell. Signals go to the whole group, like Ctrl-C. */
const startChild = (program: string, args: readonly string[], folder: string) => {
  const env = { ...process.env, ...ownPair, COMMISSION_SERVICES: 'jvm', TMPDIR: folder }
  const child = spawn(program, args, { cwd: project, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'close').then(([code]): number | null => code)
  const output: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on('line', line => output.push(line))
  }
  const kill = (signal: NodeJS.Signals): void => {
    if (child.pid !== undefined) process.kill(-child.pid, signal)
  }
  onTestFinished(() => {
    if (child.exitCode === null && child.signalCode === null) kill('SIGKILL')
  })
  const line = (text: string): Promise<string> =>
    vi.waitFor(
      () => {
        const found = output.find(candidate => candidate.includes(text))
        if (found === undefined) throw new Error(`no line with ${text} in:\n${output.join('\n')}`)
        return found
      },
      { timeout: retryOptions, interval: 50 },
    )
  return { ended, kill, line }
}

/** The processes with this folder in their command line: every server started from it. */
const processesIn = async (folder: string): Promise<string[]> => {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-ww', '-o', 'args='])
  return stdout.split('\n').filter(line => line.includes(folder))
}

/** Ignores other entries: npm and Node keep caches there. */
const serverFoldersIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder)).filter(name => name.startsWith('commission-'))

const untilNothingIsLeft = (folder: string): Promise<void> =>
  vi.waitFor(
    async () => {
      expect(await processesIn(folder)).toEqual([])
      expect(await serverFoldersIn(folder)).toEqual([])
    },
    { timeout: retryOptions, interval: 50 },
  )

const withAdmin = async <Result>(
  kafka: Pick<Service, 'address'>,
  use: (admin: kafkajs.Admin) => Promise<Result>,
): Promise<Result> => {
  const admin = new kafkajs.Kafka({ brokers: kafka.address.split(','), logLevel: kafkajs.logLevel.NOTHING }).admin()
  await admin.connect()
  try {
    return await use(admin)
  } finally {
    await admin.disconnect()
  }
}
const createTopic = (kafka: Service, topic: string) =>
  vi.waitFor(() => withAdmin(kafka, admin => admin.createTopics({ topics: [{ topic }], waitForLeaders: true })), {
    timeout: retryOptions,
    interval: 500,
  })
const topics = (kafka: Service) => withAdmin(kafka, admin => admin.listTopics())
