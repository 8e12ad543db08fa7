/** Compares every stored document with the model, also those that only the projector reads. */
import { UNTIL_FOREVER } from '../../schemas/limits.ts'
import type { Model } from './model.ts'
import { allStored, indexNamed, type Stored } from './stored.ts'

const kinds = ['reps', 'periods', 'payouts', 'statements', 'payroll_files', 'chains'] as const
type StoredKind = (typeof kinds)[number]
type Of = Readonly<Record<StoredKind, readonly Stored[]>>

/** Both sides as lines of text, one per fact. */
export type WholeState = { readonly stored: ReadonlySet<string>; readonly modelled: ReadonlySet<string> }

export const readWholeState = async (prefix: string, model: Model): Promise<WholeState> => {
  const all = await Promise.all(kinds.map(async kind => [kind, await allStored(indexNamed(prefix, kind))] as const))
  const byOrganization = new Map(model.organizations().map(org => [org, noneOf()]))
  for (const [kind, documents] of all) {
    for (const document of documents) {
      const org = String(document.source.org_id)
      const of = byOrganization.get(org) ?? noneOf()
      byOrganization.set(org, of)
      of[kind].push(document)
    }
  }
  const [stored, modelled] = [new Set<string>(), new Set<string>()]
  for (const [org, of] of byOrganization) {
    for (const line of served(storedView(of))) stored.add(`${org} ${line}`)
    for (const line of served(model.view(org))) modelled.add(`${org} ${line}`)
    for (const line of kept(of)) stored.add(`${org} ${line}`)
    for (const line of keptAsItMustBe(org, of)) modelled.add(`${org} ${line}`)
  }
  return { stored, modelled }
}

const noneOf = (): Record<StoredKind, Stored[]> => ({
  reps: [],
  periods: [],
  payouts: [],
  statements: [],
  payroll_files: [],
  chains: [],
})

type Served = Readonly<
  Record<
    'reps' | 'periods' | 'everyPayout' | 'statements' | 'payroll_files',
    readonly Readonly<Record<string, unknown>>[]
  >
>

/** Everything that clients can read, each record with its place in its list. */
const served = ({ reps, periods, everyPayout, statements, payroll_files }: Served): string[] =>
  Object.entries({ reps, periods, everyPayout, statements, payroll_files }).flatMap(([what, items]) =>
    items.map((item, place) => `${what} ${place} ${text(item)}`),
  )

const storedView = (of: Of): Served => {
  const payouts = inOrder(of.payouts).map(({ source }) => ({
    ...body(source),
    superseded_by_id: source.superseded_by_id,
  }))
  const statements = inOrder(of.statements).map(({ source }, place) => ({ ...payouts[place], ...body(source) }))
  const current = (documents: readonly Stored[]) =>
    documents
      .filter(({ source }) => source.until_seq === UNTIL_FOREVER)
      .sort((a, b) => Number(a.source.first_seq) - Number(b.source.first_seq))
      .map(({ source }) => body(source))
  return {
    reps: current(of.reps),
    periods: current(of.periods),
    everyPayout: payouts,
    statements,
    payroll_files: inOrder(of.payroll_files).map(({ source }) => body(source)),
  }
}

/** The fields beside the bodies, by document id. */
const kept = (of: Of): string[] => [
  ...of.payouts.map(({ id, version, source: { body: _, hash: __, at: ___, body_bytes: ____, ...rest } }) =>
    line('payout', id, { version, ...rest }),
  ),
  ...of.statements.map(({ id, version, source: { seq } }) => line('statement', id, { version, seq })),
  ...of.payroll_files.map(({ id, version, source: { seq, rep_id, period_id, reverses_id, amount, currency } }) =>
    line('payroll', id, { version, seq, rep_id, period_id, reverses_id, amount, currency }),
  ),
  ...of.chains.map(({ id, version, source }) => line('chain', id, { version, ...body(source) })),
  ...(['reps', 'periods'] as const).flatMap(kind => [
    ...versionsOf(of[kind]).map(({ id, version, source: { seq, first_seq, until_seq, ordinal } }) =>
      line(kind, id, { version, seq, first_seq, until_seq, ordinal }),
    ),
    ...headsOf(of[kind]).map(({ id, version, source }) => line(`head of ${kind}`, id, { version, ...body(source) })),
  ]),
  ...Object.values(of)
    .flat()
    .map(({ id, source }) => line('bytes', id, { bytes: source.body_bytes })),
]

