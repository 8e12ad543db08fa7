/** Hostile clients, each with one kind of attack. The seed decides what they do. */
import type { Random } from '../../support/random.ts'
import type { Clock } from '../clock.ts'
import type { Coverage } from '../coverage.ts'
import type { ApiProcess } from './api-process.ts'
import { type Answer, bearer, Client, requestText } from './client.ts'
import type { Organization, Store } from './store.ts'

export type Attack = {
  readonly api: ApiProcess
  readonly clock: Clock
  readonly random: Random
  readonly store: Store
  readonly coverage: Coverage
  readonly onAnswer: (answer: Answer) => void
}

/** Opens connections and attacks over them. They stay open unless leaving is the attack. */
type Way = (attack: Attack) => Client[]

/** Virtual milliseconds until every client that waits for changes has left. */
export const LEFT_WITHIN = 5_000

const habits = (random: Random, rate: number) => ({
  address: `10.0.0.${1 + random.below(3)}`,
  rate,
  latency: random.pick([0, 1, 10]),
})
const FAST = 1_000_000

const connect = ({ api, random, onAnswer }: Attack, rate = FAST): Client =>
  new Client(api, habits(random, rate), onAnswer)

const anyPath = (random: Random, { answers }: Organization): string => random.pick([...answers.keys()])

const ask = (attack: Attack, client: Client, headers: readonly string[] = []): void => {
  const { random, store } = attack
  const { attacker } = store
  const path = random.pick([
    anyPath(random, attacker),
    '/payouts?limit=200',
    '/changes',
    '/payouts?as_of=2023-11-14T22:13:20Z',
  ])
  void client.ask(random.pick(['GET', 'GET', 'GET', 'HEAD']), path, [bearer(attacker.key), ...headers])
}

const many = (random: Random, most: number): number[] => Array.from({ length: 1 + random.below(most) }, (_, n) => n)

export const ways: Readonly<Record<string, Way>> = {
  'clients that read slowly': attack => {
    const { random, coverage } = attack
    return many(random, 30).map(() => {
      coverage.count('clients that read slowly')
      const client = connect(attack, random.pick([0, 0.25, 16]))
      ask(attack, client)
      return client
    })
  },
  'clients that leave': attack => {
    const { clock, random, coverage } = attack
    return many(random, 40).map(() => {
      const client = connect(attack)
      ask(attack, client)
      clock.after(random.next() * random.pick([5, 50, 4_000]), () => {
        coverage.count('clients that left')
        client.leave(random.pick(['closes', 'resets']))
      })
      return client
    })
  },
  'clients that flood': attack => {
    const { random, coverage } = attack
    return many(random, 300).map(() => {
      coverage.count('requests of a flood')
      const client = connect(attack)
      ask(attack, client, random.chance(0.3) ? ['If-None-Match: *'] : [])
      return client
    })
  },
  'clients that send many requests at once': attack => {
    const { random, store, coverage } = attack
    const client = connect(attack, random.pick([0, 16, FAST]))
    coverage.count('pipelines')
    client.send(
      many(random, 60)
        .map(() => requestText('GET', anyPath(random, store.attacker), [bearer(store.attacker.key)]))
        .join(''),
    )
    return [client]
  },
  'clients with unknown keys': attack => {
    const { clock, random, coverage } = attack
    return many(random, 80).map(() => {
      coverage.count('unknown keys')
      const client = connect(attack)
      const key = `ck_unknown_${random.below(1_000_000_000)}_0123456789`
      void client.ask('GET', '/payouts', [bearer(key)])
      if (random.chance(0.3)) clock.after(random.next() * 20, () => client.leave('resets'))
      return client
    })
  },
  'clients that leave their waits': attack => {
    const { clock, random, store, coverage } = attack
    const { name, key } = store.attacker
    const last = `rep_${name.slice(4)}23.1`
    return many(random, 80).map(() => {
      coverage.count('waits that lost their client')
      const client = connect(attack, random.pick([0, FAST]))
      const path = random.pick([`/changes?wait=60&starting_after=${last}`, '/changes?wait=60&rep_id=rep_nobody'])
      const wait = requestText('GET', path, [bearer(key)])
      client.send(
        random.pick([
          wait,
          `${requestText('GET', path, [bearer(key), 'Content-Length: 10'])}abc`,
          `${requestText('GET', path, [bearer(key), 'Transfer-Encoding: chunked'])}fffff\r\n${'x'.repeat(100_000)}`,
          `${wait}GET /api/v1/pay`,
          `${wait}POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab`,
          wait.repeat(1 + random.below(30)),
          `${wait}CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n`,
        ]),
      )
      clock.after(random.next() * LEFT_WITHIN, () => client.leave(random.pick(['closes', 'resets'])))
      return client
    })
  },
  'clients that violate HTTP': attack => {
    const { random, store, coverage, clock } = attack
    coverage.count('bytes that are no request')
    const client = connect(attack)
    const key = bearer(store.attacker.key)
    const good = requestText('GET', '/payouts?limit=7', [key])
    client.send(
      random.pick([
        'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
        `${good}CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n`,
        `${good}no request\r\n\r\n`,
        'GET /api/v1/payouts HTTP/1.1\r\nHost: a\r\nAuthor',
        requestText('GET', '/payouts', [key, key]),
        requestText('GET', '/payouts', [key, `X: ${'x'.repeat(9_000)}`]),
        requestText('GET', '/payouts?as_of=9999-12-31T23:59:59.999999999Z', [key]),
        requestText('GET', '/payouts?as_of=0001-01-01T00:00:00-23:59', [key]),
        requestText('GET', '/payouts?limit=%31%30&starting_after=%FF', [key]),
        requestText('GET', '/payouts/payout_%2e%2e%2fattacker1', [key]),
        requestText('POST', '/payouts', [key, 'Content-Length: 5']),
        requestText('GET', '/payouts', [key, 'Transfer-Encoding: chunked']),
        requestText('GET', '/payouts', [key, 'Expect: 100-continue', 'Content-Length: 70000']),
      ]),
    )
    if (random.chance(0.5)) clock.after(random.next() * 5, () => client.leave('resets'))
    return [client]
  },
}
