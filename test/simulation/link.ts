/**
 * The network between a projector and Elasticsearch, with the interface of `core/store/elasticsearch/client.ts`. A
 * request is tried once. It fails as `Unanswered` when it is lost, refused, given up or not answered in time. A
 * request that fails for the projector can still have its effect.
 */

import { Unanswered } from '../../core/runtime/keep-trying.ts'
import { type Answer, AnswerTooLong, type Elasticsearch, type Request } from '../../core/store/elasticsearch/client.ts'
import { ELASTICSEARCH_TIMEOUT_MS } from '../../core/store/limits.ts'
import { isRead, sending, updatesIn } from '../support/answering.ts'
import type { SimulatedProcess } from './clock.ts'
import type { Coverage } from './coverage.ts'
import type { SimulatedElasticsearch } from './elasticsearch.ts'
import type { Faults } from './faults.ts'

/** The stage of the flow that a request belongs to. */
export type Step = 'read' | 'write' | 'refresh' | 'publish' | 'prepare'

export const stepOf = ({ method, path, bulk }: Request): Step => {
  if (path === '/_mget' || isRead(bulk)) return 'read'
  if (path === '/_bulk') return isOfPositions(bulk) ? 'publish' : 'write'
  if (path.endsWith('/_refresh')) return 'refresh'
  return method === 'PUT' && path.includes('/_doc/position') ? 'publish' : 'prepare'
}

/** Positions are conditional on `if_seq_no`; documents have an external version. */
const isOfPositions = (bulk: Buffer = Buffer.alloc(0)): boolean =>
  bulk.subarray(0, bulk.indexOf('\n')).includes('"if_seq_no"')

/** Called at the steps of a projector. It may kill the projector there. */
export type Watcher = {
  readonly onSend: (host: SimulatedProcess, step: Step) => void
  readonly onDone: (host: SimulatedProcess, step: Step) => void
  readonly onWritten: (host: SimulatedProcess, id: string) => void
}

export type Link = Elasticsearch & {
  /** Number of bulk requests whose items are not all written yet. */
  readonly writing: () => number
}

export const createLink = (
  host: SimulatedProcess,
  engine: SimulatedElasticsearch,
  faults: Faults,
  coverage: Coverage,
  watcher: Watcher,
): Link => {
  let writing = 0
  const { clock } = host

  /** Delivers a request to Elasticsearch, now or after a freeze. */
  const arrive = (request: Request, answer: (answer: Answer | undefined) => void): void => {
    if (faults.elasticsearch === 'frozen') {
      clock.after(250, () => arrive(request, answer))
      return
    }
    const onWritten = (id: string): void => {
      if (host.isDead) coverage.count('writes applied after their process was dead')
      watcher.onWritten(host, id)
    }
    if (faults.elasticsearch === 'away') answer(undefined)
    else engine.execute(request, answer, onWritten)
  }

  const carry = (request: Request, after: number, answer: (answer: Answer | undefined) => void): void => {
    const step = stepOf(request)
    if (step === 'write') writing++
    clock.after(after, () =>
      arrive(request, answered => {
        if (step === 'write') writing--
        answer(answered)
      }),
    )
  }

  const stray = (request: Request, after: number): void => {
    faults.strays++
    carry(request, after, () => {
      faults.strays--
    })
  }

  const send = (request: Request, signal?: AbortSignal): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const step = stepOf(request)
      watcher.onSend(host, step)
      host.onStep()
      host.onRequest()
      // The host was killed before it sent the request: the promise never settles.
      if (host.isDead) return
      let isOver = false
      const settle = (after: number, end: () => void): void => {
        clock.after(after, () =>
          host.deliver(() => {
            if (isOver) return
            isOver = true
            cancelTimer()
            signal?.removeEventListener('abort', giveUp)
            end()
          }),
        )
      }
      const fail = (after: number, status: number): void =>
        settle(after, () => reject(new Unanswered('elasticsearch', status)))
      const giveUp = (): void => {
        if (isOver) return
        isOver = true
        cancelTimer()
        reject(new Unanswered('elasticsearch', 0))
      }
      const cancelTimer = host.after(ELASTICSEARCH_TIMEOUT_MS, giveUp)
      if (signal?.aborted) return giveUp()
      signal?.addEventListener('abort', giveUp, { once: true })

      if (faults.elasticsearch === 'away') return fail(faults.delay(), 0)
      if (faults.happens('loseRequest')) {
        coverage.count('requests lost')
        // The connection breaks, or no answer ever comes.
        if (faults.random.chance(0.8)) fail(faults.delay(), 0)
        return
      }
      // In a bulk request Elasticsearch refuses each item instead.
      const blocked = faults.isBlocked && request.path !== '/_bulk' && (step === 'publish' || step === 'prepare')
      if (blocked || faults.happens('refuse')) {
        coverage.count('requests refused')
        return fail(faults.delay() + faults.delay(), blocked ? 403 : faults.random.pick([429, 503, 502]))
      }
      if (faults.happens('late')) {
        coverage.count('requests applied after they were given up')
        stray(request, faults.random.next() * 20_000)
        return fail(faults.delay(), 0)
      }
      if (faults.happens('twice')) {
        coverage.count('requests applied twice')
        stray(request, faults.delay() + faults.random.next() * 5_000)
      }
      carry(request, faults.delay(), answer => {
        if (answer === undefined) return
        watcher.onDone(host, step)
        if (faults.elasticsearch === 'away' || faults.happens('loseAnswer')) {
          coverage.count('answers lost after the effect')
          if (faults.random.chance(0.8)) fail(faults.delay(), 0)
          return
        }
        const isTooLong = isLongerThanAsked(request, faults.knobs.answerDocuments)
        if (isTooLong) coverage.count('answers longer than was asked for')
        settle(faults.delay(), () => (isTooLong ? reject(new AnswerTooLong()) : resolve(answer)))
      })
    })

  return { send: sending(send), writing: () => writing }
}

const isLongerThanAsked = ({ body, bulk, answerBytesMax }: Request, documents: number): boolean => {
  if (documents === 0 || answerBytesMax === undefined) return false
  const { docs } = (body ?? {}) as { readonly docs?: readonly unknown[] }
  return (docs?.length ?? updatesIn(bulk).length) > documents
}
