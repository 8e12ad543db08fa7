/** What is done to an installation, and undone: each trouble by the name it has in the report. */
import type { Service } from '../../services/service.ts'
import type { RunningProcess } from '../support/processes.ts'
import type { Fault, FaultProxy } from '../support/proxy.ts'
import type { Random } from '../support/random.ts'

export type Trouble = {
  readonly what: string
  /** Two troubles of the same target are never there at once. */
  readonly target: string
  /** Whether it ends what the projector or the API was doing, rather than its surroundings. */
  readonly kills: boolean
  readonly begin: () => Promise<void>
  readonly end: () => Promise<void>
}

/** A process that is started again in the same place. */
export type Slot<Running extends RunningProcess = RunningProcess> = {
  readonly current: () => Running
  readonly restart: () => Promise<void>
}

/** The faults of a proxy, once each, with sizes and times by chance. */
const faultsOf = (random: Random): Fault[] => [
  { kind: 'latency', milliseconds: 20 + random.below(300) },
  { kind: 'slices', bytes: 200 + random.below(2_000) },
  { kind: 'black-hole' },
  { kind: 'reset' },
  { kind: 'lost-answer' },
  { kind: 'cut-answer', bytes: 1 + random.below(600) },
  { kind: 'away' },
]

export const proxyTroubles = (target: string, proxy: FaultProxy, random: Random): Trouble[] =>
  faultsOf(random).map(fault => ({
    what: Object.values(fault).join(' '),
    target,
    kills: false,
    begin: () => proxy.suffer(fault),
    end: () => proxy.heal(),
  }))

export const serviceTroubles = (service: Service): Trouble[] => [
  { what: 'kill -9', target: service.name, kills: false, begin: service.kill, end: service.restart },
  { what: 'freeze', target: service.name, kills: false, begin: service.freeze, end: service.thaw },
]

export const processTroubles = (target: string, { current, restart }: Slot): Trouble[] => [
  { what: 'kill -9', target, kills: true, begin: async () => void (await current().kill()), end: restart },
  {
    what: 'stop',
    target,
    kills: false,
    begin: async () => {
      const exit = await current().stop()
      if (exit.code !== 0) throw new Error(`${target} was told to stop and ended with ${JSON.stringify(exit)}`)
    },
    end: restart,
  },
  {
    what: 'freeze',
    target,
    kills: false,
    begin: async () => current().freeze(),
    end: async () => current().thaw(),
  },
]

/** An endless deck: every trouble once in an order by chance, then all of them again. */
export function* deal(troubles: readonly Trouble[], random: Random): Generator<Trouble, never> {
  for (;;) {
    const deck = [...troubles]
    while (deck.length > 0) {
      const [next] = deck.splice(random.below(deck.length), 1)
      if (next) yield next
    }
  }
}
