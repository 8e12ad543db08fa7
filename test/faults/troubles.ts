/** The faults of the rig: how each begins and ends, with its name in the report. */
import type { Service } from '../../services/service.ts'
import type { RunningProcess } from '../support/processes.ts'
import type { Fault, FaultProxy } from '../support/proxy.ts'
import type { Random } from '../support/random.ts'

export type Trouble = {
  readonly what: string
  /** Two faults never act on the same target at the same time. */
  readonly target: string
  /** Whether it kills the projector or the API, and not a service or a connection. */
  readonly kills: boolean
  readonly begin: () => Promise<void>
  readonly end: () => Promise<void>
}

/** A process that can be replaced by a new one. */
export type Slot<Running extends RunningProcess = RunningProcess> = {
  readonly current: () => Running
  readonly restart: () => Promise<void>
}

/** Returns each fault of a proxy once, with random sizes and times. */
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
    begin: () => proxy.inject(fault),
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
      if (exit.code !== 0) throw new Error(`${target} was stopped, but ended with ${JSON.stringify(exit)}`)
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

/** Yields all faults in random order, again and again. */
export function* deal(troubles: readonly Trouble[], random: Random): Generator<Trouble, never> {
  for (;;) {
    const deck = [...troubles]
    while (deck.length > 0) {
      const [next] = deck.splice(random.below(deck.length), 1)
      if (next) yield next
    }
  }
}
