/** The contract for one probe, written from the documents: the status, and the ids that the answer may show. */
import type { OrgName, ProbeKey } from './store.ts'

/** `ids` is undefined for a refusal and for a HEAD. */
export type Expected = { readonly status: number; readonly ids?: readonly string[]; readonly message?: string }

type Needs = string | readonly string[] | undefined
export type Probe = {
  readonly method: string
  readonly path: string
  /** The permission of the path, or all that it needs; undefined if there is no such path. */
  readonly needs: Needs
  /** The status and the ids for a key that may read it. */
  readonly answer: (org: OrgName) => Expected
}

/** Returns the answer for a key and a client at an instant, in milliseconds since 1970. */
export const expectedOf = (probe: Probe, key: ProbeKey | 'none', client: number, now: number): Expected => {
  if (key === 'none' || key.isRevoked || now >= key.ends || key.clients?.(client) === false) return { status: 401 }
  const { method, needs } = probe
  if (key.permissions.length === 0) return { status: 403, message: 'This API key has no permission.' }
  const holds = (name: string): boolean => key.permissions.some(held => held === name || held === 'read')
  const missing = needs === undefined ? undefined : [needs].flat().find(name => !holds(name))
  if (missing !== undefined) return { status: 403, message: `This API key lacks the permission ${missing}.` }
  if (needs === undefined) return { status: 404 }
  if (method !== 'GET' && method !== 'HEAD') return { status: 405 }
  const { status, ids } = probe.answer(key.org)
  return method === 'HEAD' || ids === undefined ? { status } : { status, ids }
}

type Answers = (org: OrgName) => Expected

/** A list: the ids of both organizations that have records. */
const list =
  (idsOf: (org: string) => readonly string[]): Answers =>
  org => ({ status: 200, ids: org === 'empty' ? [] : idsOf(org) })

/** One record of the organization `owner`; any other key gets 404. */
const one =
  (owner: OrgName, ids: readonly string[]): Answers =>
  org =>
    org === owner ? { status: 200, ids } : { status: 404 }

/** A page after a cursor of `owner`; for any other key it is no cursor. */
const after =
  (owner: OrgName, ids: readonly string[]): Answers =>
  org =>
    org === owner ? { status: 200, ids } : { status: 400 }

const nothing: Answers = () => ({ status: 404 })
const invalid: Answers = () => ({ status: 400 })
const changesOf = (org: string): string[] => [
  `rep_${org}.1`,
  `period_${org}.1`,
  `payout_${org}1`,
  `payout_${org}2`,
  `payroll_${org}`,
]

/** The totals of one rep are the pay of a person. */
const repTotals = ['totals:read', 'payouts:read', 'payroll:read']
/** The totals of a deal are lines of payouts. */
const dealTotals = ['totals:read', 'payouts:read']

