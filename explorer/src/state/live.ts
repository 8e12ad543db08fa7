/** Follows the changes of the organization while the page shows now, and says when views must read again. */
import { useEffect, useState } from 'preact/hooks'
import { type Change, RefusedError } from '../../../client/src/index.ts'
import { lastChangeOf } from './last-change.ts'
import type { LiveState } from './reading.ts'
import type { Session } from './session.ts'

/** Changes that the page remembers. */
const CHANGES_KEPT = 100
/** Milliseconds: the first change is shown soon. Under many changes, views read again this often at most. */
const SOON_MS = 200
const AGAIN_MS = 2_000
const PAUSE_MS = 5_000

type Live = { readonly live: LiveState; readonly latest: readonly Change[]; readonly version: number }

export const useLive = (session: Session, isNow: boolean): Live => {
  const [live, setLive] = useState<LiveState>({ state: 'off' })
  const [latest, setLatest] = useState<readonly Change[]>([])
  const [version, setVersion] = useState(0)

  useEffect(() => {
    if (!isNow) return
    const stopping = new AbortController()
    const { signal } = stopping
    let timer: ReturnType<typeof setTimeout> | undefined
    let shownAt = -AGAIN_MS
    const readAgain = (): void => {
      if (timer !== undefined) return
      const wait = Math.max(SOON_MS, shownAt + AGAIN_MS - performance.now())
      timer = setTimeout(() => {
        timer = undefined
        shownAt = performance.now()
        setVersion(before => before + 1)
      }, wait)
    }
    let after: string | null | undefined
    /** Ends only if the changes cannot be followed. */
    const follow = async (): Promise<'too far' | 'ended'> => {
      const client = session.clientUntil(signal)
      if (after === undefined) {
        const last = await lastChangeOf(client)
        if (last === 'too far') return 'too far'
        after = last
      }
      readAgain()
      setLive({ state: 'on' })
      for await (const change of client.follow({ startingAfter: after })) {
        after = change.id
        setLatest(before => [change, ...before].slice(0, CHANGES_KEPT))
        readAgain()
      }
      return 'ended'
    }
    const followForEver = async (): Promise<void> => {
      while (!signal.aborted) {
        const why = await follow().catch((error: unknown) => error)
        if (signal.aborted) return
        const isRefused = why instanceof RefusedError && (why.status === 401 || why.status === 403)
        setLive(isRefused ? { state: 'refused', why } : { state: why === 'too far' ? why : 'again' })
        if (isRefused || why === 'too far') return
        await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
      }
    }
    void followForEver()
    return () => {
      stopping.abort()
      clearTimeout(timer)
      setLive({ state: 'off' })
    }
  }, [session, isNow])
  return { live, latest, version }
}
