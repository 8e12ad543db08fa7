/** A table that becomes a list of cards on a narrow screen. Amounts of a column are aligned. */
import type { ComponentChildren } from 'preact'
import { widestOf } from '../amounts.ts'
import { Amount } from './amount.tsx'

export type TableColumn<Row> = {
  readonly head: string
  /** The content of a cell. A column has this or amounts. */
  readonly cell?: (row: Row, at: number) => ComponentChildren
  /** An amount, or null where there is none. */
  readonly amount?: (row: Row, at: number) => string | null
  readonly isDifference?: boolean
  /** Its cells say themselves what they are: on narrow screens they stand without their head. */
  readonly isPlain?: boolean
  /** A drawing: not shown on paper and on narrow screens. */
  readonly isPicture?: boolean
}

type Props<Row> = {
  readonly caption: string
  readonly rows: readonly Row[]
  readonly columns: readonly TableColumn<Row>[]
  readonly keyOf: (row: Row) => string
}

// The roles stay when the style sheet turns rows into cards.
export const Table = <Row,>({ caption, rows, columns, keyOf }: Props<Row>) => {
  const amounts = columns.map(({ amount }) => (amount === undefined ? [] : rows.map(amount)))
  // Once for a column: each of its cells would look at all others.
  const known = amounts.map(all => widestOf(all.filter(amount => amount !== null)))
  /** On narrow screens, an amount that is not there takes no line. */
  const empty = ({ amount }: TableColumn<Row>, shown: string | null | undefined): string =>
    amount !== undefined && shown === null ? ' empty' : ''
  const kind = ({ amount, isPicture, isPlain }: TableColumn<Row>): string =>
    `${amount ? 'number' : isPicture ? 'picture' : 'text'}${isPlain ? ' plain' : ''}`
  return (
    // biome-ignore-start lint/a11y/noRedundantRoles: without a role, a row that is drawn as a card is no row.
    <table role="table">
      <caption>{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map(column => (
            <th key={column.head} role="columnheader" scope="col" class={kind(column)}>
              {column.head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row, at) => (
          <tr key={keyOf(row)} role="row">
            {columns.map((column, index) => (
              <td
                key={column.head}
                role="cell"
                class={kind(column) + empty(column, amounts[index]?.[at])}
                data-head={column.head}
              >
                <Cell column={column} row={row} at={at} amount={amounts[index]?.[at]} all={known[index] ?? []} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
    // biome-ignore-end lint/a11y/noRedundantRoles: as above
  )
}

type CellProps<Row> = {
  readonly column: TableColumn<Row>
  readonly row: Row
  readonly at: number
  readonly amount: string | null | undefined
  readonly all: readonly string[]
}

const Cell = <Row,>({ column, row, at, amount, all }: CellProps<Row>) => {
  // One element, so that its parts stay together when the cell is drawn as a line of a card.
  if (column.cell !== undefined) return <div>{column.cell(row, at)}</div>
  if (amount === null || amount === undefined) return <>–</>
  return <Amount amount={amount} column={all} isDifference={column.isDifference ?? false} />
}
