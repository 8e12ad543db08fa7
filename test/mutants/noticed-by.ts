/**
 * `noticed-by.json` holds the test file that noticed each planted bug in the last `npm run mutants -- --quick`. The
 * next quick run begins with this file: one file takes some seconds, all unit tests near the bug twenty.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..', '..')
const path = join(import.meta.dirname, 'noticed-by.json')

/** Test files by names of bugs. A file that no longer exists is left out: to run it would fail without any bug. */
export const readNoticedBy = (): Map<string, string> => {
  const stored: Record<string, string> = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {}
  return new Map(Object.entries(stored).filter(([, test]) => existsSync(join(root, test))))
}

/** Stores the files of the bugs with the given names, in their order. */
export const storeNoticedBy = (noticedBy: ReadonlyMap<string, string>, names: readonly string[]): void => {
  const stored = Object.fromEntries(
    names.flatMap(name => {
      const test = noticedBy.get(name)
      return test === undefined ? [] : [[name, test]]
    }),
  )
  writeFileSync(path, `${JSON.stringify(stored, null, 2)}\n`)
}
