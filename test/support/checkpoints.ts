/** The checkpoint of an organization now, from an API that has signed nothing yet. */
import { createSigningKey } from '../../core/runtime/index.ts'
import { recorded, serveApi } from './api.ts'
import type { Scope } from './scope.ts'

/**
 * Returns the signed lines without their time.
 * @param key of the organization
 * @param url of Elasticsearch; by default that of the test run
 */
export const checkpointNow = async (scope: Scope, prefix: string, key: string, url?: string): Promise<string[]> => {
  const checkpointKey = createSigningKey('api.example.com/checkpoints')
  const { ask } = await serveApi(scope, prefix, { checkpointKey, ...(url !== undefined && { url }) })
  const answer = await ask('/checkpoint', key)
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
  const [text = ''] = String(recorded(answer).note).split('\n\n')
  return text.split('\n').filter(line => !line.startsWith('time '))
}
