/** All payouts that replaced another one, since a moment or the latest: by how much each differs, and all together. */
import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import type { Change } from '../../../client/src/index.ts'
import { CorrectionSums, CorrectionTable } from '../parts/correction-table.tsx'
import { ReadingState } from '../parts/refused.tsx'
import { fragmentOf, isOfField, momentIn } from '../state/address.ts'
import { CHANGES_LOOKED_AT, type Correction, correctionsAmong } from '../state/corrections.ts'
import { momentBefore } from '../state/instants.ts'
import { latestChanges } from '../state/latest-changes.ts'
import { type PagesBeside, usePages } from '../state/pages.ts'
import { useReader } from '../state/reading.ts'
import { texts } from '../texts.ts'

/** Changes that are looked at if nobody says since when: one request. */
const LATEST = 200

export const CorrectionsView = () => {
  const { since = '' } = useReader().address
  return (
    <>
      <h1 tabIndex={-1}>{texts.views.corrections}</h1>
      <SinceForm key={since} since={since} />
      <Corrections since={momentIn(since)} />
    </>
  )
}

const SinceForm = ({ since }: { readonly since: string }) => {
  const { address } = useReader()
  const { since: _, ...others } = address
  const [isWrong, setIsWrong] = useState(false)
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const text = String(new FormData(event.currentTarget).get('since') ?? '').trim()
    const isTaken = text === '' || isOfField.since(text)
    setIsWrong(!isTaken)
    if (isTaken) location.hash = fragmentOf({ ...others, ...(text !== '' && { since: text }) })
  }
  const words = texts.corrections
  return (
    <form class="since" onSubmit={submit}>
      <label for="since">{words.since}</label>
      <input
        id="since"
        name="since"
        defaultValue={since}
        placeholder={words.example}
        title={texts.moment.hint}
        {...(isWrong && { 'aria-invalid': true, 'aria-describedby': 'since-wrong' })}
        autocomplete="off"
        spellcheck={false}
      />
      <button type="submit">{texts.moment.show}</button>
      {isWrong && (
        <p class="notice" id="since-wrong" role="alert">
          {texts.moment.wrong}
        </p>
      )}
    </form>
  )
}

const Corrections = ({ since }: { readonly since: string | undefined }) => {
  const size = since === undefined ? LATEST : CHANGES_LOOKED_AT
  const pages = usePages(
    JSON.stringify(['corrections', since]),
    client => latestChanges(client, size, size, since && momentBefore(since)),
    correctionsAmong,
  )
  return (
    <>
      <ReadingState reading={pages} what="corrections" />
      {pages.value !== undefined && <Found pages={pages.value} />}
      {pages.value?.hasMore && (
        <button type="button" onClick={pages.more} disabled={pages.isReading}>
          {texts.more}
        </button>
      )}
    </>
  )
}

const Found = ({ pages }: { readonly pages: PagesBeside<Change, readonly Correction[]> }) => {
  const { items, hasMore, beside: found } = pages
  return (
    <>
      {found.length > 0 && (
        <>
          <section>
            <CorrectionSums found={found} />
            <p class="quiet">{texts.corrections.explained}</p>
          </section>
          <CorrectionTable found={found} />
        </>
      )}
      <p class="quiet" aria-live="polite">
        {texts.corrections.shown(found.length, items.length, hasMore)}
      </p>
    </>
  )
}
