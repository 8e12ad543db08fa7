/**
 * Runs one attack and returns a verdict: an API process, hostile clients, and victims, which are well-behaved clients
 * of another organization. Checks:
 * - victims get the correct answer or a clear refusal; while Elasticsearch is well, the correct answer;
 * - no request fails with an internal error, and no promise rejection is unhandled;
 * - a wait for a change ends with its client;
 * - when all clients have left, everything that was held is released.
 */
import { createRandom, type Random } from '../../support/random.ts'
import { Clock } from '../clock.ts'
import { attacks, Coverage } from '../coverage.ts'
import { CALM, Faults, type Knobs } from '../faults.ts'
import { type ApiProcess, startApiProcess } from './api-process.ts'
import { type Answer, bearer, Client } from './client.ts'
import { type Attack, LEFT_WITHIN, ways } from './clients.ts'
import { createStore, type Store } from './store.ts'

export type Verdict = { readonly failure: string | undefined; readonly coverage: Coverage; readonly trace: string }

/**
 * Virtual milliseconds: of the attack, until the end of a connection is seen, until everything under way has ended, and
 * until idle connections are closed.
 */
const ATTACK = 20_000
const SEEN_WITHIN = 5_000
const SETTLED = 40_000
const IDLE = 120_000
/** A victim must have its answer after this many tries, while Elasticsearch is well. */
const TRIES = 4
/** Far more than victims need, and less than a flood uses. */
const RATE = { requests: 1_000, windowSeconds: 60 }

let store: Store | undefined

export const runAttack = async (seed: number): Promise<Verdict> => {
  store ??= createStore()
  const random = createRandom(seed)
  const clock = new Clock()
  const coverage = new Coverage(attacks)
  const knobs = knobsOf(random)
  const faults = new Faults(createRandom(seed ^ 0x5bd1e995), knobs)
  let failure: string | undefined
  const fail = (reason: string): void => {
    failure ??= `attack ${seed}: ${reason} (after ${(clock.elapsed / 1000).toFixed(3)} s)`
  }
  const unhandled = (error: unknown): void => fail(`a promise was rejected without a listener: ${placeOf(error)}`)
  process.on('unhandledRejection', unhandled)
  try {
    const api = startApiProcess({
      clock,
      faults,
      elasticsearch: store,
      rate: RATE,
      fail,
      onDeliveryTimeout: () => coverage.count('answers that were cut off'),
    })
    const world: World = { api, clock, random, store, coverage, faults, fail, isCalm: knobs === CALM }
    await attack(world)
    const trace = `${clock.happened} ${clock.elapsed} ${api.asked()}`
    return { failure, coverage, trace }
  } finally {
    process.off('unhandledRejection', unhandled)
  }
}

type World = Omit<Attack, 'onAnswer'> & {
  readonly faults: Faults
  readonly fail: (reason: string) => void
  /** Whether Elasticsearch is well all the time. */
  readonly isCalm: boolean
}

const attack = async (world: World): Promise<void> => {
  const { api, clock, random, store, coverage, faults, fail } = world
  coverage.count('attacks')
  const onAnswer = (answer: Answer): void => {
    checkAnswer(answer, fail)
    if (answer.body.includes(store.victim.name)) fail('an attacker was shown a record of another organization')
  }
  const hostile: Client[] = []
  const attacking = Object.values(ways).filter(() => random.chance(0.5))
  for (const way of attacking) {
    for (let wave = 0; wave < 3; wave++) {
      clock.after(random.next() * ATTACK, () => hostile.push(...way({ ...world, onAnswer })))
    }
  }
  if (!world.isCalm && random.chance(0.3)) {
    clock.after(random.next() * ATTACK, () => {
      coverage.count('Elasticsearch frozen during an attack')
      faults.elasticsearch = 'frozen'
    })
  }
  const victims = Array.from({ length: 1 + random.below(3) }, (_, n) => behave(world, ATTACK, `10.0.0.${1 + n}`))
  await clock.runUntil(() => false, ATTACK)

  faults.end()
  // The API must close the connections of clients that stay.
  for (const client of hostile) if (random.chance(0.7)) client.leave(random.pick(['closes', 'resets']))
  // All of these clients have gone, and no wait takes longer than a read to see it.
  const noWaits = () => api.usage().waits_for_changes.waiting === 0
  if (!(await clock.runUntil(noWaits, LEFT_WITHIN + SEEN_WITHIN))) fail('a wait goes on without its client')
  await untilSettled(clock, Promise.all(victims), SETTLED, fail)
  await clock.runUntil(() => isIdle(api), SETTLED)
  // The idle timeout ends connections of clients that read too slowly.
  await clock.runUntil(() => isIdle(api) && api.connections() === 0, IDLE)
  if (!isIdle(api)) fail(`not released: ${JSON.stringify(api.usage())}, ${api.held()} bytes, ${api.reads()} reads`)
  if (api.connections() > 0) fail(`${api.connections()} connections are still open`)
  // Afterwards victims are served as before the attack.
  await untilSettled(clock, behave({ ...world, isCalm: true }, 1_000, '10.0.0.9'), SETTLED, fail)
}

