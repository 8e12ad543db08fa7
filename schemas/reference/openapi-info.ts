/** How the OpenAPI document describes itself: title, licence, tags, and its own answer. */
import { listTraits } from '../lists.ts'
import { objectOf } from '../objects.ts'
import { listKinds } from '../stored/documents.ts'
import type { Json } from './openapi-parts.ts'

/** The word of package.json: nobody has a licence by these documents. SPDX lets one name what it does not list. */
export const license = { name: 'UNLICENSED', identifier: 'LicenseRef-UNLICENSED' } as const

export const info = {
  title: 'API',
  version: '1.0.0',
  description: [
    'Read-only access to the commission data of one organization: reps, periods, payouts with their line items,',
    'statements with the whole calculation trace, and payroll records.',
    'They can be read as they are now, as of an earlier moment, and as a feed of changes.',
    'Amounts are decimal strings; parse them into a decimal type.',
    'Every request, except for this document, needs a key: `Authorization: Bearer <key>`.',
    'HEAD returns the headers of GET, without the body.',
  ].join(' '),
  license,
} as const

/** The first words of the paths. */
export const tags = Object.entries({
  ...objectOf(listKinds, kind => listTraits[kind].about),
  changes: 'All changes of the organization, in order.',
  statements: 'Payouts with the steps of their calculation.',
  totals: 'Sums of what is owed, paid and open.',
  checkpoint: 'A signed digest that proves a copy complete.',
  openapi: 'This document.',
}).map(([name, description]) => ({ name, description }))

/** The parts that every OpenAPI document has; more may follow. */
const anyObject = { type: 'object', additionalProperties: true }
export const documentSchema: Json = {
  type: 'object',
  required: ['openapi', 'info', 'paths'],
  properties: { openapi: { type: 'string' }, info: anyObject, paths: anyObject },
}
