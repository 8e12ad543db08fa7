/** The status page: whether the API can answer, and up to which time its answers are complete. Reloads itself. */
import type { LivePositions } from '../../core/store/index.ts'
import type { Readiness } from './ready.ts'

const REFRESH_SECONDS = 5

/** Returns the page as HTML. @param now milliseconds since 1970 */
export const statusPage = ({ notReady, positions }: Readiness, now: number): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="${REFRESH_SECONDS}">
<title>Commission API: ${notReady.length === 0 ? 'ready' : 'not ready'}</title>
<link rel="icon" href="data:,">
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #1c1c1c; }
h1 { font-size: 1.4rem; border-left: .5rem solid; padding-left: .75rem; }
.ready { border-color: #2e7d32; }
.not-ready { border-color: #c62828; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .25rem .75rem; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums; }
th { font-weight: 600; }
</style>
</head>
<body>
${notReady.length === 0 ? '<h1 class="ready">Commission API: ready</h1>' : `<h1 class="not-ready">Commission API, not ready: ${asText(notReady.join(', '))}</h1>`}
${positions === undefined ? '<p>The positions of the projection cannot be read now.</p>' : projectionOf(positions, now)}
<p><a href="reference">Reference</a> · <a href="openapi.json">OpenAPI</a> · <a href="metrics">Metrics</a> · <a href="readyz">Readiness</a></p>
</body>
</html>
`

const projectionOf = ({ generation, partitions }: LivePositions, now: number): string => `
<p>Answers include everything that was published up to the times below. Each organization is in one partition. (Generation ${asText(generation.name)}, rules version ${asText(String(generation.rules))}.)</p>
<table>
<tr><th>Partition</th><th>Published to offset</th><th>Included up to</th><th>Age</th></tr>
${partitions.map(({ publishedTo, time }, partition) => row([partition, publishedTo, instant(time), age(now - time, time)])).join('\n')}
</table>`

const row = (cells: readonly (string | number)[]): string =>
  `<tr>${cells.map(cell => `<td>${asText(String(cell))}</td>`).join('')}</tr>`

/** A partition without published records has the time 0. */
const instant = (time: number): string => (time === 0 ? 'nothing yet' : new Date(time).toISOString())
const age = (milliseconds: number, time: number): string => {
  if (time === 0) return ''
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

const asText = (text: string): string => text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
