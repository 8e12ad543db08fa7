/** Results of a whole run: figures as JSON, and the pages made from them. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Figure, type FigureName, figureNames } from '../rig/bench.ts'
import type { Machine } from '../rig/machine.ts'
import { drawPicture } from './picture.ts'
import { quotedFigures, withFigures } from './quoted-figures.ts'
import { measuredApart, pictureFile, renderPage } from './report.ts'

export type Results = { readonly machine: Machine; readonly figures: readonly Figure[] }

const root = join(import.meta.dirname, '..', '..')
const resultsFile = join(root, 'bench/results.json')
const docs = join(root, 'docs')
const performancePage = join(docs, 'performance.md')

/** @throws Error if no results are stored */
export const readResults = async (): Promise<Results> => {
  const text = await readFile(resultsFile, 'utf8').catch(() => {
    throw new Error('no whole run is stored: there is no bench/results.json')
  })
  return JSON.parse(text)
}

/** @throws Error for a value that is no number: JSON would have it as null, and a page cannot show it */
export const requireMeasured = ({ title, rows }: Figure): void => {
  for (const { what, value, lowest = value, highest = value } of rows) {
    const wrong = [value, lowest, highest].find(each => !Number.isFinite(each))
    if (wrong !== undefined) throw new Error(`${title}, ${what}: nothing was measured, got ${wrong}`)
  }
}

/** Stores the results in bench/results.json. */
export const keepResults = (results: Results): Promise<void> =>
  writeFile(resultsFile, `${JSON.stringify(results, null, 2)}\n`)

/** Replaces the stored figures of the same names by those of a part of the bench, and says when they ran. */
export const replaceFigures = (stored: Results, { machine, figures }: Results): Results => {
  const measured = `${measuredApart}${machine.run}, commit ${machine.commit}.`
  const named = (from: readonly Figure[], name: FigureName): Figure[] => from.filter(figure => figure.name === name)
  return {
    machine: stored.machine,
    figures: figureNames.flatMap(name => {
      const [first, ...others] = named(figures, name)
      if (first === undefined) return named(stored.figures, name)
      return [{ ...first, notes: [measured, ...first.notes] }, ...others]
    }),
  }
}

/** Writes the figures of docs/performance.md, its pictures, and the lines of other pages that quote figures. */
export const renderResults = async (results: Results): Promise<void> => {
  const before = await readFile(performancePage, 'utf8')
  await writeFile(performancePage, renderPage(before, results.machine, results.figures))
  for (const picture of results.figures.flatMap(({ pictures = [] }) => pictures)) {
    await writeFile(join(docs, pictureFile(picture)), drawPicture(picture))
  }
  for (const quoted of quotedFigures) {
    const page = join(root, quoted.file)
    await writeFile(page, withFigures(await readFile(page, 'utf8'), quoted, results.figures))
  }
}