/** Path, permission, answer. */
const paths: readonly (readonly [path: string, needs: Needs, answer: Answers])[] = [
  ['/reps', 'reps:read', list(org => [`rep_${org}`])],
  ['/periods', 'periods:read', list(org => [`period_${org}`])],
  ['/payouts', 'payouts:read', list(org => [`payout_${org}2`])],
  ['/payroll_files', 'payroll:read', list(org => [`payroll_${org}`])],
  ['/changes', 'changes:read', list(changesOf)],
  ['/changes?limit=1', 'changes:read', list(org => changesOf(org).slice(0, 1))],
  ['/changes?wait=0', 'changes:read', list(changesOf)],
  ['/totals', 'totals:read', list(org => [`period_${org}`])],
  ...(['a', 'b'] as const).flatMap((org): (typeof paths)[number][] => [
    [`/reps/rep_${org}`, 'reps:read', one(org, [`rep_${org}`])],
    [`/periods/period_${org}`, 'periods:read', one(org, [`period_${org}`])],
    [`/payouts/payout_${org}1`, 'payouts:read', one(org, [`payout_${org}1`])],
    [`/payouts/payout_${org}2`, 'payouts:read', one(org, [`payout_${org}2`])],
    [`/payouts/payout_${org}2/history`, 'payouts:read', one(org, [`payout_${org}1`, `payout_${org}2`])],
    [`/statements/payout_${org}1`, 'statements:read', one(org, [`payout_${org}1`])],
    [`/statements/payout_${org}2`, 'statements:read', one(org, [`payout_${org}2`])],
    [`/payroll_files/payroll_${org}`, 'payroll:read', one(org, [`payroll_${org}`])],
    [`/payouts?starting_after=payout_${org}1`, 'payouts:read', after(org, [`payout_${org}2`])],
    [`/payroll_files?starting_after=payroll_${org}`, 'payroll:read', after(org, [])],
    [`/changes?starting_after=payout_${org}2`, 'changes:read', after(org, [`payroll_${org}`])],
    [`/reps?as_of=payroll_${org}`, 'reps:read', after(org, [`rep_${org}`])],
    [`/payouts?as_of=payout_${org}1`, 'payouts:read', after(org, [`payout_${org}1`])],
    [`/totals?as_of=payout_${org}1`, 'totals:read', after(org, [`period_${org}`])],
    [
      `/payouts?ids=payout_${org}2,payout_none,payout_${org}1`,
      'payouts:read',
      asked => ({ status: 200, ids: asked === org ? [`payout_${org}2`, `payout_${org}1`] : [] }),
    ],
    ...(['reps', 'periods', 'payroll_files'] as const).map((list): (typeof paths)[number] => {
      const name = list === 'payroll_files' ? 'payroll' : list
      const id = `${name.replace(/s$/, '')}_${org}`
      return [`/${list}?ids=${id}`, `${name}:read`, asked => ({ status: 200, ids: asked === org ? [id] : [] })]
    }),
    ...[`/totals?rep_id=rep_${org}`, `/totals?period_id=period_${org}&%72ep_id=rep_${org}`].map(
      (path): (typeof paths)[number] => [
        path,
        repTotals,
        asked => ({ status: 200, ids: asked === org ? [`period_${org}`] : [] }),
      ],
    ),
    [
      `/payouts?rep_id=rep_${org}`,
      'payouts:read',
      asked => ({ status: 200, ids: asked === org ? [`payout_${org}2`] : [] }),
    ],
  ]),
  ['/reps/rep_nobody', 'reps:read', nothing],
  ['/periods/period_never', 'periods:read', nothing],
  ['/payouts/payout_none', 'payouts:read', nothing],
  ['/payouts/rep_a', 'payouts:read', nothing],
  ['/payouts/payout_none/history', 'payouts:read', nothing],
  ['/statements/payout_none', 'statements:read', nothing],
  ['/payroll_files/payroll_none', 'payroll:read', nothing],
  ['/reps?limit=0', 'reps:read', invalid],
  ['/payouts?lmit=1', 'payouts:read', invalid],
  ['/payouts?ids=payout_a1,payout_a1', 'payouts:read', invalid],
  ['/statements/payout_a1?limit=1', 'statements:read', invalid],
  ['/changes?wait=x', 'changes:read', invalid],
  // This API signs nothing.
  ['/checkpoint', ['changes:read', 'totals:read'], invalid],
  ['/totals?rep_id=', repTotals, invalid],
  // This store cannot be searched by deal.
  ['/totals?deal_id=deal_a', dealTotals, invalid],
  ['/totals?%64eal_id=deal_a&period_id=period_a', dealTotals, invalid],
  ['/totals?deal_id=deal_a&rep_id=rep_a', repTotals, invalid],
  ['', undefined, nothing],
  ['/', undefined, nothing],
  ['/payouts/', undefined, nothing],
  ['/statements', undefined, nothing],
  ['/statements/payout_a1/history', undefined, nothing],
  ['/Payouts', undefined, nothing],
  ['/payroll', undefined, nothing],
  ['/changes/payout_a1', undefined, nothing],
  ['/totals/', undefined, nothing],
  ['/checkpoint/payout_a1', undefined, nothing],
  ['/nowhere', undefined, nothing],
]

const methods = ['GET', 'GET', 'GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS']
export const probes: readonly Probe[] = paths.flatMap(([path, needs, answer]) =>
  methods.map(method => ({ method, path, needs, answer })),
)
