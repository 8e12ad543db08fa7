/**
 * A projector that is killed, frozen or blocked at a chosen point of the flow. It is assembled like
 * `projector/main.ts`; only here are the parts of the flow wrapped. The product has no option for this.
 *
 * Its one argument is a `Plan` as JSON; its settings are those of the projector.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '@elastic/elasticsearch'
import kafkajs from 'kafkajs'
import { pino } from 'pino'
import type { DecisionSteps } from '../../core/ledger/decide/decide-batch.ts'
import { kafkaAccess, kafkaConfig } from '../../core/log/kafka-config.ts'
import type { FlowParts } from '../../core/projection/flow/flow.ts'
import { StopError } from '../../core/runtime/failures.ts'
import { projectorSettings, readSettings } from '../../core/runtime/settings.ts'
import {
  createElasticsearch,
  type Elasticsearch,
  type Request,
  type Send,
} from '../../core/store/elasticsearch/client.ts'
import { elasticsearchConfig } from '../../core/store/elasticsearch-config.ts'
import { runProjector } from '../../projector/projector.ts'
import { isListKind } from '../../schemas/stored/documents.ts'
import { isRead } from './answering.ts'
import { registerCodecs } from './codecs.ts'
import type { Plan, Point } from './crashes.ts'
import { createRandom } from './random.ts'

const plan: Plan = JSON.parse(process.argv[2] ?? '')
const random = createRandom(plan.seed)
let reached = 0

/** Returns if this is not the chosen point, or when a frozen process is thawed. Never returns in a blocked process. */
const reach = async (point: Point): Promise<void> => {
  if (isHere(point)) await end()
}

const isHere = (point: Point): boolean => point === plan.point && ++reached === plan.time

const end = async (): Promise<void> => {
  // This write is synchronous: the line must be out before the signal.
  process.stdout.write(`${JSON.stringify({ msg: 'the point is reached', ...plan })}\n`)
  if (plan.fate === 'stuck') return new Promise(() => undefined)
  process.kill(process.pid, plan.fate === 'killed' ? 'SIGKILL' : 'SIGSTOP')
}

/** For synchronous steps: nothing else can run in between. */
const endNow = (point: Point): void => {
  if (isHere(point)) void end()
}

const wrapSteps = (steps: DecisionSteps): DecisionSteps => ({
  ...steps,
  decode: record => {
    endNow('before decode')
    const envelope = steps.decode(record)
    endNow('after decode')
    return envelope
  },
})

const wrapParts = ({ ledger, store, stream }: FlowParts): FlowParts => {
  const { published } = store
  let writes = 0

  const packBatch: FlowParts['store']['packBatch'] = (decided, last) => async () => {
    if (decided.length > 0) writes++
    // The first write of the partition never starts; the projector ends at the second.
    if (plan.point === 'a later write first' && writes === 1) return new Promise(() => undefined)
    await reach('before write')
    if (isHere('amid write')) {
      // Elasticsearch writes shard by shard, so any subset of the items can be written.
      await store.packBatch(
        decided.filter(() => random.chance(0.5)),
        last,
      )()
      await end()
    }
    await store.packBatch(decided, last)()
    await reach('after write')
    await reach('a later write first')
  }

  return {
    ledger: {
      source: ledger.source,
      decideNext: async batch => {
        await reach('before decide')
        const decided = await ledger.decideNext(batch)
        await reach('after decide')
        return decided
      },
    },
    store: {
      packBatch,
      refresh: async (kinds, delay) => {
        if (![...kinds].some(isListKind)) return store.refresh(kinds, delay)
        await reach('before refresh')
        await store.refresh(kinds, delay)
        await reach('after refresh')
      },
      published: {
        ...published,
        advance: async (further, isAhead) => {
          await reach('before publish')
          await published.advance(further, isAhead)
          await reach('after publish')
        },
      },
    },
    stream: {
      onPressure: full => stream.onPressure(full),
      onDecided: (counts, codes, documents) => stream.onDecided(counts, codes, documents),
      onPublished: at => stream.onPublished(at),
      onRecordsBehind: milliseconds => stream.onRecordsBehind(milliseconds),
      fail: error => stream.fail(error),
      commit: async position => {
        await reach('before commit')
        await stream.commit(position)
        await reach('after commit')
      },
    },
  }
}

/** Ends the projector after the bulk request is sent and before it is answered. */
const wrapSend =
  ({ send }: Elasticsearch): Send =>
  async <Body>(request: Request, signal?: AbortSignal) => {
    if (request.path !== '/_bulk' || isRead(request.bulk) || !isHere('amid bulk request'))
      return send<Body>(request, signal)
    const answer = send<Body>(request, signal)
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
const options = kafkaConfig(settings, 'commission-projector', noFiles, Date.now)
try {
  await runProjector(settings, {
    ...kafkaAccess(options, config => new kafkajs.Kafka(config)),
    elasticsearch: { send: wrapSend(createElasticsearch(new Client(elasticsearchConfig(settings, noFiles)))) },
    log,
    now: Date.now,
    elapsed: () => performance.now(),
    retryOptions: { sleep: (milliseconds, signal) => sleep(milliseconds, undefined, { signal }), random: Math.random },
    signal: stopping.signal,
    wrapSteps,
    wrapParts,
    ...(plan.stuckMs !== undefined && { stuckMs: plan.stuckMs }),
  })
} catch (error) {
  process.exitCode = 1
  if (error instanceof StopError) log.fatal({ code: error.code, ...error.where }, error.message)
  else log.fatal({ code: 'defect', frames: error instanceof Error ? error.stack : '' }, 'stopped by a defect')
}
process.exit()
