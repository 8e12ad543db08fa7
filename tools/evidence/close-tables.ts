/** The tables of a close: those of an export, and the changes, controls, parked records and keys of the period. */
import { type ExportTable, plainTable, type TableValue, tables } from '../export/tables.ts'

type ChangedRecord = Readonly<Record<string, TableValue>>

const columns = {
  sequence: 'number',
  id: 'text',
  kind: 'text',
  published_at: 'instant',
  supersedes_id: 'text',
  reverses_id: 'text',
  rep_id: 'text',
  net_amount: 'amount',
  amount: 'amount',
  currency: 'text',
} as const

/** A row for each change. `net_amount`: of a payout. `amount`: of a payroll record. */
const changes: ExportTable = {
  name: 'changes',
  from: 'changes',
  columns,
  rows: change => {
    const { rep_id, net_amount, amount, currency } = change.record as ChangedRecord
    const { sequence, id, kind, published_at, supersedes_id, reverses_id } = change
    const row = { sequence, id, kind, published_at, supersedes_id, reverses_id, rep_id, net_amount, amount, currency }
    const texts = Object.entries(row).map(([name, value]) => [name, value == null ? null : String(value)])
    return [Object.fromEntries(texts)]
  },
}

export const closeTables: readonly ExportTable[] = [
  ...tables,
  changes,
  plainTable('replacements', {
    rep_id: 'text',
    payout_id: 'text',
    replaces_id: 'text',
    currency: 'text',
    before: 'amount',
    after: 'amount',
    difference: 'amount',
  }),
  plainTable('control_totals', {
    currency: 'text',
    first_payouts: 'number',
    first_amount: 'amount',
    replacements: 'number',
    replaced_amount: 'amount',
    owed_count: 'number',
    owed_amount: 'amount',
    payments: 'number',
    payments_amount: 'amount',
    voids: 'number',
    voids_amount: 'amount',
    paid_count: 'number',
    paid_amount: 'amount',
    open_amount: 'amount',
  }),
  plainTable('reconciliation', {
    currency: 'text',
    compared: 'text',
    from_changes: 'text',
    from_records: 'text',
    from_lines: 'text',
    from_totals: 'text',
  }),
  plainTable('parked', { position: 'text', published_at: 'instant', code: 'text', type: 'text', event_id: 'text' }),
  plainTable('keys', {
    id: 'text',
    name: 'text',
    permissions: 'text',
    expires_at: 'text',
    allowed_networks: 'text',
    revoked: 'text',
  }),
  plainTable('reads', {
    key_id: 'text',
    route: 'text',
    requests: 'number',
    records: 'number',
    first: 'instant',
    last: 'instant',
  }),
]
