/** Follows the changes of the organization while the page shows now, and says when views must read again. */
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks'
import type { Change } from '../../../client/src/index.ts'
import { createFeed, type LiveState } from './feed.ts'
import type { ViewReader } from './reading.ts'
import type { Session } from './session.ts'

/** Milliseconds: the first change is shown soon. Under many changes, views read again this often at most. */
const SOON_MS = 200
const AGAIN_MS = 2_000
/** Of a moment: changes that came since are none of it. */
const NONE: Pick<Live, 'latest' | 'latestUpTo'> = { latest: [], latestUpTo: undefined }

type Live = Pick<ViewReader, 'live' | 'latest' | 'latestUpTo' | 'version' | 'readAgain' | 'round'>

export const useLive = (session: Session, isNow: boolean): Live => {
  const [live, setLive] = useState<LiveState>({ state: 'off' })
  const [told, setTold] = useState(NONE)
  const [version, setVersion] = useState(0)
  const [round, setRound] = useState(0)
  const readAgain = useCallback(() => setVersion(before => before + 1), [])
  const again = useMemo(() => readingAgain(readAgain), [readAgain])
  const feed = useMemo(() => {
    const onLatest = (latest: readonly Change[], latestUpTo: string | undefined): void => {
      setTold({ latest, latestUpTo })
      again.soon()
    }
    const onRound = (): void => {
      setRound(before => before + 1)
      again.soon()
    }
    return createFeed(session.clientUntil, { onLive: setLive, onLatest, onRound })
  }, [session, again])

  useEffect(() => {
    if (!isNow) return
    const stopping = new AbortController()
    void feed.follow(stopping.signal)
    return () => {
      stopping.abort()
      again.end()
      setLive({ state: 'off' })
    }
  }, [feed, again, isNow])
  return { live, ...(isNow ? told : NONE), version, readAgain, round }
}

const readingAgain = (read: () => void): { readonly soon: () => void; readonly end: () => void } => {
  let timer: ReturnType<typeof setTimeout> | undefined
  let shownAt = -AGAIN_MS
  return {
    soon: () => {
      if (timer !== undefined) return
      const wait = Math.max(SOON_MS, shownAt + AGAIN_MS - performance.now())
      timer = setTimeout(() => {
        timer = undefined
        shownAt = performance.now()
        read()
      }, wait)
    },
    end: () => {
      clearTimeout(timer)
      timer = undefined
    },
  }
}
