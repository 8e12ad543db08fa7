/** Names of reps and periods in place of their ids, links between views, ids and instants. */
import { type ComponentChildren, createContext } from 'preact'
import { useContext, useMemo } from 'preact/hooks'
import type { Client } from '../../../client/src/index.ts'
import { isDecided, lacksPermission } from '../refusals.ts'
import { fragmentOf, type ViewAddress } from '../state/address.ts'
import { useUnchanged } from '../state/drawing.ts'
import { instantText } from '../state/instants.ts'
import { type Names, namesAmong, type ReadNames } from '../state/names.ts'
import { useReader, useReading } from '../state/reading.ts'
import { texts } from '../texts.ts'
import { wordsFor } from './refused.tsx'

const noNames: Names = { reps: new Map(), periods: new Map(), marks: new Map(), refused: [] }
const NamesContext = createContext(noNames)
export const useNames = (): Names => useContext(NamesContext)

/** Records that are read for their names. Others are shown with their ids. */
const NAMES_MAX = 2_000

const readNames = async (client: Client): Promise<ReadNames> => {
  const refused = new Set<string>()
  // A key that may not read them sees ids. After another error, the names that are known stay.
  const read = async <Item extends { readonly id: string }>(what: string, list: AsyncIterable<Item>) => {
    const items: Item[] = []
    try {
      for await (const item of list) if (items.push(item) >= NAMES_MAX) break
    } catch (error) {
      if (!lacksPermission(error)) throw error
      refused.add(what)
    }
    return items
  }
  const [reps, periods] = await Promise.all([read('reps', client.reps()), read('periods', client.periods())])
  // Not in the order of their answers.
  return { reps, periods, refused: ['reps', 'periods'].filter(what => refused.has(what)) }
}

export const NamesProvider = ({ children }: { readonly children: ComponentChildren }) => {
  const reading = useReading('names', readNames)
  const known = useUnchanged(reading.value)
  const value = useMemo(() => (known === undefined ? noNames : namesAmong(known)), [known])
  const { error } = reading
  const isSettled = reading.value !== undefined || error !== undefined
  return (
    <NamesContext.Provider value={value}>
      {value.refused.length > 0 && <p class="quiet">{texts.refused.names(value.refused)}</p>}
      {isOwn(error) && <p class="notice">{texts.refused.noNames(wordsFor(error, 'names'))}</p>}
      {/* Ids that become names would move the page. It is shown with its names, or after a moment without. */}
      <div class={isSettled ? 'named' : 'unnamed'}>{children}</div>
    </NamesContext.Provider>
  )
}

/** Views say themselves why the key or the moment is refused. */
const isOwn = (error: unknown): boolean => error !== undefined && !isDecided(error)

/** The name of a rep, as a link to the payouts and totals of this rep. */
export const RepName = ({ id }: { readonly id: string }) => {
  const rep = useNames().reps.get(id)
  // The mark is about the name only if there is none: it may be about the e-mail address.
  return (
    <Link to={{ view: 'payouts', rep: id }}>
      <span title={id}>
        {rep?.name || (
          <>
            <SealedMark of={rep} /> <IdText id={id} />
          </>
        )}
        {rep?.name && <NameMark of={id} />}
      </span>
    </Link>
  )
}

export const PeriodName = ({ id }: { readonly id: string }) => {
  const period = useNames().periods.get(id)
  return (
    <span title={id}>
      {period?.name || <IdText id={id} />}
      <NameMark of={id} />
    </span>
  )
}

const NameMark = ({ of: id }: { readonly of: string }) => {
  const mark = useNames().marks.get(id)
  if (mark === undefined) return null
  return (
    <>
      {' '}
      <span class="quiet detail mark">({mark})</span>
    </>
  )
}

/** Says that a text is gone, or that nobody can read it. */
export const SealedMark = ({
  of,
}: {
  readonly of: { readonly erased?: true; readonly unreadable?: true } | undefined
}) => {
  if (of?.erased) return <em title={texts.sealed.erasedHint}>{texts.sealed.erased}</em>
  if (of?.unreadable) return <em title={texts.sealed.unreadableHint}>{texts.sealed.unreadable}</em>
  return null
}

/** An id: quiet, and in one line. */
export const IdText = ({ id }: { readonly id: string }) => (
  <code class="id" title={id}>
    {id}
  </code>
)

/** A deal, as a link to all current payouts that have a line of it. */
export const DealLink = ({ id }: { readonly id: string | null }) =>
  id === null ? (
    <>–</>
  ) : (
    <Link to={{ view: 'payouts', deal: id }}>
      <IdText id={id} />
    </Link>
  )

/** An instant without the parts of its second, which its title has. */
export const ShortInstant = ({ instant }: { readonly instant: string }) => (
  <time dateTime={instant} title={instantText(instant)}>
    {instantText(instant.replace(/\.\d+/, ''))}
  </time>
)

/** A link to a view, as of the same moment. */
export const Link = ({ to, isHere = false, children }: LinkProps) => {
  const { asOf } = useReader().address
  return (
    <a href={fragmentOf(asOf === undefined ? to : { ...to, asOf })} {...(isHere && { 'aria-current': 'page' })}>
      {children}
    </a>
  )
}
type LinkProps = {
  readonly to: Omit<ViewAddress, 'asOf'>
  /** Whether the page shows this view. */
  readonly isHere?: boolean
  readonly children: ComponentChildren
}

/** A payroll record, as a link to its page. */
export const PayrollLink = ({ id }: { readonly id: string }) => (
  <Link to={{ view: 'payroll', id }}>
    <IdText id={id} />
  </Link>
)
