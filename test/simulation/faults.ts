/**
 * What can go wrong now, on the way to Elasticsearch and Kafka and in them, and how often: set by the schedule, and all
 * of it taken back when the faults end.
 */
import type { Random } from '../support/random.ts'

/** Probabilities, but for the three that are numbers. */
export type Knobs = {
  /** A request never arrives. */
  loseRequest: number
  /** It has its effect, and the answer never arrives. */
  loseAnswer: number
  /** It has its effect a second time, later. */
  twice: number
  /** The connection breaks at once, and the request arrives long after. */
  late: number
  /** It is answered 429 or 503 without an effect. */
  refuse: number
  /** An item of a bulk request is answered 429. */
  itemRefused: number
  /** A shard fails a refresh, or one of its documents cannot be read. */
  shardFails: number
  /** A bulk request of more than this many documents is answered 413; 0 for never. */
  bulkDocuments: number
  /** The answer to a multi-get of more than this many documents is longer than was asked for; 0 for never. */
  answerDocuments: number
  /** A request takes very long. */
  slow: number
  /** A request to Kafka fails, half of them after the effect. */
  kafkaFails: number
  /** The consumer fetches from elsewhere than where it was told to. */
  misplace: number
  /** An API process cannot read. */
  readFails: number
  /** Milliseconds that a request or an answer usually takes. */
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
  slow: 0,
  kafkaFails: 0,
  misplace: 0,
  readFails: 0,
  latency: 2,
}

export class Faults {
  readonly random: Random
  knobs: Knobs
  elasticsearch: 'well' | 'away' | 'frozen' = 'well'
  isBlocked = false
  kafkaIsAway = false
  /** Requests that nobody waits for any more, and that are still to arrive. */
  strays = 0

  constructor(random: Random, knobs: Knobs) {
    this.random = random
    this.knobs = knobs
  }

  happens(knob: Exclude<keyof Knobs, 'latency' | 'bulkDocuments' | 'answerDocuments'>): boolean {
    return this.knobs[knob] > 0 && this.random.chance(this.knobs[knob])
  }

  /** Milliseconds until something arrives: mostly short, sometimes much longer. */
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
