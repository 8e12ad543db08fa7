/**
 * The age of what is published, over the last minutes. In: an age now and then. Out: a small picture, and the same in
 * words. Promises: it holds at most AGES_MAX numbers.
 */
import { AGE_INTERVAL_MS, AGES_MAX, STALE_AGE_MS } from '../limits.ts'
import { asText } from './frame.ts'

/** Both in milliseconds. `age` is undefined where it is not known. */
type Sample = { readonly at: number; readonly age: number | undefined }

export type Ages = {
  /** Keeps an age, unless the last one is younger than AGE_INTERVAL_MS. */
  readonly note: (at: number, age: number | undefined) => void
  readonly list: () => readonly Sample[]
}

export const createAges = (): Ages => {
  let samples: readonly Sample[] = []
  return {
    note: (at, age) => {
      const last = samples.at(-1)
      // A clock that was set back: the times before it mean nothing now.
      if (last !== undefined && at < last.at) samples = []
      else if (last !== undefined && at - last.at < AGE_INTERVAL_MS) return
      const from = at - AGES_MAX * AGE_INTERVAL_MS
      samples = [...samples.filter(sample => sample.at > from), { at, age: age && Math.max(0, age) }].slice(-AGES_MAX)
    },
    list: () => samples,
  }
}

/** The age of the oldest of these times; undefined without one, and while one of them is 0: it is not known. */
export const oldestAge = (times: readonly number[], now: number): number | undefined =>
  times.length === 0 || times.includes(0) ? undefined : now - Math.min(...times)

/** Up to which time a partition is published: milliseconds since 1970, 0 while it is not known. */
export type PublishedTime = { readonly partition: number; readonly time: number }

/** Names the partitions whose time is old or not known; undefined if there is none. */
export const stalePartitions = (times: readonly PublishedTime[], now: number): string | undefined => {
  const stale = times.flatMap(({ partition, time }) => (now - time > STALE_AGE_MS ? [partition] : []))
  return stale.length === 0 ? undefined : `${stale.length === 1 ? 'partition' : 'partitions'} ${stale.join(', ')}`
}

const WIDTH = 600
const HEIGHT = 60
/** A longer pause between two ages is a gap of the curve. */
const GAP_MS = 20 * AGE_INTERVAL_MS

/** Returns HTML. @param of says whose age it is, as a sentence begins @param now the right end of the picture */
export const agePicture = (of: string, samples: readonly Sample[], now: number): string => {
  const known = samples.flatMap(({ age }) => age ?? [])
  const [first] = samples
  if (first === undefined || known.length === 0)
    return `<p class="quiet">${asText(of)}: not known yet. It is drawn here while this process runs.</p>`
  const [low, high] = [Math.min(...known), Math.max(...known)]
  const span = Math.max(now - first.at, AGE_INTERVAL_MS)
  const newest = samples.at(-1)?.age
  const present = newest === undefined ? 'now not known' : `now ${ageText(newest)}`
  const words = `${of}: ${present}; between ${ageText(low)} and ${ageText(high)} in the last ${ageText(span)}.`
  const point = ({ at, age = 0 }: Sample): string =>
    `${round((1 - (now - at) / span) * WIDTH)} ${round(HEIGHT - (age / Math.max(high, 1)) * (HEIGHT - 4) - 2)}`
  const curve = samples
    .flatMap((sample, position) => {
      if (sample.age === undefined) return []
      const before = samples[position - 1]
      const follows = before?.age !== undefined && sample.at - before.at <= GAP_MS
      // A line of no length shows an age that stands alone.
      return follows ? [`L${point(sample)}`] : [`M${point(sample)}`, `L${point(sample)}`]
    })
    .join('')
  return `<figure>
<figcaption>${asText(words)}</figcaption>
<div class="plot"><div class="scale" aria-hidden="true"><span>${ageText(high)}</span><span>0 s</span></div>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${asText(words)}">
<line class="axis" x1="0" y1="2" x2="${WIDTH}" y2="2"/><line class="axis" x1="0" y1="${HEIGHT - 2}" x2="${WIDTH}" y2="${HEIGHT - 2}"/>
<path class="curve" d="${curve}"/>
</svg></div>
<div class="scale" aria-hidden="true"><span>${ageText(span)} ago</span><span>now</span></div>
</figure>`
}

const round = (value: number): number => Math.round(value * 10) / 10

/** A length of time in its largest unit. @param milliseconds less than none is shown as none */
export const ageText = (milliseconds: number): string => {
  const seconds = Math.max(0, milliseconds / 1_000)
  const [, length = 1, unit = 's'] = units.find(([max]) => seconds < max) ?? []
  return `${(seconds / length).toFixed(1)} ${unit}`
}
/** An age below `max` seconds is shown in `unit`, which is `length` seconds long. */
const units: readonly (readonly [max: number, length: number, unit: string])[] = [
  [120, 1, 's'],
  [7_200, 60, 'min'],
  [172_800, 3_600, 'h'],
  [Number.POSITIVE_INFINITY, 86_400, 'days'],
]
