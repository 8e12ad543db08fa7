/**
 * Named places of the source: functions, constants, types and classes beside the imports of a file, and the members of
 * a class as `Class.member`. They are found by the layout that the formatter gives. In: the folder of a copy of the
 * program. Out: the file of a planted bug, before and after.
 * Promises: a bug stays where it is while code moves to another file, and its text may occur again elsewhere.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { files } from '../support/sources.ts'
import type { Mutant } from './mutant.ts'

export type Place = { readonly name: string; readonly from: number; readonly to: number }
export type Places = ReadonlyMap<string, readonly (Place & { readonly file: string })[]>

const declared =
  /^(?:export )?(?:default )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|type|interface) (\w+)/
const member =
  /^ {2}(?!(?:if|for|while|switch|return) )(?:(?:static|async|get|set|readonly|private) |\*)*(#?\w+)\??[(=:<! ]/

/** Returns the places of a file. A class has its own, and one for each member. */
export const placesIn = (text: string): Place[] => {
  const places: (Place & { to: number })[] = []
  let [outer, inner]: [(Place & { to: number }) | undefined, (Place & { to: number }) | undefined] = [
    undefined,
    undefined,
  ]
  let [at, isClass] = [0, false]
  const open = (name: string) => {
    const place = { name, from: at, to: text.length }
    places.push(place)
    return place
  }
  for (const line of text.split('\n')) {
    const [, name] = declared.exec(line) ?? []
    const [, ofClass] = isClass ? (member.exec(line) ?? []) : []
    if (name !== undefined || ofClass !== undefined) {
      if (inner !== undefined) inner.to = at
      inner = undefined
    }
    if (name !== undefined) {
      if (outer !== undefined) outer.to = at
      outer = open(name)
      isClass = /\bclass \w/.test(line)
    } else if (ofClass !== undefined) inner = open(`${outer?.name}.${ofClass}`)
    at += line.length + 1
  }
  return places
}

/** Reads all places of the program in a folder. */
export const readPlaces = (folder: string): Places => {
  const parts = ['schemas', 'core', 'projector', 'api', 'tools', 'services', 'demo', 'bench', 'explorer', 'client']
  const all = files
    .filter(file => /\.tsx?$/.test(file) && parts.some(part => file.startsWith(`${part}/`)))
    // A copy lacks files that git ignores, such as the generated types of the client.
    .filter(file => existsSync(join(folder, file)))
    .flatMap(file => placesIn(readFileSync(join(folder, file), 'utf8')).map(place => ({ ...place, file })))
  return Map.groupBy(all, ({ name }) => name)
}

/**
 * Returns the file of a bug as it is and with the bug.
 * @throws Error unless there is one such place, which has the text exactly once
 */
export const plant = (
  { name, inside, file, find, replace }: Mutant,
  places: Places,
  folder: string,
): { readonly file: string; readonly before: string; readonly after: string } => {
  const found = (places.get(inside ?? '') ?? []).filter(place => file === undefined || place.file === file)
  const [place, ...others] = inside === undefined && file !== undefined ? [{ file, from: 0, to: undefined }] : found
  if (place === undefined) throw new Error(`${name}: there is no ${inside}`)
  if (others.length > 0) {
    const all = [place, ...others].map(one => one.file).join(', ')
    throw new Error(`${name}: ${inside} is in ${all}: add \`file\``)
  }
  const before = readFileSync(join(folder, place.file), 'utf8')
  const [head, text, tail] = [
    before.slice(0, place.from),
    before.slice(place.from, place.to),
    before.slice(place.to ?? before.length),
  ]
  const times = text.split(find).length - 1
  if (times !== 1) throw new Error(`${name}: ${inside ?? file} has the text to replace ${times} times`)
  return { file: place.file, before, after: head + text.replace(find, () => replace) + tail }
}

/** Returns the innermost place that has a text, for a bug that names only a file. */
export const placeOf = (text: string, find: string): string | undefined => {
  const at = text.indexOf(find)
  const around = placesIn(text).filter(({ from, to }) => at >= from && at + find.trimEnd().length <= to)
  return around.toSorted((a, b) => a.to - a.from - (b.to - b.from))[0]?.name
}
