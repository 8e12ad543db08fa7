/** The client: every list and every record of the API, typed, for one API key. */
import createFetchClient from 'openapi-fetch'
import { keepingAnswers } from './entity-tags.ts'
import { createList, createListOfIds, type List, type Page } from './list.ts'
import type { components, paths } from './openapi.ts'
import { RefusedError } from './refused.ts'
import { pause, retrying, type Send } from './retry.ts'

type Schemas = components['schemas']
export type Rep = Schemas['Rep']
export type Period = Schemas['Period']
export type Payout = Schemas['Payout']
export type PayoutStep = Schemas['PayoutStep']
export type Statement = Schemas['Statement']
export type PayrollRecord = Schemas['PayrollRecord']
export type Change = Schemas['Change']
export type Totals = Schemas['Totals']
export type SignedCheckpoint = Schemas['Checkpoint']
export type Total = Schemas['Total']

export type ClientOptions = {
  /** The address of the API with its path: `https://example.com/api/v1`. */
  readonly baseUrl: string
  readonly key: string
  /** The global `fetch` by default. */
  readonly fetch?: Send
  /** Milliseconds that a request may take with all its retries; 120,000 by default. */
  readonly timeoutMs?: number
  /** Ends all requests of the client. */
  readonly signal?: AbortSignal
  /** Characters of answers that are kept with their entity tags; 8 Mi by default, 0 keeps none. */
  readonly keptCharacters?: number
}

export type ListOptions = {
  /** Records of a page: 1 to 200; 200 by default. */
  readonly limit?: number
  /** Continues after a cursor. Null means the beginning: `last_change_id` is null while there is no change. */
  readonly startingAfter?: string | null
}
/** Selects the records of one rep, of one period, or of both. Null is an error: it would select all. */
export type Filter = { readonly repId?: string; readonly periodId?: string }
/**
 * With a deal: only payouts that have a line of it, in changes nothing else, and in totals only its lines.
 * A replacement without the deal does not come: ask `totals`, or follow by rep and period.
 */
export type DealFilter = Filter & { readonly dealId?: string }
/** In place of `startingAfter`: begins after the change with this `sequence`; 0 is the beginning. */
export type ChangesAfter = { readonly after?: number }

/**
 * Reads the records with these ids in place of the list, in this order, each once: replaced payouts too. Those that the
 * API does not know are left out. There may be any number of them.
 */
export type ByIds = { readonly ids: readonly string[] } & {
  readonly [Name in keyof (ListOptions & DealFilter)]?: never
}
/** A list, or records by their ids. */
type ListOrIds<Options> = (Options & { readonly ids?: undefined }) | ByIds

/** Reads an organization: as it is now, or as of a moment. Amounts, instants and dates are texts. */
export type Client = {
  readonly reps: (options?: ListOrIds<ListOptions>) => List<Rep>
  readonly periods: (options?: ListOrIds<ListOptions>) => List<Period>
  /**
   * Current payouts only. If a payout is replaced during a walk of now, the walk can return it and its replacement: for
   * sums, walk `asOf` one moment.
   */
  readonly payouts: (options?: ListOrIds<ListOptions & DealFilter>) => List<Payout>
  readonly payrollRecords: (options?: ListOrIds<ListOptions & Filter>) => List<PayrollRecord>
  /** One entry for each applied event, in order. */
  readonly changes: (options?: ListOptions & DealFilter & ChangesAfter) => List<Change>
  /** The changes that were published after an instant (RFC 3339) that is over. */
  readonly changesSince: (instant: string, options?: Omit<ListOptions, 'startingAfter'> & DealFilter) => List<Change>
  /** `changes` for ever: waits for the next one. Ends when the loop is left, or with the signal of the client. */
  readonly follow: (options?: ListOptions & DealFilter) => AsyncIterable<Change>
  /** All payouts of the same rep and period, oldest first, each with its difference to the one before. */
  readonly history: (payoutId: string, options?: ListOptions) => List<PayoutStep>
  readonly rep: (id: string) => Promise<Rep>
  readonly period: (id: string) => Promise<Period>
  readonly payout: (id: string) => Promise<Payout>
  /** The payout with every step of its calculation. */
  readonly statement: (id: string) => Promise<Statement>
  readonly payrollRecord: (id: string) => Promise<PayrollRecord>
  /**
   * Amounts owed, paid and open, by period and currency: of all reps and periods, or of one. With a deal: no such rows,
   * and in `line_totals` the sums of its lines in current payouts, by category too.
   */
  readonly totals: (options?: DealFilter) => Promise<Totals>
  /** A signed digest of all changes, of now: `prove` of a copy reads it, and `readCheckpoint`. */
  readonly checkpoint: () => Promise<SignedCheckpoint>
  /** The same client as of a moment: just after a change, or an instant (RFC 3339) that is over. */
  readonly asOf: (moment: Pick<Change, 'id'> | string) => Client
  /** The same client, with the same kept answers: its requests end with this signal, too, with its reason. */
  readonly until: (signal: AbortSignal) => Client
  /** The same client, with the same kept answers: it also hands over the `Projection-Time` of each answer with one. */
  readonly noting: (onTime: (projectionTime: string) => void) => Client
}

