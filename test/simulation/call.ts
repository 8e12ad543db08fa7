/** A call of the Kafka client to a broker: it takes time, and can fail before or after its effect. */
import kafkajs from 'kafkajs'
import type { SimulatedProcess } from './clock.ts'
import type { Faults } from './faults.ts'

/** Runs `work` at the broker. `work` returns the answer, or passes it to a callback. */
export type Call = <Result>(work: ((answer: (result: Result) => void) => void) | (() => Result)) => Promise<Result>

export const createCall =
  (host: SimulatedProcess, faults: Faults): Call =>
  <Result>(work: ((answer: (result: Result) => void) => void) | (() => Result)) =>
    new Promise<Result>((resolve, reject) => {
      const { clock } = host
      host.onRequest()
      let isOver = false
      const settle = (after: number, end: () => void): void => {
        clock.after(after, () =>
          host.deliver(() => {
            if (isOver) return
            isOver = true
            end()
          }),
        )
      }
      const fail = (): void =>
        settle(faults.delay() + faults.random.next() * 500, () => reject(new kafkajs.KafkaJSError('connection closed')))
      const fails = faults.happens('kafkaFails')
      if (faults.kafkaIsAway || (fails && faults.random.chance(0.5))) return fail()
      const answer = (result: Result): void => {
        if (faults.kafkaIsAway || fails) fail()
        else settle(faults.delay(), () => resolve(result))
      }
      clock.after(faults.delay(), () => {
        if (faults.kafkaIsAway || host.isDead) return fail()
        try {
          if (work.length === 0) answer((work as () => Result)())
          else (work as (answer: (result: Result) => void) => void)(answer)
        } catch (error) {
          settle(faults.delay(), () => reject(error))
        }
      })
    })
