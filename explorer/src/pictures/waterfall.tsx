/** One step of a waterfall: the part of the way from nothing to the sum that a line goes. It stands in a table. */
import { drawnPositions } from '../amounts.ts'

type Props = {
  /** Where the step begins and ends, and where nothing is: in percent of the width. */
  readonly from: number
  readonly to: number
  readonly zero: number
  readonly name: string
}

/** @returns the positions of nothing and of each sum, in percent. Once for all rows: it divides. */
export const waterfallOf = (sums: readonly string[]): readonly number[] =>
  drawnPositions(['0', ...sums]).map(position => 100 * position)

export const WaterfallStep = ({ from, to, zero, name }: Props) => {
  const [left, right] = [Math.min(from, to), Math.max(from, to)]
  return (
    <svg class="waterfall" aria-hidden="true" width="100%" height="18">
      <line class="axis" x1={`${zero}%`} x2={`${zero}%`} y1="0" y2="18" />
      <rect class={name} x={`${left}%`} y="3" width={`${Math.max(0.4, right - left)}%`} height="12" />
    </svg>
  )
}
