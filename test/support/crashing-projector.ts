/**
 * A projector that ends, freezes or gets stuck at a point of the flow that is chosen beforehand. It is wired like
 * `projector/main.ts`, from the same parts, and only here are the steps wrapped: the product has no way to ask for it.
 *
 * Its one argument is a `Plan` as JSON; its settings are the projector's.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '@elastic/elasticsearch'
import kafkajs from 'kafkajs'
import { pino } from 'pino'
import { elasticsearchConfig, kafkaConfig } from '../../projector/client-options.ts'
import { createElasticsearch, type Elasticsearch } from '../../projector/elasticsearch/client.ts'
import { StopError } from '../../projector/failures.ts'
import type { Steps } from '../../projector/flow/flow.ts'
import { registerCodecs } from '../../projector/kafka/codecs.ts'
import { hearConnections } from '../../projector/kafka/patch-connections.ts'
import { runProjector } from '../../projector/projector.ts'
import { projectorSettings, readSettings } from '../../schemas/settings.ts'
import type { Plan, Point } from './crashes.ts'
import { createRandom } from './random.ts'

const plan: Plan = JSON.parse(process.argv[2] ?? '')
const random = createRandom(plan.seed)
let reached = 0

/** Comes back only where the point is not the one, or once a frozen process goes on; a stuck one never does. */
const reach = async (point: Point): Promise<void> => {
  if (isHere(point)) await end()
}

const isHere = (point: Point): boolean => point === plan.point && ++reached === plan.time

const end = async (): Promise<void> => {
  // The log is written at once; the signal must not come before it.
  process.stdout.write(`${JSON.stringify({ msg: 'the point is reached', ...plan })}\n`)
  if (plan.fate === 'stuck') return new Promise(() => undefined)
  process.kill(process.pid, plan.fate === 'killed' ? 'SIGKILL' : 'SIGSTOP')
}

/** Synchronous: where a step is, nothing else can come in between. */
const endNow = (point: Point): void => {
  if (isHere(point)) void end()
}

const wrapSteps = (steps: Steps): Steps => {
  let writes = 0

  const write: Steps['write'] = changes => async () => {
    if (changes.length > 0) writes++
    // The first of the partition waits for the second, with which all ends.
    if (plan.point === 'a later write first' && writes === 1) return new Promise(() => undefined)
    await reach('before write')
    if (isHere('amid write')) {
      // Elasticsearch writes shard by shard: any of the items can be there, and any of them missing.
      await steps.write(changes.filter(() => random.chance(0.5)))()
      await end()
    }
    await steps.write(changes)()
    await reach('after write')
    await reach('a later write first')
  }

  return {
    ...steps,
    decode: record => {
      endNow('before decode')
      const envelope = steps.decode(record)
      endNow('after decode')
      return envelope
    },
    load: async (events, cache) => {
      await reach('before load')
      const state = await steps.load(events, cache)
      await reach('after load')
      return state
    },
    write,
    refresh: async (indices, behind) => {
      await reach('before refresh')
      await steps.refresh(indices, behind)
      await reach('after refresh')
    },
    published: {
      current: steps.published.current,
      takeBack: steps.published.takeBack,
      advance: async further => {
        if (further.position === undefined) return steps.published.advance(further)
        await reach('before publish')
        await steps.published.advance(further)
        await reach('after publish')
      },
    },
    commit: async position => {
      await reach('before commit')
      await steps.commit(position)
      await reach('after commit')
    },
  }
}

/** The request is under way when the point is reached: sent, and not yet answered. */
const wrapSend =
  ({ send }: Elasticsearch): Elasticsearch['send'] =>
  async (request, signal) => {
    if (request.path !== '/_bulk' || !isHere('amid bulk request')) return send(request, signal)
    const answer = send(request, signal)
    await sleep(random.below(5))
    await end()
    return answer
  }

const settings = readSettings(projectorSettings, process.env)
const log = pino({ level: 'info', base: { process: 'projector' } })
const stopping = new AbortController()
process.once('SIGTERM', () => stopping.abort())
registerCodecs()
const noFiles = (): Buffer => {
  throw new Error('tests have no certificates')
}
const options = kafkaConfig(settings, 'commission-projector', noFiles)
try {
  await runProjector(settings, {
    kafka: new kafkajs.Kafka(options),
    kafkaWithConnectHook: onConnected => new kafkajs.Kafka({ ...options, socketFactory: hearConnections(onConnected) }),
    elasticsearch: { send: wrapSend(createElasticsearch(new Client(elasticsearchConfig(settings, noFiles)))) },
    log,
    now: Date.now,
    elapsed: () => performance.now(),
    patience: { sleep: (milliseconds, signal) => sleep(milliseconds, undefined, { signal }), random: Math.random },
    signal: stopping.signal,
    wrapSteps,
    ...(plan.stuckMs !== undefined && { stuckMs: plan.stuckMs }),
  })
} catch (error) {
  process.exitCode = 1
  if (error instanceof StopError) log.fatal({ code: error.code, ...error.where }, error.message)
  else log.fatal({ code: 'defect', frames: error instanceof Error ? error.stack : '' }, 'stopped by a defect')
}
process.exit()
