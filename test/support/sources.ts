/**
 * The files of this project as text, for the tests of its rules. Text, not syntax: a quote inside a regular expression
 * can end a string too early.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..', '..')
const notOurs = new Set(['node_modules', 'target', 'dist', '.git', '.cache'])

const filesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (notOurs.has(entry.name) || entry.name.endsWith('.log')) return []
    return entry.isDirectory() ? filesIn(path) : [path]
  })

const comment = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/[^\n]*/
const string = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/
const blank = (text: string): string => text.replace(/[^\n]/g, ' ')

/** `spoken` is the text without comments, `code` also without strings. All three have the same lines. */
export const sourceOf = (path: string) => {
  const text = readFileSync(join(root, path), 'utf8')
  const either = new RegExp(`(${string.source})|${comment.source}`, 'g')
  const spoken = text.replace(either, (found, isString) => (isString === undefined ? blank(found) : found))
  return { path, text, spoken, code: spoken.replace(new RegExp(string, 'g'), blank) }
}
export type Source = ReturnType<typeof sourceOf>

export const files = filesIn('.')
/** A generator writes these types. */
const GENERATED = 'client/src/openapi.ts'
export const sources = files.filter(path => /\.tsx?$/.test(path) && path !== GENERATED).map(sourceOf)
export const within = (...folders: string[]): Source[] =>
  sources.filter(({ path }) => folders.some(folder => path.startsWith(`${folder}/`)))

/** Lists each match of a pattern: file, line and the text that matched. */
export const find = (all: readonly Source[], part: 'text' | 'spoken' | 'code', pattern: RegExp): string[] =>
  all.flatMap(source =>
    [...source[part].matchAll(new RegExp(pattern, `${pattern.flags.replace('g', '')}g`))].map(({ 0: found, index }) => {
      const line = source[part].slice(0, index).split('\n').length
      return `${source.path}:${line}: ${found.trim()}`
    }),
  )
