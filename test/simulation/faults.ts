/** The active faults of Elasticsearch, Kafka and the network. The schedule sets them; `end` clears them. */
import type { Random } from '../support/random.ts'

/** Probabilities, except `latency`, `bulkDocuments` and `answerDocuments`. */
export type Knobs = {
  loseRequest: number
  /** A request has its effect, but the answer never arrives. */
  loseAnswer: number
  /** A request has its effect a second time, later. */
  twice: number
  /** The connection breaks at once, and the request arrives long after. */
  late: number
  /** A request is answered 429, 502 or 503 without an effect. */
  refuse: number
  /** An item of a bulk request is answered 429. */
  itemRefused: number
  /** A shard fails in a refresh, a multi-get or the cluster health. */
  shardFails: number
  /** A bulk request of more documents than this is answered 413; 0 for never. */
  bulkDocuments: number
  /** A multi-get of more documents than this fails, because its answer is too long; 0 for never. */
  answerDocuments: number
  /** A document is read from a copy that the cluster has removed already, without its last write. */
  oldCopy: number
  slow: number
  /** A request to Kafka fails, in half of the cases after its effect. */
  kafkaFails: number
  /** The consumer fetches from another offset than the one it should. */
  misplace: number
  /** A consumer that joins its group again fetches on meanwhile. */
  fetchesOn: number
  /** The ends of a topic are told some time after they were read. */
  endsLate: number
  /** A new leader says that the log ends before the record that is read without a group. */
  leaderBehind: number
  /** A read of an API process fails, or one of its shards does. */
  readFails: number
  /** Average milliseconds that a request or an answer takes. */
  latency: number
}

export const CALM: Knobs = {
  loseRequest: 0,
  loseAnswer: 0,
  twice: 0,
  late: 0,
  refuse: 0,
  itemRefused: 0,
  shardFails: 0,
  bulkDocuments: 0,
  answerDocuments: 0,
  oldCopy: 0,
  slow: 0,
  kafkaFails: 0,
  misplace: 0,
  fetchesOn: 0,
  endsLate: 0,
  leaderBehind: 0,
  readFails: 0,
  latency: 2,
}

export class Faults {
  readonly random: Random
  knobs: Knobs
  elasticsearch: 'well' | 'away' | 'frozen' = 'well'
  isBlocked = false
  kafkaIsAway = false
  /** Requests that are still to arrive although nobody waits for them. */
  strays = 0

  constructor(random: Random, knobs: Knobs) {
    this.random = random
    this.knobs = knobs
  }

  happens(knob: Exclude<keyof Knobs, 'latency' | 'bulkDocuments' | 'answerDocuments'>): boolean {
    return this.knobs[knob] > 0 && this.random.chance(this.knobs[knob])
  }

  /** Returns milliseconds until a message arrives: mostly short, sometimes much longer. */
  delay(): number {
    const usual = -Math.log(1 - this.random.next()) * this.knobs.latency
    return this.happens('slow') ? usual + this.random.next() * 4_000 : usual
  }

  end(): void {
    this.knobs = CALM
    this.elasticsearch = 'well'
    this.isBlocked = false
    this.kafkaIsAway = false
  }
}
