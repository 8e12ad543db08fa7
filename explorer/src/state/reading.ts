/** How a view reads: the client of its moment, read again when a change was published. */
import { createContext } from 'preact'
import { useContext, useEffect, useRef, useState } from 'preact/hooks'
import type { Change, Client } from '../../../client/src/index.ts'
import { isDecided } from '../refusals.ts'
import type { ViewAddress } from './address.ts'
import type { LiveState } from './feed.ts'
import { runInTurn, type Settled } from './run-in-turn.ts'

export type ViewReader = {
  /** As of the moment of the address. */
  readonly client: Client
  /** As of now, whatever the address says. */
  readonly now: Client
  readonly address: ViewAddress
  /** Counts the times that changes came, or that somebody asked: views read again. */
  readonly version: number
  /** Reads all that is shown again: amounts that stand together are of one time. */
  readonly readAgain: () => void
  /** Counts the times that the page followed anew: what was remembered before can be of another generation. */
  readonly round: number
  /** The changes since the page follows, newest first. None as of a moment. */
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

type Shown<Value> = Settled<Value> & { readonly of?: Client; readonly what?: string }

/** @param what names everything that `read` depends on, beside the client */
export const useReading = <Value>(what: string, read: (client: Client) => Promise<Value>): ViewReading<Value> => {
  const { client, version, readAgain } = useReader()
  const [shown, setShown] = useState<Shown<Value>>({})
  const [isReading, setIsReading] = useState(true)
  const latest = useRef(read)
  latest.current = read
  const turns = useRef<ReturnType<typeof runInTurn<Value>> | undefined>(undefined)

  useEffect(() => {
    const settle = (outcome: Settled<Value>, isLast: boolean): void => {
      setShown(before => ({ ...kept(before, client, what, outcome), ...outcome, of: client, what }))
      if (isLast) setIsReading(false)
    }
    const mine = runInTurn(async () => latest.current(client), settle)
    turns.current = mine
    return mine.end
  }, [client, what])
  // Changes can come faster than a reading ends: each of them is shown before the next one begins.
  useEffect(() => {
    setIsReading(true)
    turns.current?.want()
  }, [client, what, version])

  const isMine = shown.of === client && shown.what === what
  const { value, error } = isMine ? shown : {}
  return { value, error, isReading: isReading || !isMine, again: readAgain }
}

/** A shown value stays beside an error that says nothing about it: the service does not answer now. */
const kept = <Value>(before: Shown<Value>, client: Client, what: string, { error }: Settled<Value>): Shown<Value> => {
  const isSame = before.of === client && before.what === what && before.value !== undefined
  return error !== undefined && isSame && !isDecided(error) ? { value: before.value as Value } : {}
}
