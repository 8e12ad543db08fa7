/**
 * `commission keys`: makes, lists and revokes API keys. A key is an event in the topic of API keys; the API reads the
 * documents that the projector makes of it.
 * Promises: the text of a key is shown once and stored nowhere; a success is reported only after the projection has it.
 */
import { randomUUID } from 'node:crypto'
import type { Admin } from 'kafkajs'
import {
  adviceOfHidden,
  connectAdmin,
  connectProducer,
  endOfPartition,
  fetchEnds,
  textOfHidden,
  withRight,
} from '../../core/log/index.ts'
import { type Coverage, getEach, multiGet, type SearchAnswer } from '../../core/store/index.ts'
import type { ApiKeyEvent } from '../../schemas/events.ts'
import { KEYS_PARTITION } from '../../schemas/partition.ts'
import {
  type ApiKeyDocument,
  type ApiKeyHeadDocument,
  apiKeysIndexOf,
  recordId,
} from '../../schemas/stored/documents.ts'
import { type Address, layoutOfKeys } from '../../schemas/stored/layout.ts'
import type { KeyPermission } from '../../schemas/values.ts'
import type { ClusterContext, CommandContext } from '../context.ts'
import { assertOwnIndices, assertRefreshed, wholeAnswer } from '../documents/shards.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { positionsOf, servedPositionsOf } from '../generations/generations.ts'
import { KEYS_PAGE } from '../limits.ts'
import {
  assertAppended,
  assertSameSourceAndRules,
  type Live,
  type LiveStream,
  recordedLive,
  waitUntilPublished,
  waitUntilReadable,
} from '../live.ts'
import { readParked } from '../parked/find.ts'
import { aligned, printable } from '../terminal.ts'
import { newKeyId, newKeyText, publishedOf } from './key-text.ts'

export type CreateKeyOptions = {
  readonly org: string
  readonly name: string
  readonly permissions: KeyPermission[]
  /** An instant; null for a key that does not expire. */
  readonly expiresAt: string | null
  /** In CIDR notation; null for a key that works from everywhere. */
  readonly networks: string[] | null
  readonly waitSeconds: number
  readonly json: boolean
}

export const createKey = async (options: CreateKeyOptions, context: ClusterContext): Promise<ExitCode> => {
  await createAndTell(options, context)
  context.say('The API accepts it now.')
  return exitCodes.done
}

/** Makes a key and shows its text. @param replaces the key that it is made instead of. @returns its id */
export const createAndTell = async (
  options: CreateKeyOptions,
  context: ClusterContext,
  replaces?: string,
): Promise<string> => {
  const { org, name, permissions, expiresAt, networks, waitSeconds, json } = options
  assertLater(expiresAt, context.now())
  const text = newKeyText()
  const id = newKeyId()
  const created_at = new Date(context.now()).toISOString()
  const expiry = expiresAt === null ? {} : { expires_at: expiresAt }
  const limits = { ...expiry, ...(networks !== null && { allowed_networks: networks }) }
  const data = { org_id: org, id, name, ...publishedOf(text), permissions, created_at, ...limits }
  // Shown as soon as Kafka has it, before the projector has: it cannot be shown again, whatever happens next.
  const publish = await preparePublish(context, live => assertUnderstood(live['api-keys'].identity, options))
  const advice = `The API accepts ${id} when the projector has caught up: do not make another one`
  await publish({ type: 'commission.api_key.created.v1', data }, waitSeconds, advice, () => {
    const made = { id, org_id: org, name, permissions, expires_at: expiresAt, allowed_networks: networks, key: text }
    context.out(json ? `${JSON.stringify({ ...made, ...(replaces !== undefined && { replaces }) })}\n` : `${text}\n`)
    context.say(`made ${id} of ${org}. This is the only time that its text is shown.`)
  })
  if (networks !== null) await assertStored(org, id, context)
  return id
}

const assertLater = (expiresAt: string | null, now: number): void => {
  if (expiresAt === null || Date.parse(expiresAt) > now) return
  throw new CommandError(`--expires-at: expected an instant after ${new Date(now).toISOString()}, got ${expiresAt}`)
}

/** @throws CommandError if a projector of an older version ignored the networks of the key */
const assertStored = async (org: string, id: string, context: CommandContext): Promise<void> => {
  const key = (await findKeys(org, context)).find(known => known.id === id)
  if (key === undefined || key.revoked || key.allowed_networks !== null) return
  throw new CommandError(
    `the projector is of an older version and ignored --network: ${id} works from everywhere. ` +
      `Revoke it now: npx commission keys revoke --org ${org} --id ${id}`,
  )
}

