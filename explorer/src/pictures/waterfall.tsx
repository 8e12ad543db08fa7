/** One step of a waterfall: the part of the way from nothing to the sum that a line goes. It stands in a table. */
import { drawnShare, farthestFromZero } from '../amounts.ts'

type Props = {
  /** The sums before and after the line. */
  readonly from: string
  readonly to: string
  /** All sums: they give the scale. */
  readonly sums: readonly string[]
  readonly name: string
}

export const WaterfallStep = ({ from, to, sums, name }: Props) => {
  const farthest = farthestFromZero(sums)
  const shares = sums.map(sum => drawnShare(sum, farthest))
  const [low, high] = [Math.min(0, ...shares), Math.max(0, ...shares)]
  const range = high - low || 1
  const x = (amount: string): number => (100 * (drawnShare(amount, farthest) - low)) / range
  const [left, right] = [Math.min(x(from), x(to)), Math.max(x(from), x(to))]
  const zero = `${x('0')}%`
  return (
    <svg class="waterfall" aria-hidden="true" width="100%" height="18">
      <line class="axis" x1={zero} x2={zero} y1="0" y2="18" />
      <rect class={name} x={`${left}%`} y="3" width={`${Math.max(0.4, right - left)}%`} height="12" />
    </svg>
  )
}
