/** The feed of the organization: changes as they come, and all of them. */
import { ChangeTable } from '../parts/change-table.tsx'
import { Link } from '../parts/identity.tsx'
import { ReadingState, wordsFor } from '../parts/refused.tsx'
import { allChanges } from '../state/latest-changes.ts'
import { PAGE_RECORDS, usePages } from '../state/pages.ts'
import { useReader } from '../state/reading.ts'
import { texts } from '../texts.ts'

export const ChangesView = () => {
  const { latest, live, address } = useReader()
  const words = texts.changes
  const pages = usePages(
    'changes',
    client => allChanges(client, PAGE_RECORDS),
    async () => undefined,
  )
  const all = pages.value?.items ?? []
  const isLatestFirst = (all.at(0)?.sequence ?? 0) >= (all.at(-1)?.sequence ?? 0)
  const isNow = address.asOf === undefined
  // Before it follows, the page cannot promise to show each change: one that comes now may be the last one it finds.
  const isWaiting = isNow && live.state === 'on'
  return (
    <>
      <h1 tabIndex={-1}>{words.title}</h1>
      <section aria-live="polite">
        <h2>{words.latest}</h2>
        {!isNow && <p class="quiet">{words.notNow}</p>}
        {live.state === 'too far' && <p class="notice">{texts.state.tooFar}</p>}
        {live.state === 'refused' && <p class="notice">{wordsFor(live.why, 'changes')}</p>}
        {isNow && live.state === 'off' && <p class="quiet">{texts.reading}</p>}
        {isWaiting && latest.length === 0 && <p class="quiet">{words.waiting}</p>}
        {latest.length > 0 && <ChangeTable changes={latest} caption={words.latest} />}
      </section>
      <section>
        <h2>{words.all}</h2>
        <ReadingState reading={pages} what="changes" />
        {pages.value?.items.length === 0 && <p>{texts.none}</p>}
        {all.length > 0 && (
          <>
            <p class="quiet">
              {isLatestFirst ? words.latestFirst : words.oldestFirst}{' '}
              <Link to={{ view: 'corrections' }}>{texts.overview.allCorrections}</Link>
            </p>
            <ChangeTable changes={all} caption={words.all} />
          </>
        )}
        {pages.value?.hasMore && (
          <button type="button" onClick={pages.more} disabled={pages.isReading}>
            {texts.more}
          </button>
        )}
      </section>
    </>
  )
}
