/**
 * What a started service lets its starter do. Both ways of running one (JVM process, Docker container) give the same,
 * so that a test of faults need not know which it has.
 */

/** The part of the environment that services are found and started with; a variable may be absent. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Tells a person what is being done, a line per step. */
export type Say = (line: string) => void

/** How far a long step is. `total` is an estimate that `done` never exceeds. */
export type Progress = (step: { readonly what: string; readonly done: number; readonly total: number }) => void

/** One running server. Its address stays the same for as long as the handle lives, whatever is done to the server. */
export type Service = {
  readonly name: string
  /** `host:port` for Kafka, an URL for Elasticsearch. */
  readonly address: string
  /** The process that runs now; undefined while none does, and always in Docker. */
  readonly pid: number | undefined
  /** Settles, with what is known about it, when the server ends without having been asked to. */
  readonly died: Promise<Error>
  /** Asks the server to end and waits until it has. Its data stays. */
  stop(): Promise<void>
  /** SIGKILL: as in a crash, without a last write. Its data stays. */
  kill(): Promise<void>
  /** SIGSTOP: connections stay open and nothing answers, until `thaw` lets it go on. */
  freeze(): Promise<void>
  thaw(): Promise<void>
  /** Starts it again, on the same data and address, and waits until it serves; one that still runs is stopped first. */
  restart(): Promise<void>
  /** Ends it for good and deletes its data. */
  [Symbol.asyncDispose](): Promise<void>
}

/** What can be chosen about one server. */
export type ServiceOptions = {
  /** Java heap, as in `512m` or `1g`. */
  readonly heap?: string
  /** More options of the Java machine. */
  readonly javaOptions?: readonly string[]
  /** The server's own settings, by its own names, over the defaults. */
  readonly settings?: Readonly<Record<string, string>>
}

/**
 * For servers that live for minutes: half the CPU time until they serve, but slower than they could be after a while.
 */
export const shortLived: ServiceOptions = { javaOptions: ['-XX:TieredStopAtLevel=1'] }
