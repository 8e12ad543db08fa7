/** A request of Kafka's protocol that this project encodes itself, in the form that kafkajs sends. */

export type ProtocolRequest<Answer> = {
  readonly request: {
    readonly apiKey: number
    readonly apiVersion: number
    readonly apiName: string
    readonly encode: () => Promise<unknown>
  }
  readonly response: {
    readonly decode: (bytes: Buffer) => Promise<Answer>
    readonly parse: (answer: Answer) => Promise<Answer>
  }
}

/** kafkajs's connections to a broker. */
export type ProtocolConnections = { send<Answer>(request: ProtocolRequest<Answer>): Promise<Answer> }
