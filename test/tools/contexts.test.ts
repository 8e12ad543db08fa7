/** The inputs of commands, built from the environment. */
import { expect, test, vi } from 'vitest'
import { createContexts } from '../../tools/contexts.ts'

test('a signal ends the wait of an erasure', async () => {
  vi.stubEnv('ELASTICSEARCH_URL', 'http://elasticsearch:9200')
  await using stack = new AsyncDisposableStack()
  const stopping = new AbortController()
  const nothing = () => undefined
  const steps = { out: nothing, say: nothing, draw: undefined, stoppedBySignal: () => stopping.signal }
  const erasing = createContexts(stack, steps).erasing()
  await erasing.sleep(0)
  stopping.abort(new Error('stopped'))
  await expect(erasing.sleep(0)).rejects.toThrow('stopped')
})