/** The expected fields, derived from the bodies and the offsets only. */
const keptAsItMustBe = (org: string, of: Of): string[] => {
  const payouts = inOrder(of.payouts)
  const payroll = inOrder(of.payroll_files)
  const seqOf = new Map(payouts.map(({ source }) => [body(source).id, Number(source.seq)]))
  const replacedBy = new Map(payouts.map(({ source }) => [body(source).supersedes_id, body(source).id]))
  const chains = new Map<string, { version: number; payouts: object[]; payroll: object[] }>()
  const addTo = (what: 'payouts' | 'payroll', { source }: Stored, item: object): void => {
    const { rep_id, period_id } = body(source)
    const id = `${org}:${rep_id}:${period_id}`
    const chain = chains.get(id) ?? { version: 0, payouts: [], payroll: [] }
    chain[what].push({ seq: source.seq, ...item })
    chain.version = Math.max(chain.version, Number(source.seq))
    chains.set(id, chain)
  }
  for (const payout of payouts) addTo('payouts', payout, { id: body(payout.source).id })
  for (const one of payroll) {
    addTo('payroll', one, { id: body(one.source).id, reverses_id: body(one.source).reverses_id })
  }
  return [
    ...payouts.map(({ source }) => {
      const { id, rep_id, period_id, net_amount: amount, currency } = body(source)
      const superseded_by_id = replacedBy.get(id) ?? null
      const until_seq = superseded_by_id === null ? UNTIL_FOREVER : seqOf.get(superseded_by_id)
      const version = superseded_by_id === null ? source.seq : until_seq
      const beside = { org_id: org, seq: source.seq, until_seq, superseded_by_id, rep_id, period_id, amount, currency }
      return line('payout', `${org}:${id}`, { version, ...beside })
    }),
    ...payouts.map(({ source: { seq, ...source } }) =>
      line('statement', `${org}:${body(source).id}`, { version: seq, seq }),
    ),
    ...payroll.map(({ source: { seq, ...source } }) => {
      const { id, rep_id, period_id, reverses_id, amount, currency } = body(source)
      return line('payroll', `${org}:${id}`, { version: seq, seq, rep_id, period_id, reverses_id, amount, currency })
    }),
    ...[...chains].map(([id, chain]) => line('chain', id, chain)),
    ...(['reps', 'periods'] as const).flatMap(kind => versionsAsTheyMustBe(org, kind, versionsOf(of[kind]))),
    ...Object.values(of)
      .flat()
      .map(({ id, source }) => line('bytes', id, { bytes: Buffer.byteLength(JSON.stringify(source.body)) })),
  ]
}

const versionsAsTheyMustBe = (org: string, kind: 'reps' | 'periods', documents: readonly Stored[]): string[] =>
  [...Map.groupBy(documents, ({ source }) => body(source).id)].flatMap(([id, versions]) => {
    const seqs = versions.map(({ source }) => Number(source.seq))
    const heads = versions.map(({ source: { seq, hash } }) => ({ seq, hash }))
    return [
      line(`head of ${kind}`, `${org}:${id}`, { version: seqs.at(-1), versions: heads }),
      ...seqs.map((seq, place) => {
        const until_seq = seqs[place + 1] ?? UNTIL_FOREVER
        const version = seqs[place + 1] ?? seq
        return line(kind, `${org}:${id}:${seq}`, { version, seq, first_seq: seqs[0], until_seq, ordinal: place + 1 })
      }),
    ]
  })

const inOrder = (documents: readonly Stored[]): Stored[] =>
  documents.toSorted((a, b) => Number(a.source.seq) - Number(b.source.seq))
/** Documents of versions have an offset; the head, which lists all versions, has none. */
const versionsOf = (documents: readonly Stored[]): Stored[] =>
  inOrder(documents.filter(({ source }) => 'seq' in source))
const headsOf = (documents: readonly Stored[]): Stored[] => documents.filter(({ source }) => !('seq' in source))

const body = (source: Stored['source']): Record<string, unknown> => source.body as Record<string, unknown>
const line = (what: string, id: string, values: object): string => `${what} ${id} ${text(values)}`

/** Returns JSON with sorted field names. */
const text = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