const isIdle = (api: ApiProcess): boolean =>
  api.reads() === 0 && api.held() === 0 && Object.values(api.usage()).every(({ held, waiting }) => held + waiting === 0)

const untilSettled = async (clock: Clock, work: Promise<unknown>, most: number, fail: World['fail']): Promise<void> => {
  let isOver = false
  void work.finally(() => {
    isOver = true
  })
  if (!(await clock.runUntil(() => isOver, most))) fail('a victim was never answered')
}

/** Sends one request after the other until the time is over, retries as told, and compares the answers. */
const behave = async (world: World, time: number, address: string): Promise<void> => {
  const { api, clock, random, store, coverage, fail, isCalm } = world
  const { answers, key } = store.victim
  const end = clock.elapsed + time
  const sleep = (milliseconds: number): Promise<void> => new Promise(resolve => void clock.after(milliseconds, resolve))
  const habits = { address, rate: 100_000, latency: 1 }
  const connect = (): Client => new Client(api, habits, answer => checkAnswer(answer, fail))
  let client = connect()
  while (clock.elapsed < end) {
    const [path, body] = random.pick([...answers])
    for (let tries = 1; ; tries++) {
      if (client.isClosed) client = connect()
      const answer = await client.ask('GET', path, [bearer(key)])
      if (answer?.status === 200) {
        coverage.count('answers to clients that behave')
        if (answer.body !== body) fail(`the answer to ${path} is wrong`)
        break
      }
      const status = answer?.status ?? 'nothing'
      if (status !== 503) fail(`${path} of a victim is answered ${status}`)
      coverage.count('refusals of clients that behave')
      if (isCalm && tries >= TRIES) fail(`${path} of a victim is refused ${tries} times`)
      if (clock.elapsed >= end) break
      await sleep(1_000 * Number(answer?.headers.get('retry-after') ?? 1))
    }
    await sleep(random.next() * 400)
  }
  client.leave('closes')
}

const STATUSES = [200, 304, 400, 401, 403, 404, 405, 408, 413, 414, 417, 429, 431, 503]

/** Checks that hold for every answer. */
const checkAnswer = ({ status, headers, body }: Answer, fail: World['fail']): void => {
  if (!STATUSES.includes(status)) fail(`an answer has status ${status}`)
  if (!headers.get('x-request-id')) fail(`an answer ${status} has no request id`)
  if ((status === 503 || status === 429) && !/^[1-9]\d*$/.test(headers.get('retry-after') ?? '')) {
    fail(`an answer ${status} does not say when to try again`)
  }
  if (status >= 400 && body !== '' && typeof JSON.parse(body)?.error?.code !== 'string')
    fail(`a refusal ${status} has no code`)
}

/** In half of the attacks Elasticsearch is well: then no refusal may last long. */
const knobsOf = (random: Random): Knobs => {
  if (random.chance(0.5)) return CALM
  const sometimes = (often: number): number => (random.chance(0.5) ? random.pick([0.02, often]) : 0)
  return {
    ...CALM,
    readFails: sometimes(0.1),
    refuse: sometimes(0.3),
    slow: sometimes(0.2),
    loseAnswer: sometimes(0.1),
    latency: random.pick([1, 5, 30]),
  }
}

const placeOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.name).split('\n').slice(0, 3).join(' ') : String(error)