/** @throws CommandError if the projection would park the key, or ignore its expiry */
const assertUnderstood = (
  { rules_version }: Live['api-keys']['identity'],
  { permissions, expiresAt, networks }: Pick<CreateKeyOptions, 'permissions' | 'expiresAt' | 'networks'>,
): void => {
  if (rules_version !== 1) return
  if (expiresAt === null && networks === null && permissions.every(permission => permission === 'read')) return
  const detail =
    'version 1 of the rules decides about API keys here: it knows the permission read only, no expiry and no networks'
  throw new CommandError(`${detail}; docs/generations.md says how to raise it (npx commission projection upgrade-keys)`)
}

export type RevokeKeyOptions = {
  readonly org: string
  readonly id: string
  readonly waitSeconds: number
  readonly json: boolean
}

export const revokeKey = async (
  { org, id, waitSeconds, json }: RevokeKeyOptions,
  context: ClusterContext,
): Promise<ExitCode> => {
  const tell = (was_revoked: boolean, line: string): ExitCode => {
    if (json) context.out(`${JSON.stringify({ id, org_id: org, was_revoked })}\n`)
    context.say(line)
    return exitCodes.done
  }
  const publish = await preparePublish(context)
  const read = () => headOf(org, id, context)
  // The event that made the key may be behind the projection. A revocation of a known key waits for nothing.
  const head = (await read()) ?? (await untilAllProjected(waitSeconds, context).then(read))
  if (head === undefined) {
    await assertKeysReadable('Nothing was revoked', context)
    throw new CommandError(`${org} has no key ${id} (npx commission keys list --org ${org})`)
  }
  if (head.body.revoked_seq !== null) return tell(true, `${id} of ${org} was revoked before.`)
  const revoked_at = new Date(context.now()).toISOString()
  const advice = `${id} is revoked when the projector has caught up: until then the API accepts it`
  await publish({ type: 'commission.api_key.revoked.v1', data: { org_id: org, id, revoked_at } }, waitSeconds, advice)
  return tell(false, `revoked ${id} of ${org}. Within 5 s every API refuses it.`)
}

export type ListKeysOptions = {
  readonly org: string
  /** The time of the last use by key id; undefined: the list does not say when a key was used. */
  readonly uses?: ReadonlyMap<string, string> | undefined
  readonly json: boolean
}

export const listKeys = async ({ org, uses, json }: ListKeysOptions, context: CommandContext): Promise<ExitCode> => {
  await assertKeysReadable(undefined, context)
  const keys = await findKeys(org, context)
  const useOf = ({ id }: KeyListed) => uses?.get(id) ?? null
  if (json)
    for (const key of keys) context.out(`${JSON.stringify({ ...key, ...(uses && { last_used_at: useOf(key) }) })}\n`)
  else {
    const rows = keys.map(key => {
      const use = uses ? [useOf(key) ?? 'no use in the audit log'] : []
      return [key.id, permissionsText(key, context.now()), ...use, printable(key.name ?? '')]
    })
    if (rows.length > 0) context.out(`${aligned(rows)}\n`)
  }
  if (!json) context.say(`${keys.length} keys of ${org}`)
  return exitCodes.done
}

const permissionsText = ({ permissions, expires_at, allowed_networks, revoked }: KeyListed, now: number): string => {
  if (revoked) return 'revoked'
  const part = permissions.length > 0 ? `may ${permissions.join(', ')}` : 'may nothing'
  const may = allowed_networks === null ? part : `${part} from ${allowed_networks.join(', ')}`
  if (expires_at === null) return may
  return Date.parse(expires_at) > now ? `${may} until ${expires_at}` : `expired at ${expires_at}`
}

export type KeyListed = {
  readonly id: string
  readonly org_id: string
  /** null for a key that version 1 of the rules decided: it stored no names. */
  readonly name: string | null
  readonly permissions: readonly string[]
  readonly expires_at: string | null
  /** null for a key that works from everywhere. */
  readonly allowed_networks: readonly string[] | null
  readonly revoked: boolean
}

/**
 * A restored copy has keys that were revoked since as keys in force, until all events of keys are read again.
 * @param refusal as of `assertOwnIndices`
 * @throws as `assertOwnIndices`; CommandError while the events are read again
 */
