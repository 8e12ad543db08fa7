/** Publishes records continuously while a fault happens. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Outgoing } from './events.ts'
import type { Scope } from './scope.ts'
import type { Topics } from './topics.ts'

/** Pause between two parts. Without it, the projector would get more records than it can project in time. */
const PAUSE_MS = 100

/** Publishes part after part until `stop` or the end of the scope. */
export const keepPublishing = (scope: Scope, topics: Topics, next: () => readonly Outgoing[]) => {
  let going = true
  const publishing = (async (): Promise<void> => {
    while (going) {
      await topics.publish(next())
      await pause(PAUSE_MS)
    }
  })()
  // `stop` rejects after a failure. A test that failed before has its own error.
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