/** Longest wait for the next change, in seconds: proxies often end a silent connection after a minute. */
const WAIT_SECONDS_MAX = 30

/**
 * @throws (all its reads) RefusedError; TypeError or TimeoutError if the connection fails, or answers are not whole,
 * until `timeoutMs` is over
 */
export const createClient = (options: ClientOptions): Client => {
  const { baseUrl, key, timeoutMs = 120_000, signal, keptCharacters = 8 * 1024 * 1024 } = options
  const keeping = keepingAnswers(keptCharacters)
  // At most half the time of a request, so that the answer comes in time. With 0, `follow` asks again after a pause.
  const waitSeconds = Math.min(WAIT_SECONDS_MAX, Math.floor(timeoutMs / 2_000))
  const connect = (until: AbortSignal | undefined, onTime: OnTime): Connection => {
    const send = keeping(retrying(options.fetch ?? (request => fetch(request)), { timeoutMs, signal: until }))
    const noted: Send = async request => {
      const answer = await send(request)
      const time = answer.headers.get('Projection-Time')
      if (time !== null) onTime(time)
      return answer
    }
    return {
      api: createFetchClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` }, fetch: noted }),
      waitSeconds,
      signal: until,
      until: more => connect(until === undefined ? more : AbortSignal.any([until, more]), onTime),
      noting: more =>
        connect(until, time => {
          onTime(time)
          more(time)
        }),
    }
  }
  return clientAsOf(
    connect(signal, () => undefined),
    undefined,
  )
}

type OnTime = (projectionTime: string) => void

type Connection = {
  readonly api: ReturnType<typeof createFetchClient<paths>>
  readonly waitSeconds: number
  readonly signal: AbortSignal | undefined
  readonly until: (signal: AbortSignal) => Connection
  readonly noting: (onTime: OnTime) => Connection
}

const clientAsOf = (connection: Connection, moment: string | undefined): Client => {
  const { api, waitSeconds, signal } = connection
  const asOf = moment === undefined ? {} : { as_of: moment }
  const filterOf = ({ repId, periodId, dealId }: DealFilter) => ({
    ...(repId !== undefined && { rep_id: repId }),
    ...(periodId !== undefined && { period_id: periodId }),
    ...(dealId !== undefined && { deal_id: dealId }),
  })
  const queryOf = ({ limit = 200, ...filter }: ListOptions & DealFilter, after: string | undefined) => ({
    ...asOf,
    limit,
    ...(after !== undefined && { starting_after: after }),
    ...filterOf(filter),
  })
  const listOf = <Item>(
    options: ListOptions & DealFilter,
    read: (query: ReturnType<typeof queryOf>) => Promise<Answer<Body<Item>>>,
    from: Parameters<typeof createList>[0] = options.startingAfter ?? undefined,
  ): List<Item> => {
    requireValues(options)
    return createList(from, async after => pageOf(await read(queryOf(options, after))))
  }
  const recordsOf = <Item extends { readonly id: string }>(
    options: ListOrIds<ListOptions & DealFilter>,
    read: (query: ReturnType<typeof queryOf> | AskedIds) => Promise<Answer<Body<Item>>>,
  ): List<Item> => {
    requireValues(options)
    if (options.ids === undefined) return listOf(options, read)
    const { ids: all, ...more } = options
    const others = Object.entries(more).flatMap(([name, value]) => ((value ?? undefined) === undefined ? [] : [name]))
    // The API refuses both together. By ids alone, it would answer records that the filter leaves out.
    if (others.length > 0) throw new Error(`ids are read without ${others.join(' and ')}: leave one of them out`)
    return createListOfIds(all, async ids => pageOf(await read({ ...asOf, ids: ids.join() })))
  }
  const one = (id: string) => ({ params: { path: { id }, query: asOf } })

  return {
    reps: (options = {}) => recordsOf(options, query => api.GET('/reps', { params: { query } })),
    periods: (options = {}) => recordsOf(options, query => api.GET('/periods', { params: { query } })),
    payouts: (options = {}) => recordsOf(options, query => api.GET('/payouts', { params: { query } })),
    payrollRecords: (options = {}) => recordsOf(options, query => api.GET('/payroll_files', { params: { query } })),
    changes: ({ after, ...options } = {}) => {
      requireValues({ after })
      const start = options.startingAfter ?? undefined
      // The first page begins after a sequence, and the others after the cursor of the page before.
      const first = (cursor: string | undefined) => cursor === start && after !== undefined && { after }
      return listOf(options, query =>
        api.GET('/changes', { params: { query: { ...query, ...first(query.starting_after) } } }),
      )
    },
    changesSince: (instant, options = {}) => {
      const from = async () => (await clientAsOf(connection, instant).totals()).last_change_id
      return listOf(options, query => api.GET('/changes', { params: { query } }), from)
    },
    follow: async function* ({ startingAfter, ...options } = {}) {
      requireValues(options)
      for (let after = startingAfter ?? undefined; ; ) {
        const query = { ...queryOf(options, after), wait: waitSeconds }
        const asked = performance.now()
        const page = pageOf(await api.GET('/changes', { params: { query } }))
        yield* page.data
        // A process that stops, or a proxy, answers at once.
        const isEarly = page.data.length === 0 && performance.now() - asked < 1_000
        if (isEarly) await pause(1_000 + 2_000 * Math.random(), signal)
        if (page.nextCursor !== '') after = page.nextCursor
      }
    },
    history: (id, options = {}) =>
      listOf(options, query => api.GET('/payouts/{id}/history', { params: { path: { id }, query } })),
    rep: async id => answered(await api.GET('/reps/{id}', one(id))).data,
    period: async id => answered(await api.GET('/periods/{id}', one(id))).data,
    payout: async id => answered(await api.GET('/payouts/{id}', one(id))).data,
    statement: async id => answered(await api.GET('/statements/{id}', one(id))).data,
    payrollRecord: async id => answered(await api.GET('/payroll_files/{id}', one(id))).data,
    totals: async (filter = {}) => {
      requireValues(filter)
      const query = { ...asOf, ...filterOf(filter) }
      return answered(await api.GET('/totals', { params: { query } })).data
    },
    checkpoint: async () => answered(await api.GET('/checkpoint')).data,
    asOf: at => clientAsOf(connection, typeof at === 'string' ? at : at.id),
    until: more => clientAsOf(connection.until(more), moment),
    noting: onTime => clientAsOf(connection.noting(onTime), moment),
  }
}

/** A query leaves null out, such as the deal of a line without one: then all records of the organization would come. */
const requireValues = (options: object): void => {
  const [name] = Object.entries(options).find(([name, value]) => value === null && name !== 'startingAfter') ?? []
  if (name !== undefined) throw new Error(`${name} is null, which would select everything: leave it out for that`)
}

type AskedIds = { readonly as_of?: string; readonly ids: string }

type Answer<Body> = {
  readonly data?: Body
  readonly error?: unknown
  readonly response: Response
}

const answered = <Body extends { readonly data: unknown }>({ data, error, response }: Answer<Body>): Body => {
  // A proxy before the API may answer, too, with another status or other JSON.
  if (response.status === 200 && typeof data?.data === 'object' && data.data !== null) return data
  throw new RefusedError(response, isRefusal(error) ? error.error : UNKNOWN)
}
const UNKNOWN = { code: 'unknown', message: 'not an answer of the API' }

const isRefusal = (body: unknown): body is Schemas['Refusal'] => {
  const { code, message } = (body as Partial<Schemas['Refusal']> | undefined)?.error ?? {}
  return typeof code === 'string' && typeof message === 'string'
}

type Body<Item> = { readonly data: Item[]; readonly has_more: boolean; readonly next_cursor: string }

const pageOf = <Item>(answer: Answer<Body<Item>>): Page<Item> => {
  const { data, has_more, next_cursor } = answered(answer)
  // Without has_more the list would end here, as if it were whole.
  if (!Array.isArray(data) || typeof has_more !== 'boolean' || typeof next_cursor !== 'string')
    throw new RefusedError(answer.response, UNKNOWN)
  const projectionTime = answer.response.headers.get('Projection-Time') ?? ''
  return { data, hasMore: has_more, nextCursor: next_cursor, projectionTime }
}