export const assertKeysReadable = async (refusal: string | undefined, context: CommandContext): Promise<void> => {
  // A user that may only make keys has no right on the indices of events.
  const { identity } = (await recordedLive(context.send, context.prefix))['api-keys']
  await assertOwnIndices(identity, refusal, context)
  await servedPositionsOf(identity, context)
}

/** Returns all keys of an organization by id. */
export const findKeys = async (org: string, context: CommandContext): Promise<KeyListed[]> =>
  (await findKeyEvents(org, context)).map(({ key }) => key)

/** A key, and the offsets of its events. `revokedAt`: null for a key that is not revoked. */
export type KeyEvents = {
  readonly key: KeyListed
  readonly createdAt: number
  readonly revokedAt: number | null
}

/** Returns all keys of an organization by id, with the offsets of their events in the topic of API keys. */
export const findKeyEvents = async (
  org: string,
  { send, prefix }: Pick<CommandContext, 'send' | 'prefix'>,
): Promise<KeyEvents[]> => {
  const _index = apiKeysIndexOf(prefix)
  // Only operators search this index, so the command refreshes it.
  assertRefreshed('the keys', await send<Coverage>({ method: 'POST', path: `/${_index}/_refresh` }))
  const query = { allow_partial_search_results: false }
  const found: ApiKeyDocument[] = []
  for (let isLast = false; !isLast; ) {
    const body = searchOf(org, found.at(-1)?.key_id)
    const request = { method: 'POST', path: `/${_index}/_search`, query, body } as const
    const answer = await send<SearchAnswer<{ readonly _source: ApiKeyDocument }>>(request)
    const { hits } = wholeAnswer('the keys', answer).hits
    for (const { _source } of hits) found.push(_source)
    isLast = hits.length < KEYS_PAGE
  }
  const heads = await readHeads(found, prefix, send)
  return found.map(({ key_id, org_id, permissions, revoked, body }, index) => ({
    key: {
      id: key_id,
      org_id,
      name: heads[index]?.name ?? null,
      permissions: body.within?.permissions ?? body.permissions ?? permissions,
      expires_at: body.expires_at ?? null,
      allowed_networks: body.within?.networks ?? null,
      revoked,
    },
    createdAt: body.created_seq,
    revokedAt: heads[index]?.revoked_seq ?? null,
  }))
}

const headAddressOf = (org: string, id: string, prefix: string): Address =>
  layoutOfKeys(prefix).addressOf('api-keys', recordId(org, id))

const readHeads = async (
  found: readonly ApiKeyDocument[],
  prefix: string,
  send: CommandContext['send'],
): Promise<(ApiKeyHeadDocument['body'] | undefined)[]> => {
  const docs = found.map(({ org_id, key_id }) => headAddressOf(org_id, key_id, prefix))
  const heads = await getEach(docs, part => multiGet<ApiKeyHeadDocument>(send, part))
  return heads.map(head => (head.found ? head._source.body : undefined))
}

/** @param after the last id of the page before: an organization has an id once */
const searchOf = (org: string, after: string | undefined): object => ({
  size: KEYS_PAGE,
  track_total_hits: false,
  ...(after !== undefined && { search_after: [after] }),
  sort: [{ key_id: 'asc' }],
  query: { bool: { filter: [{ term: { org_id: org } }, { exists: { field: 'key_id' } }] } },
})

const headOf = async (
  org: string,
  id: string,
  { send, prefix }: CommandContext,
): Promise<ApiKeyHeadDocument | undefined> => {
  const [found] = await multiGet<ApiKeyHeadDocument>(send, [headAddressOf(org, id, prefix)])
  return found?.found ? found._source : undefined
}

/**
 * Waits until the documents have every event of keys that is published now: without it a key that was revoked can look
 * valid.
 * @throws CommandError after `waitSeconds`, and while an open transaction hides events; also as `preparePublish`
 */
export const untilAllProjected = async (waitSeconds: number, context: ClusterContext): Promise<void> => {
  await using stack = new AsyncDisposableStack()
  const { stream, admin } = await openTopic(await recordedLive(context.send, context.prefix), stack, context)
  const { ends, hidden } = await waitUntilReadable(stream.identity, { ...context, admin })
  const why = textOfHidden(stream.identity.topic, hidden)
  if (why !== undefined) {
    const what = `${why}: they may hide that a key was made or revoked. Nothing was published`
    throw new CommandError(`${what}. ${adviceOfHidden(hidden)}, and run the same command again (docs/keys.md)`)
  }
  const advice = 'Nothing was published. Run the same command again then'
  const wanted = new Map([[KEYS_PARTITION, ends[KEYS_PARTITION] ?? 0]])
  await waitUntilPublished(stream, wanted, waitSeconds, { ...context, advice })
}

