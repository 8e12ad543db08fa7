/** HTML and SVG as text. Every value that is no markup is escaped: names come from publishers. */
import { printable } from './terminal.ts'

export class Markup {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Part = string | number | Markup | readonly Part[]

/** Tag of a template: its own text is markup, its values are text of an element or of a quoted attribute. */
export const markup = (template: TemplateStringsArray, ...parts: readonly Part[]): Markup =>
  new Markup(template.reduce((text, after, index) => `${text}${textOf(parts[index - 1] ?? '')}${after}`))

const textOf = (part: Part): string => {
  if (part instanceof Markup) return part.text
  return typeof part === 'object' ? part.map(textOf).join('') : escaped(String(part))
}

const references: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Control characters, which may not occur in XML, become visible escapes. */
const escaped = (text: string): string =>
  printable(text).replace(/[&<>"']/g, character => references[character] ?? character)
