/**
 * A page for people that says whether a process can be trusted now. In: its state. Out: HTML that reloads itself, and
 * asks nobody else for anything. All given texts are escaped.
 */
import { type Ages, agePicture } from './ages.ts'
import { asText, framed } from './frame.ts'
import { runbookAddress } from './runbooks.ts'

const REFRESH_SECONDS = 5

/** Something that is wrong, and the alert of which docs/runbooks.md says what to do. */
export type Trouble = { readonly text: string; readonly alert?: string }

/** A number is grouped and aligned to the right. */
export type Cell = string | number | { readonly text: string; readonly mark: 'good' | 'work' | 'bad' }

type Table = {
  readonly title: string
  /** A sentence below the title. */
  readonly note?: string
  readonly heads: readonly string[]
  readonly rows: readonly (readonly Cell[])[]
}

export type StatusPage = {
  /** The name of the program. */
  readonly title: string
  readonly isReady: boolean
  readonly troubles: readonly Trouble[]
  /** Sentences about the whole. */
  readonly notes: readonly string[]
  /** Whose age it is, the ages, and milliseconds since 1970. */
  readonly ages: { readonly of: string; readonly samples: ReturnType<Ages['list']>; readonly now: number }
  readonly tables: readonly Table[]
  /** Addresses relative to the page, and their texts. */
  readonly links: readonly (readonly [address: string, text: string])[]
}

export const statusPageHtml = ({ title, isReady, troubles, notes, ages, tables, links }: StatusPage): string => {
  const heading = asText(`${title}: ${isReady ? 'ready' : 'not ready'}`)
  const body = [
    `<h1 class="${isReady ? 'ready' : 'not-ready'}">${heading}</h1>`,
    troublesOf(troubles),
    `<section>
${notes.map(note => `<p>${asText(note)}</p>`).join('\n')}
${agePicture(ages.of, ages.samples, ages.now)}
</section>`,
    ...tables.map(tableOf),
    `<nav aria-label="Pages of this process">${links.map(([address, text]) => `<a href="${asText(address)}">${asText(text)}</a>`).join('\n')}</nav>`,
  ]
  return framed(heading, body.join('\n'), REFRESH_SECONDS)
}

const troublesOf = (troubles: readonly Trouble[]): string => {
  if (troubles.length === 0) return '<p class="quiet">Nothing is wrong that this process can see.</p>'
  const items = troubles.map(({ text, alert }) => {
    const link = alert === undefined ? '' : ` <a href="${asText(runbookAddress(alert))}">Runbook: ${asText(alert)}</a>`
    return `<li>${asText(text)}${link}</li>`
  })
  return `<section class="wrong">
<h2>What is wrong</h2>
<ul>
${items.join('\n')}
</ul>
</section>`
}

const tableOf = ({ title, note, heads, rows }: Table): string => {
  const isNumber = heads.map(
    (_, column) =>
      rows.some(row => typeof row[column] === 'number') &&
      rows.every(row => row[column] === '' || typeof row[column] === 'number'),
  )
  const classOf = (column: number): string => (isNumber[column] ? ' class="number"' : '')
  const head = heads.map((text, column) => `<th scope="col"${classOf(column)}>${asText(text)}</th>`).join('')
  const lines = rows.map(
    cells =>
      `<tr>${cells.map((cell, column) => `<td${classOf(column)} data-head="${asText(heads[column] ?? '')}">${cellOf(cell)}</td>`).join('')}</tr>`,
  )
  return `<section>
<h2>${asText(title)}</h2>
${note === undefined ? '' : `<p>${asText(note)}</p>`}
${rows.length === 0 ? '' : `<table>\n<thead><tr>${head}</tr></thead>\n<tbody>\n${lines.join('\n')}\n</tbody>\n</table>`}
</section>`
}

const cellOf = (cell: Cell): string => {
  if (typeof cell === 'number') return grouped(cell)
  if (typeof cell === 'string') return `<span>${asText(cell)}</span>`
  return `<span class="${cell.mark}">${asText(cell.text)}</span>`
}

/** A whole number with a comma before each three digits. */
export const grouped = (value: number): string => value.toLocaleString('en-US')

/** An instant to the second. @param time milliseconds since 1970 */
export const utcText = (time: number): string => `${new Date(time).toISOString().slice(0, 19).replace('T', ' ')} UTC`