type Publish = (event: ApiKeyEvent, waitSeconds: number, advice: string, onStored?: () => void) => Promise<void>

/**
 * Returns the function that publishes, after a check that the projection is made from this topic, as it is now. Behind
 * an open transaction it publishes, too: a revocation must be in the log as soon as possible.
 */
const preparePublish = async (
  context: ClusterContext,
  check: (live: Live) => void = () => undefined,
): Promise<Publish> => {
  const live = await recordedLive(context.send, context.prefix)
  check(live)
  await using stack = new AsyncDisposableStack()
  const { stream, end } = await openTopic(live, stack, context)

  return async (event, waitSeconds, advice, onStored = () => undefined) => {
    await using stack = new AsyncDisposableStack()
    const { topic } = stream.identity
    const admin = await connectAdmin(context.kafka, stack)
    const producer = await withRight('Write', `topic ${topic}`, connectProducer(context.kafka, stack))
    const sent = producer.send({ topic, acks: -1, messages: [kafkaMessageOf(event, context.now())] })
    const [answer] = await withRight('Write', `topic ${topic}`, sent)
    onStored()
    const offset = Number(answer?.baseOffset)
    if (!Number.isSafeInteger(offset)) throw new CommandError('Kafka did not say where it put the event; look at list')
    assertAppended(topic, KEYS_PARTITION, offset, end)
    await waitUntilPublished(stream, new Map([[KEYS_PARTITION, offset + 1]]), waitSeconds, {
      ...context,
      admin,
      advice,
    })
    const [parked] = await readParked(context.send, live, [{ topic, partition: KEYS_PARTITION, offset }])
    if (parked) throw new CommandError(`the projector refused it as ${parked.fields.code}`)
    // The topic may have lost the event since, and others have come in its place.
    const head = await headOf(event.data.org_id, event.data.id, context)
    if (isDone(event, head)) return
    throw new CommandError(`${topic} has lost the event, which was at offset ${offset}. Run the same command again`)
  }
}

/** Whether the documents of a key have its event. */
const isDone = ({ type }: ApiKeyEvent, head: ApiKeyHeadDocument | undefined): boolean =>
  head !== undefined && (type === 'commission.api_key.created.v1' || head.body.revoked_seq !== null)

/**
 * Returns the stream of keys and the stable end of its topic.
 * @throws if another topic is projected, or it lost events
 */
const openTopic = async (
  live: Live,
  stack: AsyncDisposableStack,
  context: ClusterContext,
): Promise<{ readonly stream: LiveStream; readonly admin: Admin; readonly end: number }> => {
  const stream = live['api-keys']
  const admin = await connectAdmin(context.kafka, stack)
  await assertSameSourceAndRules(stream, { ...context, admin })
  return { stream, admin, end: await endWithNothingLost(stream, admin, context) }
}

/**
 * Returns the end of the topic. The projector reads no event that Kafka puts before its position, and a key that a lost
 * event revoked is still revoked in the documents.
 * @throws CommandError if the topic ends before the position
 */
const endWithNothingLost = async ({ identity }: LiveStream, admin: Admin, context: ClusterContext): Promise<number> => {
  const position = (await positionsOf(identity, context))[KEYS_PARTITION] ?? 0
  const end = endOfPartition(KEYS_PARTITION, await fetchEnds(admin, identity.topic))
  if (end >= position) return end
  const what = `${identity.topic} ends at ${end}, before ${position}: it has lost events that are projected`
  throw new CommandError(`${what}. Run npx commission projection adopt (docs/archive.md), then the same again`)
}

const kafkaMessageOf = ({ type, data }: ApiKeyEvent, now: number) => ({
  key: data.org_id,
  partition: KEYS_PARTITION,
  value: JSON.stringify(data),
  headers: {
    ce_specversion: '1.0',
    ce_id: randomUUID(),
    ce_type: type,
    ce_source: '/commission/keys',
    ce_time: new Date(now).toISOString(),
    'content-type': 'application/json',
  },
})
