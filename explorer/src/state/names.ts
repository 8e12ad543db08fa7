/**
 * In: reps and periods. Out: the texts of their names. Those whose names look the same are told apart: each gets a
 * mark, such as its e-mail address or begin, or its id.
 */
import type { Period, Rep } from '../../../client/src/index.ts'
import { texts } from '../texts.ts'
import { latestFirst } from './instants.ts'

/** With their names as the page shows them, which may be empty. */
export type Names = {
  readonly reps: ReadonlyMap<string, Rep>
  /** The latest one first. */
  readonly periods: ReadonlyMap<string, Period>
  /** For reps whose name looks as that of another rep, and for such periods: the text that tells them apart. */
  readonly marks: ReadonlyMap<string, string>
  /** The lists that the key may not read. */
  readonly refused: readonly string[]
}

export type ReadNames = {
  readonly reps: readonly Rep[]
  readonly periods: readonly Period[]
  readonly refused: readonly string[]
}

export const namesAmong = (read: ReadNames): Names => {
  const [reps, periods] = [read.reps.map(withShownName), latestFirst(read.periods).map(withShownName)]
  return {
    reps: new Map(reps.map(rep => [rep.id, rep])),
    periods: new Map(periods.map(period => [period.id, period])),
    marks: new Map([
      ...marksOf(reps, ({ email }) => email),
      // The day of their begin, as it was published.
      ...marksOf(periods, ({ starts_at }) => starts_at.slice(0, 10)),
    ]),
    refused: read.refused,
  }
}

type Named = { readonly id: string; readonly name: string }

const withShownName = <Item extends Named>(item: Item): Item => ({ ...item, name: shownName(item.name) })

/** Returns a name without characters that nobody sees: some turn the text beside them. Empty if nothing is left. */
export const shownName = (name: string): string => {
  const shown = name.replace(UNSEEN, '').replace(BLANK, ' ').trim().normalize('NFC')
  return looksOf(shown) === '' ? '' : shown
}
/** Without the white space, which becomes one space, and the characters that join or choose the forms of others. */
const UNSEEN = /(?![\t-\r]|\u200c|\u200d|\ufe0f)[\p{Cc}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu
const BLANK = /[\s\u2800]+/g
const looksOf = (shown: string): string => shown.replace(/\u200c|\u200d|\ufe0f/g, '').trim()

/** The text of a name for a title: without elements. */
export const nameOfRep = ({ reps, marks }: Names, id: string): string => {
  const rep = reps.get(id)
  if (rep?.name) return withMark(rep.name, marks.get(id))
  return rep?.erased ? `${id} (${texts.sealed.erased})` : id
}
export const nameOfPeriod = ({ periods, marks }: Names, id: string): string =>
  withMark(periods.get(id)?.name || id, marks.get(id))
const withMark = (name: string, mark: string | undefined): string => (mark === undefined ? name : `${name} (${mark})`)

/** @returns the marks by id; none for a record whose name no other record has */
export const marksOf = <Item extends Named>(
  all: readonly Item[],
  textOf: (item: Item) => string | null,
): (readonly [id: string, mark: string])[] => {
  const named = all.filter(({ name }) => name !== '')
  // In NFKC: a ligature looks as its letters.
  const shared = [...Map.groupBy(named, ({ name }) => looksOf(name).normalize('NFKC')).values()].filter(
    ({ length }) => length > 1,
  )
  return shared.flatMap(namesakes => {
    // A text that two of them have tells nobody apart.
    const marks = namesakes.map(item => shownName(textOf(item) ?? ''))
    return namesakes.map(({ id }, at) => {
      const mark = marks[at]
      return [id, mark && marks.indexOf(mark) === marks.lastIndexOf(mark) ? mark : id] as const
    })
  })
}
