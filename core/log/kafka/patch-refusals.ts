/**
 * When kafkajs looks for the coordinator of a group, it asks one broker after the other, and drops their errors. A
 * group that we may not describe then looks like a cluster without a coordinator, which is asked again for ever.
 * `passOnRefusedRights` passes on the error of a broker that refuses a right.
 */
import { accessRefusal } from './access-refusal.ts'
import { loadKafkajs } from './load-kafkajs.ts'

type Ask = (given: object) => Promise<unknown>
type BrokerPool = { withBroker(ask: Ask): Promise<unknown> }

let repaired = false

/** Must be called before the first connection. Idempotent. */
export const passOnRefusedRights = (): void => {
  if (repaired) return
  repaired = true
  const { prototype } = loadKafkajs<{ readonly prototype: BrokerPool }>('cluster/brokerPool')
  const { withBroker } = prototype
  prototype.withBroker = async function (ask) {
    const refused: unknown[] = []
    const answer = await withBroker.call(this, async given => {
      try {
        return await ask(given)
      } catch (error) {
        if (accessRefusal(error) !== undefined) refused.push(error)
        throw error
      }
    })
    if (answer === null && refused.length > 0) throw refused[0]
    return answer
  }
}
