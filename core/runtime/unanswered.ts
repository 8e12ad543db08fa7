/** The failure of a request to Kafka or Elasticsearch that a retry may mend. */

/** A lost connection, a timeout, an overload, a write block. `status`: of Elasticsearch; 0: no response. */
export class Unanswered extends Error {
  override name = 'Unanswered'
  readonly of: 'kafka' | 'elasticsearch'
  readonly status: number
  /** @param type of the error, if it is about a single document or a block; @param index which one, if it is known */
  constructor(of: 'kafka' | 'elasticsearch', status = 0, type?: string, index?: string) {
    const service = of === 'kafka' ? 'Kafka' : 'Elasticsearch'
    const answer = [status, type, index && `index ${index}`].filter(part => part !== undefined).join(', ')
    super(status === 0 ? `${service} does not answer` : `${service} answers ${answer}`)
    this.of = of
    this.status = status
  }
}
