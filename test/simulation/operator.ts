/**
 * The operator of a run: starts a second generation beside the first, swaps and rolls back, with the real commands, at
 * the times of the schedule. Each command may be interrupted. Not simulated: the rebuild process, whose stream is the
 * same as a projector's, and the comparison of two generations.
 */

import { RULES_VERSION } from '../../core/ledger/rules/rules.ts'
import { keepTrying, Unanswered } from '../../core/runtime/keep-trying.ts'
import type { Send } from '../../core/store/elasticsearch/client.ts'
import { changeGenerations } from '../../core/store/generations/generations.ts'
import { prepareGeneration } from '../../core/store/generations/prepare.ts'
import { FIRST_GENERATION } from '../../schemas/stored/documents.ts'
import { CommandError } from '../../tools/failures.ts'
import { rollback, swap } from '../../tools/generations/swap.ts'
import type { Random } from '../support/random.ts'
import { SimulatedProcess } from './clock.ts'
import { EVENTS } from './history.ts'
import { createLink } from './link.ts'
import { OTHER_RULES, type Services } from './projector.ts'
import { PREFIX, type Promises, SECOND_GENERATION } from './promises.ts'
import type { SecondGeneration } from './schedule.ts'

type Parts = Omit<Services, 'watcher'> & {
  readonly promises: Promises
  /** Called when a generation with other rules exists: it needs projectors of these rules. */
  readonly startOther: () => void
  readonly fail: (reason: string) => void
}

export class Operator {
  readonly #parts: Parts
  readonly #random: Random
  readonly #second: SecondGeneration
  #hasBegun = false
  #isBusy = false
  #working: SimulatedProcess | undefined
  #isHealed = false
  #names = 0

  constructor(second: SecondGeneration, parts: Parts, random: Random) {
    this.#second = second
    this.#parts = parts
    this.#random = random
  }

  /** Starts the actions of the schedule. */
  follow(): void {
    const { clock } = this.#parts
    clock.after(this.#second.begin, () => this.#begin())
    clock.after(this.#second.begin, () => this.#keepSwapping())
  }

  /** Ends the interruptions, and starts the second generation if that has not happened yet. */
  heal(): void {
    this.#isHealed = true
    if (!this.#hasBegun) this.#begin()
  }

  get isDone(): boolean {
    return this.#hasBegun && !this.#isBusy
  }

  /** Makes the other generation live, and waits for the command. Returns whether the command was carried out. */
  async swapNow(): Promise<boolean> {
    return (await this.#swapOrGoBack()) ?? false
  }

  /** Carries out a change of the live document. */
  change(make: (steps: { readonly request: Send; readonly prefix: string }) => Promise<unknown>): Promise<boolean> {
    return this.#carryOut(async request => void (await make({ request, prefix: PREFIX })))
  }

  #begin(): void {
    void this.#carryOut(async (request, host) => {
      const { broker, coverage, promises, startOther, layouts } = this.#parts
      const { rules } = this.#second
      const rulesVersion = rules === 'same' ? RULES_VERSION : OTHER_RULES
      const partitions = broker.topic(EVENTS).partitions.length
      const ends = Array.from({ length: partitions }, (_, partition) => ({ partition, low: 0, end: 0 }))
      const steps = { request, prefix: PREFIX, shards: 3, ...layouts.later, rulesVersion }
      const source = { topic: EVENTS, cluster_id: 'simulated', partitions }
      const follows = rules === 'same' ? undefined : FIRST_GENERATION
      const { signal } = new AbortController()
      while (!promises.hasPosition()) await host.sleep(500, signal)
      await prepareGeneration(SECOND_GENERATION, source, ends, steps, follows)
      await changeGenerations(steps, now => ({ ...now, active: [...new Set([...now.active, SECOND_GENERATION])] }))
      if (!this.#hasBegun) coverage.count(`generations begun under ${rules === 'same' ? 'the same' : 'other'} rules`)
      this.#hasBegun = true
      if (rules === 'other') startOther()
    })
  }

  #keepSwapping(): void {
    this.#parts.clock.after(this.#random.next() * 2 * this.#second.pause, () => {
      if (this.#isHealed) return
      void this.#swapOrGoBack()
      this.#keepSwapping()
    })
  }

  #swapOrGoBack(): Promise<boolean> | undefined {
    if (!this.#hasBegun || this.#isBusy) return undefined
    const { clock, coverage, fail, promises } = this.#parts
    return this.#carryOut(async (send, host) => {
      const context = {
        send,
        prefix: PREFIX,
        out: () => undefined,
        say: (line: string) => {
          if (line.includes(' is applied in ')) fail(line)
        },
        sleep: (milliseconds: number) => host.sleep(milliseconds, new AbortController().signal),
        now: clock.now,
        elapsed: () => clock.elapsed,
      }
      const back = promises.live()?.generation === SECOND_GENERATION
      if (back) await rollback({ force: 'simulated', json: false }, context)
      else await swap({ generation: SECOND_GENERATION, force: 'simulated', json: false }, context)
      coverage.count(back ? 'rollbacks' : 'swaps')
    })
  }

  /** Resolves with whether the command was carried out; never if it is interrupted. */
  #carryOut(command: (request: Send, host: SimulatedProcess) => Promise<void>): Promise<boolean> {
    const { clock, engine, faults, coverage, fail, promises } = this.#parts
    const host = new SimulatedProcess(clock, `operator-${++this.#names}`)
    // Some commands are interrupted after the swap, while readers wait for the floor.
    const isCutAfterSwap = !this.#isHealed && this.#random.chance(0.2)
    const watcher = {
      onSend: () => undefined,
      onDone: () => void (isCutAfterSwap && promises.live()?.floor === null && this.#cut(host)),
      onWritten: () => undefined,
    }
    const link = createLink(host, engine, faults, coverage, watcher)
    const { signal } = new AbortController()
    const retryOptions = { sleep: host.sleep, random: faults.random.next, onTrouble: () => undefined }
    const request: Send = asked => keepTrying(() => link.send(asked, signal), signal, retryOptions)
    this.#isBusy = true
    this.#working = host
    if (!this.#isHealed && this.#random.chance(0.4)) {
      clock.after(this.#random.next() * this.#random.pick([20, 200, 2_000]), () => this.#cut(host))
    }
    const done = (): void => {
      if (this.#working === host) this.#isBusy = false
    }
    return command(request, host)
      .finally(done)
      .then(() => true)
      .catch((error: unknown) => {
        // A command may refuse, with an error that says why.
        if (!(error instanceof CommandError || error instanceof Unanswered))
          fail(`a command failed: ${error instanceof Error ? error.stack : 'defect'}`)
        return false
      })
  }

  #cut(host: SimulatedProcess): void {
    if (!this.#isBusy || this.#working !== host || host.isDead) return
    this.#parts.coverage.count('commands cut short')
    host.kill()
    this.#isBusy = false
  }
}
