/**
 * A page for people that says whether a process can be trusted now. In: its state. Out: HTML that reloads itself, and
 * asks nobody else for anything. All given texts are escaped.
 */
const REFRESH_SECONDS = 5

export type StatusPage = {
  /** The name of the program. */
  readonly title: string
  /** Why it cannot work now; empty if it can. */
  readonly notReady: readonly string[]
  /** Sentences about other things that are wrong. */
  readonly warnings?: readonly string[]
  /** Sentences above the table. */
  readonly notes: readonly string[]
  readonly table?: {
    readonly heads: readonly string[]
    readonly rows: readonly (readonly (string | number)[])[]
  }
  /** Addresses relative to the page, and their texts. */
  readonly links: readonly (readonly [address: string, text: string])[]
}

/** A status page loads its own styles, and no icon. */
export const STATUS_PAGE_POLICY =
  "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

export const statusPageHtml = ({ title, notReady, warnings = [], notes, table, links }: StatusPage): string => {
  const isReady = notReady.length === 0
  const heading = isReady ? `${title}: ready` : `${title}, not ready: ${notReady.join(', ')}`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="${REFRESH_SECONDS}">
<title>${asText(title)}: ${isReady ? 'ready' : 'not ready'}</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<h1 class="${isReady ? 'ready' : 'not-ready'}">${asText(heading)}</h1>
${warnings.map(warning => `<p class="warning">${asText(warning)}</p>`).join('\n')}
${notes.map(note => `<p>${asText(note)}</p>`).join('\n')}
${table === undefined ? '' : tableOf(table)}
<p>${links.map(([address, text]) => `<a href="${asText(address)}">${asText(text)}</a>`).join(' · ')}</p>
</body>
</html>
`
}

const tableOf = ({ heads, rows }: NonNullable<StatusPage['table']>): string => {
  const row = (cells: readonly (string | number)[], kind: 'th' | 'td'): string =>
    `<tr>${cells.map(cell => `<${kind}>${asText(String(cell))}</${kind}>`).join('')}</tr>`
  const lines = [row(heads, 'th'), ...rows.map(cells => row(cells, 'td'))]
  return `<div class="wide" tabindex="0"><table>\n${lines.join('\n')}\n</table></div>`
}

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

const asText = (text: string): string => text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)

/** The colours of the explorer. */
const STYLE = `
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; background: light-dark(#f6f7f9, #14171b); color: light-dark(#1a1f26, #e9ecef); }
h1 { font-size: 1.4rem; border-left: .5rem solid; padding-left: .75rem; }
a { color: light-dark(#1f5fbf, #8ab4f8); }
.ready { border-color: light-dark(#1b7340, #7fd6a0); }
.not-ready { border-color: light-dark(#b3261e, #ff9d94); }
.warning { background: light-dark(#fff4d6, #3a3118); border-left: .25rem solid light-dark(#d9a514, #b98d1c); padding: .5rem .75rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .25rem .75rem; border-bottom: 1px solid light-dark(#d8dde3, #363d47); font-variant-numeric: tabular-nums; }
th { font-weight: 600; }
`
