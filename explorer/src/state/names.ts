/**
 * In: reps and periods. Out: the texts of their names. Those of one name are told apart: each gets a mark, such as its
 * e-mail address or begin, or its id.
 */
import type { Period, Rep } from '../../../client/src/index.ts'
import { texts } from '../texts.ts'
import { latestFirst } from './instants.ts'

export type Names = {
  readonly reps: ReadonlyMap<string, Rep>
  /** The latest one first. */
  readonly periods: ReadonlyMap<string, Period>
  /** For reps whose name another rep has, too, and for such periods: the text that tells them apart. */
  readonly marks: ReadonlyMap<string, string>
  /** The lists that the key may not read. */
  readonly refused: readonly string[]
}

export type ReadNames = {
  readonly reps: readonly Rep[]
  readonly periods: readonly Period[]
  readonly refused: readonly string[]
}

export const namesAmong = ({ reps, periods, refused }: ReadNames): Names => ({
  reps: new Map(reps.map(rep => [rep.id, rep])),
  periods: new Map(latestFirst(periods).map(period => [period.id, period])),
  marks: new Map([
    ...marksOf(reps, ({ email }) => email),
    // The day of their begin, as it was published.
    ...marksOf(periods, ({ starts_at }) => starts_at.slice(0, 10)),
  ]),
  refused,
})

/** The text of a name for a title: without elements. */
export const nameOfRep = ({ reps, marks }: Names, id: string): string => {
  const rep = reps.get(id)
  if (rep?.name) return withMark(rep.name, marks.get(id))
  return rep?.erased ? `${id} (${texts.sealed.erased})` : id
}
export const nameOfPeriod = ({ periods, marks }: Names, id: string): string =>
  withMark(periods.get(id)?.name || id, marks.get(id))
const withMark = (name: string, mark: string | undefined): string => (mark === undefined ? name : `${name} (${mark})`)

type Named = { readonly id: string; readonly name: string }

/** @returns the marks by id; none for a record whose name no other record has */
export const marksOf = <Item extends Named>(
  all: readonly Item[],
  textOf: (item: Item) => string | null,
): (readonly [id: string, mark: string])[] => {
  const named = all.filter(({ name }) => name !== '')
  const shared = [...Map.groupBy(named, ({ name }) => name).values()].filter(({ length }) => length > 1)
  return shared.flatMap(namesakes => {
    // A text that two of them have tells nobody apart.
    const marks = namesakes.map(textOf)
    return namesakes.map(({ id }, at) => {
      const mark = marks[at]
      return [id, mark && marks.indexOf(mark) === marks.lastIndexOf(mark) ? mark : id] as const
    })
  })
}
