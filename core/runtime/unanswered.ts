/** The failure of a request to Kafka or Elasticsearch that a retry may mend. */

/** A lost connection, a timeout, an overload, a write block. `status`: of Elasticsearch; 0: no response. */
export class Unanswered extends Error {
  override name = 'Unanswered'
  readonly of: 'kafka' | 'elasticsearch'
  readonly status: number
  /** The message without the name of the service. */
  readonly why: string
  /**
   * @param type of the error, if it is about a single document or a block; of Kafka: the partitions that it is about
   * @param index which one, if it is known
   */
  constructor(of: 'kafka' | 'elasticsearch', status = 0, type?: string, index?: string) {
    const answer = [status, type, index && `index ${index}`].filter(part => part !== undefined).join(', ')
    const silent = of === 'kafka' && type !== undefined ? `does not answer for ${type}` : 'does not answer'
    const why = status === 0 ? silent : `answers ${answer}`
    super(`${of === 'kafka' ? 'Kafka' : 'Elasticsearch'} ${why}`)
    this.of = of
    this.status = status
    this.why = why
  }
}
