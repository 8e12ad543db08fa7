/** How a view reads: the client of its moment, read again when a change was published. */
import { createContext } from 'preact'
import { useContext, useEffect, useRef, useState } from 'preact/hooks'
import type { Change, Client } from '../../../client/src/index.ts'
import { isDecided } from '../refusals.ts'
import type { ViewAddress } from './address.ts'
import type { LiveState } from './feed.ts'
import { runInTurn, type Settled } from './run-in-turn.ts'
import { type Dated, readDated, type Session, upToOf } from './session.ts'

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
  /** Everything published up to this instant, since the page follows, was in `latest`. Undefined before an answer. */
  readonly latestUpTo: string | undefined
  readonly live: LiveState
  /** Every value that is shown says how old it is: the page says it of all of them. */
  readonly draw: Session['draw']
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

type Shown<Value> = Settled<Value> & {
  readonly upTo?: string | undefined
  readonly of?: Client
  readonly what?: string
}

/** `followed`: `latestUpTo` when it began. */
type Reading<Value> = Dated<Value> & { readonly followed: string | undefined }

/** @param what names everything that `read` depends on, beside the client */
export const useReading = <Value>(what: string, read: (client: Client) => Promise<Value>): ViewReading<Value> => {
  const { client, version, readAgain, draw, latestUpTo } = useReader()
  const [shown, setShown] = useState<Shown<Value>>({})
  const [isReading, setIsReading] = useState(true)
  const latest = useRef({ read, latestUpTo })
  latest.current = { read, latestUpTo }
  const turns = useRef<ReturnType<typeof runInTurn> | undefined>(undefined)

  useEffect(() => {
    const settle = (outcome: Settled<Reading<Value>>, isLast: boolean): void => {
      setShown(before => {
        const isSame = before.of === client && before.what === what
        return { ...next(isSame ? before : {}, outcome), of: client, what }
      })
      if (isLast) setIsReading(false)
    }
    const run = async (): Promise<Reading<Value>> => {
      const { read, latestUpTo: followed } = latest.current
      return { ...(await readDated(client, read)), followed }
    }
    const mine = runInTurn(run, settle)
    turns.current = mine
    return mine.end
  }, [client, what])
  // Changes can come faster than a reading ends: each of them is shown before the next one begins.
  useEffect(() => {
    setIsReading(true)
    turns.current?.want()
  }, [client, what, version])

  const isMine = shown.of === client && shown.what === what
  const { value, error, upTo } = isMine ? shown : {}
  useEffect(() => (upTo === undefined ? undefined : draw(upTo)), [upTo, draw])
  return { value, error, isReading: isReading || !isMine, again: readAgain }
}

/** A shown value stays beside an error that says nothing about it: the service does not answer now. */
const next = <Value>(before: Shown<Value>, { value: read, error }: Settled<Reading<Value>>): Shown<Value> => {
  if (read !== undefined) return { value: read.value, upTo: upToOf(read, before.upTo, read.followed) }
  return isDecided(error) ? { error } : { ...before, error }
}
