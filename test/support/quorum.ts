/** Asks a Kafka cluster which of its nodes is the active controller. kafkajs has no such request. */
import { once } from 'node:events'
import { connect } from 'node:net'

const DESCRIBE_QUORUM = 55
const CORRELATION = 1
const QUORUM_TOPIC = '__cluster_metadata'
const TIMEOUT_MS = 5_000

/** Returns the node id of the active controller. @param address of any broker, as `host:port` */
export const activeController = async (address: string): Promise<number> => {
  const [host, port] = address.split(':')
  const socket = connect(Number(port), host)
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error(`${address} does not answer`)))
  try {
    socket.write(describeQuorum())
    let answer = Buffer.alloc(0)
    while (answer.length < 4 || answer.length < 4 + answer.readInt32BE(0)) {
      const [chunk] = (await once(socket, 'data')) as [Buffer]
      answer = Buffer.concat([answer, chunk])
    }
    return leaderIn(answer)
  } finally {
    socket.destroy()
  }
}

/** Version 0 for partition 0 of the only topic. Lengths of compact lists and texts are one more than they say. */
const describeQuorum = (): Buffer => {
  const head = Buffer.alloc(10)
  head.writeInt16BE(DESCRIBE_QUORUM, 0)
  head.writeInt32BE(CORRELATION, 4)
  // No client id.
  head.writeInt16BE(-1, 8)
  const topic = Buffer.concat([Buffer.of(QUORUM_TOPIC.length + 1), Buffer.from(QUORUM_TOPIC)])
  // Tags of the header; one topic; its one partition 0 with its tags; tags of the topic and of the request.
  const request = Buffer.concat([head, Buffer.of(0, 2), topic, Buffer.of(2, 0, 0, 0, 0, 0, 0, 0)])
  const size = Buffer.alloc(4)
  size.writeInt32BE(request.length)
  return Buffer.concat([size, request])
}

const leaderIn = (answer: Buffer): number => {
  // Size, correlation id, tags of the header.
  let at = 9
  const error = answer.readInt16BE(at)
  if (error !== 0) throw new Error(`DescribeQuorum failed with ${error}`)
  // The length of the list of topics, the name of the topic, the length of its list of partitions.
  at += 2 + 1 + 1 + QUORUM_TOPIC.length + 1
  const partitionError = answer.readInt16BE(at + 4)
  if (partitionError !== 0) throw new Error(`DescribeQuorum failed with ${partitionError}`)
  return answer.readInt32BE(at + 6)
}
