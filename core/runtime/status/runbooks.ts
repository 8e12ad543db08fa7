/**
 * docs/runbooks.md as a page of the admin ports, so that a link to it works wherever the process runs. In: the file
 * beside the sources. Out: HTML. It knows only the constructs of Markdown that the file uses.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { asText, framed } from './frame.ts'

const FILE = join(import.meta.dirname, '../../../docs/runbooks.md')

/** The address of the paragraph about an alert, relative to the pages of an admin port. */
export const runbookAddress = (alert: string): string => `runbooks#${alert.toLowerCase()}`

export const runbooksPage = async (): Promise<string> => runbooksHtml(await readFile(FILE, 'utf8'))

export const runbooksHtml = (markdown: string): string => {
  const blocks = markdown.split(/\n{2,}/).filter(block => block.trim() !== '' && !block.startsWith('!['))
  return framed('Runbooks', `<p><a href="./">Status</a></p>\n${blocks.map(blockOf).join('\n')}`)
}

const blockOf = (block: string): string => {
  const [, marks, title] = /^(#{1,3}) (.+)$/.exec(block.trim()) ?? []
  if (marks === undefined || title === undefined) return `<p>${inline(block.trim())}</p>`
  return `<h${marks.length} id="${asText(title.toLowerCase().replaceAll(' ', '-'))}">${inline(title)}</h${marks.length}>`
}

const inline = (text: string): string =>
  text
    .split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^*]+\*|\[(?:`[^`]+`|[^\]])+\]\([^)]+\))/)
    .map((part, at) => (at % 2 === 0 ? asText(part) : spanOf(part)))
    .join('')

const spanOf = (part: string): string => {
  if (part.startsWith('`')) return `<code>${asText(part.slice(1, -1))}</code>`
  if (part.startsWith('**')) return `<strong>${asText(part.slice(2, -2))}</strong>`
  if (part.startsWith('*')) return `<em>${asText(part.slice(1, -1))}</em>`
  const [, text = '', address = ''] = /^\[(.+)\]\((.+)\)$/.exec(part) ?? []
  if (address.startsWith('#')) return `<a href="${asText(address)}">${inline(text)}</a>`
  // Other pages are not served here. Their paths are those of this repository.
  const file = address.startsWith('../') ? address.slice(3) : `docs/${address}`
  return text === file ? `<code>${asText(file)}</code>` : `${inline(text)} <span class="quiet">(${asText(file)})</span>`
}
