/** The handle on a started service: the same for Java processes and Docker containers, for fault tests of both. */

export type Environment = Readonly<Record<string, string | undefined>>

/** Prints one line for a person. */
export type Say = (line: string) => void

/** Reports the progress of a long step. `total` is an estimate that `done` never exceeds. */
export type ReportProgress = (step: { readonly what: string; readonly done: number; readonly total: number }) => void

/** One running server. Its address stays the same for the lifetime of the handle, also after restarts. */
export type Service = {
  readonly name: string
  /** `host:port` for Kafka, a URL for Elasticsearch. */
  readonly address: string
  /** The present process; undefined while none runs, and always in Docker. */
  readonly pid: number | undefined
  /** The directory of its data; undefined in Docker, and for several nodes. */
  readonly folder: string | undefined
  /** The servers of a cluster; undefined for a single server. */
  readonly nodes?: readonly Service[]
  /** Resolves, with a description, when the server ends without a request. */
  readonly died: Promise<Error>
  /** Stops the server gracefully and waits for its end. Its data stays. */
  stop(): Promise<void>
  /** SIGKILL, as in a crash: no last write. Its data stays. */
  kill(): Promise<void>
  /** SIGSTOP: connections stay open and nothing answers, until `thaw`. */
  freeze(): Promise<void>
  thaw(): Promise<void>
  /** Stops the server if it runs, starts it with the same data and address, and waits until it serves. */
  restart(): Promise<void>
  /** Kills the server and deletes its data. */
  [Symbol.asyncDispose](): Promise<void>
}

/** Options of one server. */
export type ServiceOptions = {
  /** Java heap, such as `512m` or `1g`. */
  readonly heap?: string
  /** More JVM options. */
  readonly javaOptions?: readonly string[]
  /** Settings of the server by their own names. They replace the defaults. */
  readonly settings?: Readonly<Record<string, string>>
}

/** For servers that live for minutes: half the CPU time until they serve, but less speed in the long run. */
export const shortLived: ServiceOptions = { javaOptions: ['-XX:TieredStopAtLevel=1'] }
