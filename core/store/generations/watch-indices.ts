/**
 * Watches the indices of a stream while it runs. In: its generation. Out: nothing, until the signal.
 * Promises: every IDENTIFY_INTERVAL_MS the indices are those that were recorded, with the mappings of this version and
 *   without a setting with which documents are lost, hidden or changed: others can change both at any time. A
 *   translog that was set to `async` is set back, and so is the index template without which Elasticsearch could create
 *   an index that was deleted. A line of the log tells of other settings, once while they last.
 * Can go wrong: as at a start. Elasticsearch does not answer, or an index has `blocks.metadata`: the check waits, and
 *   `/readyz` says so. It also names recorded shards whose ids two checks in a row do not find, or may not ask for.
 */
import { templateNameOf } from '../../../schemas/stored/documents.ts'
import type { FoundSetting } from '../../../schemas/stored/index-settings.ts'
import type { IndexDefinition } from '../../../schemas/stored/mappings.ts'
import type { GenerationBody } from '../../log/index.ts'
import { type Retrying, StopError } from '../../runtime/index.ts'
import { type Ask, type Elasticsearch, retryUntilAborted } from '../elasticsearch/client.ts'
import { IDENTIFY_INTERVAL_MS } from '../limits.ts'
import { checkIndex, inspectIndex, type TellSetting } from './check-index.ts'
import { keepTemplate } from './index-templates.ts'
import { MAY_NOT_ASK } from './indices.ts'
import { controlDefinition, indicesOf } from './prepare.ts'
import { keepIntact } from './recorded.ts'

type Watched = { readonly identity: GenerationBody; readonly prefix: string }

type WatchContext = Retrying & {
  readonly elasticsearch: Elasticsearch
  readonly fail: (error: unknown) => void
  readonly warn?: (details: Readonly<Record<string, string | number>>, message: string) => void
  readonly keepsTemplate?: boolean
}

export const watchIndices = async (
  { identity, prefix }: Watched,
  { elasticsearch, retryOptions, health, fail, warn = () => undefined, keepsTemplate }: WatchContext,
  signal: AbortSignal,
): Promise<void> => {
  const request: Ask = asked =>
    retryUntilAborted('watch', signal, { retryOptions, health }, () => elasticsearch.send(asked, signal))
  const tellShards = (generation: string, shards: string): void =>
    warn({ generation, shards }, 'shards are compared from now on: nobody knows whether they lost documents before')
  const part = { generation: identity.generation, name: 'elasticsearch shards' }
  let missingBefore: readonly string[] = []
  /** A shard that moves or starts has no id for a moment. */
  const tellMissing = (missing: readonly string[], mayAsk: boolean): void => {
    const lasting = missing.filter(shard => missingBefore.includes(shard))
    missingBefore = missing
    // Nobody takes back a reason that a stopped generation reports.
    if (!signal.aborted) health.set(part, lasting.length === 0 ? undefined : missingText(lasting, mayAsk))
  }
  const steps = { request, prefix, tellShards, tellMissing }
  let known = identity
  const [control, controlled] = controlDefinition(prefix)
  // Neither the number of shards nor that of copies is compared.
  const own = indicesOf(identity, { prefix, shards: 1 })
  const definitions = Object.entries({ [control]: controlled, ...own })
  const tell: TellSetting = ({ index, setting, expected, got, reason, put_back }) => {
    if (put_back) warn({ index, setting, expected, got, reason }, 'a setting of an index was put back')
  }
  /** By index, the settings of the look before that stop nothing. The start has told of those at the first look. */
  const toldOf = new Map<string, readonly string[]>()
  const tellNew = (index: string, found: readonly FoundSetting[]): void => {
    const told = toldOf.get(index)
    for (const { setting, expected, got, reason } of found)
      if (told?.includes(`${setting} ${got}`) === false)
        warn({ index, setting, expected, got, reason }, 'a setting of an index is not as expected')
    toldOf.set(
      index,
      found.map(({ setting, got }) => `${setting} ${got}`),
    )
  }
  let keptBefore: Awaited<ReturnType<typeof keepTemplate>>
  const keepGuarded = async (): Promise<void> => {
    const kept = await keepTemplate([control, ...Object.keys(own)], steps)
    if (kept === 'put back')
      warn({ template: templateNameOf(prefix) }, 'the index template of this prefix was put back')
    // Another process may have the right to put it back: it has one round for that.
    if (kept instanceof StopError && keptBefore instanceof StopError) throw kept
    keptBefore = kept
  }
  while (!signal.aborted) {
    await retryOptions.sleep(IDENTIFY_INTERVAL_MS, signal).catch(() => undefined)
    if (signal.aborted) return
    try {
      known = await keepIntact(known, Object.keys(own), steps)
      for (const [name, definition] of definitions) tellNew(name, await keepSafe(name, definition, request, tell))
      if (keepsTemplate) await keepGuarded()
    } catch (error) {
      if (!signal.aborted) fail(error)
    }
  }
}

const MISSING_NAMED = 3

const missingText = (shards: readonly string[], mayAsk: boolean): string => {
  const others = shards.length > MISSING_NAMED ? `, … (${shards.length} in all)` : ''
  const named = `${shards.slice(0, MISSING_NAMED).join(', ')}${others}`
  return mayAsk ? `Elasticsearch has no primary of ${named}` : `no id of ${named}: ${MAY_NOT_ASK}`
}

/** Returns the settings that stop nothing. @throws StopError `index_missing`, `index_unsuitable` */
const keepSafe = async (
  name: string,
  definition: IndexDefinition,
  request: Ask,
  tell: TellSetting,
): Promise<readonly FoundSetting[]> => {
  const found = await inspectIndex(name, definition, request)
  const harmless = found.filter(({ consequence }) => consequence !== 'put back or stop')
  if (harmless.length < found.length) await checkIndex(name, definition, request, tell)
  return harmless
}
