/**
 * kafkajs asks one broker after the other, and drops their errors.
 *
 * When it looks for the coordinator of a group, a group that we may not describe then looks like a cluster without a
 * coordinator, which is asked again for ever. `passOnRefusedRights` passes on the error of a broker that refuses a
 * right.
 *
 * When it asks for metadata, and no broker answers, its caller reads a field of `null`. `refuseNoMetadata` throws an
 * error of kafkajs instead of this TypeError.
 */
import kafkajs from 'kafkajs'
import { accessRefusal } from './access-refusal.ts'
import { loadKafkajs } from './load-kafkajs.ts'

type Ask = (given: object) => Promise<unknown>
type BrokerPool = { withBroker(ask: Ask): Promise<unknown> }
type Cluster = { metadata(wanted?: object): Promise<object | null> }

let passesOn = false
let refuses = false

/** Must be called before the first connection. Idempotent. */
export const passOnRefusedRights = (): void => {
  if (passesOn) return
  passesOn = true
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

/** Must be called before the first request for metadata. Idempotent. */
export const refuseNoMetadata = (): void => {
  if (refuses) return
  refuses = true
  const { prototype } = loadKafkajs<{ readonly prototype: Cluster }>('cluster/index')
  const { metadata } = prototype
  prototype.metadata = async function (wanted) {
    const answer = await metadata.call(this, wanted)
    if (answer === null) throw new kafkajs.KafkaJSConnectionError('no broker answers a request for metadata')
    return answer
  }
}
