/** The picture of docs/analysts.md: what is owed and paid in the first organization of the demo. */
import { join } from 'node:path'
import { expectedOf } from '../../demo/data/expected.ts'
import { makeOrganizations } from '../../demo/data/organization.ts'
import { drawTotals } from '../../tools/export/chart.ts'
import type { Item } from '../support/model.ts'
import { totalsOf } from '../support/totals.ts'

export const TOTALS_PICTURE = join(import.meta.dirname, '../../docs/pictures/owed-and-paid.svg')

/** Returns what `projection totals --kind month --svg` draws, without servers. The time is that of the last change. */
export const totalsPicture = (): string => {
  const [organization] = makeOrganizations(1, { years: 10, partitions: 6 })
  if (organization === undefined) throw new Error('the demo has no organization')
  const { periods, payouts, payroll_files } = expectedOf(organization.id, organization.sent)
  const known = new Map(periods.map(period => [period.id, period]))
  const order = [...known.keys()]
  const rows = totalsOf([...payouts] as Item[], [...payroll_files] as Item[])
    .filter(({ period_id }) => known.get(period_id)?.kind === 'month')
    .map(row => ({
      ...{ ...row, owed_count: row.owed_count ?? 0, paid_count: row.paid_count ?? 0 },
      ...{ period: String(known.get(row.period_id)?.name), still_owed: row.open_amount },
    }))
    .toSorted((a, b) => order.indexOf(a.period_id) - order.indexOf(b.period_id))
  const last = payroll_files.at(-1)
  const moment = `As of ${last?.id}, ${last?.recorded_at}`
  return drawTotals(rows, { organization: organization.id, moment })
}
