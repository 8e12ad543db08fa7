/** A picture of amounts: one bar for each item, from left to right, and a narrow bar within it. */
import { drawnShare, farthestFromZero, groupDigits, isZero } from '../amounts.ts'

export type DrawnBar = {
  readonly key: string
  /** Below the bar, if there is room: each text in a line of its own. */
  readonly label: readonly string[]
  /** All that the bar says, in words. */
  readonly title: string
  readonly amount: string
  readonly within?: string
}

const HEIGHT = 180
const TOP = 22
/** Of one line of labels. */
const LINE = 16
/** Labels that fit side by side. On a narrow screen, the style sheet shows every second one. */
const LABELS_MAX = 4
/** Of the whole width, in percent: a picture of few bars keeps its measure. */
const BAR_MAX = 12

/** @param caption says what the picture shows; a table beside it says the same in texts */
export const Bars = ({ caption, bars }: { readonly caption: string; readonly bars: readonly DrawnBar[] }) => {
  const amounts = bars.flatMap(({ amount, within }) => (within === undefined ? [amount] : [amount, within]))
  const farthest = farthestFromZero(amounts)
  const shares = amounts.map(amount => drawnShare(amount, farthest))
  // Without an amount above or below zero, the axis is at the bottom, too.
  const isFlat = amounts.every(isZero)
  const [low, high] = [Math.min(0, ...shares), isFlat ? 1 : Math.max(0, ...shares)]
  const range = high - low || 1
  // Below the bars: the lowest amount if one is below zero, and the labels.
  const lines = bars.reduce((most, { label }) => Math.max(most, label.length), 1)
  const bottom = LINE * (lines + (low < 0 ? 1 : 0)) + 6
  const y = (share: number): number => TOP + ((high - share) / range) * (HEIGHT - TOP - bottom)
  const scale = (share: number): string => groupDigits(amounts[shares.indexOf(share)] ?? '0')
  const slot = 100 / Math.max(1, bars.length)
  const every = Math.ceil(bars.length / LABELS_MAX)
  const labelled = (at: number): boolean => at % every === 0
  const nameOf = (at: number): string => (bars.length > 2 && (at / every) % 2 === 1 ? 'label spare' : 'label')

  const rect = (at: number, amount: string, width: number, name: string) => {
    if (isZero(amount)) return null
    const share = shares[amounts.indexOf(amount)] ?? 0
    const [top, end] = [y(Math.max(0, share)), y(Math.min(0, share))]
    const wide = Math.min(slot, BAR_MAX) * width
    const x = `${slot * (at + 0.5) - wide / 2}%`
    return <rect class={name} x={x} y={top} width={`${wide}%`} height={Math.max(1, end - top)} />
  }
  // Within the picture also at its ends.
  const labelAt = (at: number): { readonly x: string; readonly 'text-anchor': 'start' | 'middle' | 'end' } => {
    const middle = slot * (at + 0.5)
    const half = (Math.min(slot, BAR_MAX) * 0.7) / 2
    if (middle < 20) return { x: `${middle - half}%`, 'text-anchor': 'start' }
    if (middle > 80) return { x: `${middle + half}%`, 'text-anchor': 'end' }
    return { x: `${middle}%`, 'text-anchor': 'middle' }
  }
  return (
    <svg class="bars" role="img" aria-label={caption} width="100%" height={HEIGHT}>
      <title>{caption}</title>
      {!isFlat && <line class="grid" x1="0" x2="100%" y1={y(high)} y2={y(high)} />}
      <line class="axis" x1="0" x2="100%" y1={y(0)} y2={y(0)} />
      {high > 0 && (
        <text class="scale" x="0" y={isFlat ? y(0) - 8 : TOP - 8}>
          {isFlat ? '0' : scale(high)}
        </text>
      )}
      {low < 0 && <line class="grid" x1="0" x2="100%" y1={y(low)} y2={y(low)} />}
      {low < 0 && (
        <text class="scale" x="0" y={y(low) + LINE}>
          {scale(low)}
        </text>
      )}
      {bars.map(({ key, label, title, amount, within }, at) => (
        <g key={key}>
          <title>{title}</title>
          {rect(at, amount, 0.7, 'outer')}
          {within !== undefined && rect(at, within, 0.36, 'inner')}
          {labelled(at) &&
            label.map((text, line) => (
              <text key={text} class={nameOf(at)} {...labelAt(at)} y={HEIGHT - 6 - LINE * (label.length - 1 - line)}>
                {text}
              </text>
            ))}
        </g>
      ))}
    </svg>
  )
}
