/** Records that keep coming while something else happens to who must take them. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Outgoing } from './events.ts'
import type { Scope } from './scope.ts'
import type { Topics } from './topics.ts'

/** Between two parts: a load, and not all that this machine can publish, which it would have to project as well. */
const PAUSE_MS = 100

/** Publishes part after part until it is stopped, or the scope ends. */
export const keepPublishing = (scope: Scope, topics: Topics, next: () => readonly Outgoing[]) => {
  let going = true
  const publishing = (async (): Promise<void> => {
    while (going) {
      await topics.publish(next())
      await pause(PAUSE_MS)
    }
  })()
  // Who stops it hears of a failure; a test that failed before has its own.
  publishing.catch(() => undefined)
  const stop = async (): Promise<void> => {
    going = false
    await publishing
  }
  scope.onTestFinished(async () => {
    going = false
  })
  return { stop }
}
