/** How a view reads: the client of its moment, read again when a change was published. */
import { createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import type { Change, Client } from '../../../client/src/index.ts'
import type { ViewAddress } from './address.ts'

/** How the page follows changes. `refused` has the reason why it does not. */
export type LiveState =
  | { readonly state: 'off' | 'on' | 'again' }
  | { readonly state: 'refused'; readonly why: unknown }

export type ViewReader = {
  /** As of the moment of the address. */
  readonly client: Client
  readonly address: ViewAddress
  /** Counts the times that changes came: views read again. */
  readonly version: number
  /** The changes since the page follows, newest first. */
  readonly latest: readonly Change[]
  readonly live: LiveState
}

export const ReaderContext = createContext<ViewReader | undefined>(undefined)

/** @throws outside a session: then no view is shown */
export const useReader = (): ViewReader => {
  const reader = useContext(ReaderContext)
  if (reader === undefined) throw new Error('a view needs a session')
  return reader
}

export type ViewReading<Value> = {
  /** Absent while nothing was read. Stays while it is read again. */
  readonly value: Value | undefined
  readonly error: unknown
  readonly isReading: boolean
  readonly again: () => void
}

type Outcome<Value> = { readonly value?: Value; readonly error?: unknown }

/** @param what names everything that `read` depends on, beside the client */
export const useReading = <Value>(what: string, read: (client: Client) => Promise<Value>): ViewReading<Value> => {
  const { client, version } = useReader()
  const [attempt, setAttempt] = useState(0)
  const [outcome, setOutcome] = useState<Outcome<Value> & { readonly of?: Client; readonly what?: string }>({})
  const [isReading, setIsReading] = useState(true)
  // `version` and `attempt` are not read: a new one reads again.
  useEffect(() => {
    let isCurrent = true
    setIsReading(true)
    const settle = (settled: Outcome<Value>): void => {
      if (!isCurrent) return
      setOutcome({ ...settled, of: client, what })
      setIsReading(false)
    }
    read(client).then(
      value => settle({ value }),
      error => settle({ error }),
    )
    return () => {
      isCurrent = false
    }
  }, [client, what, version, attempt])

  const isMine = outcome.of === client && outcome.what === what
  const { value, error } = isMine ? outcome : {}
  return { value, error, isReading: isReading || !isMine, again: () => setAttempt(attempt + 1) }
}
