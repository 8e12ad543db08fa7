/** The whole page: the key, the moment, the state of the service, and the view of the address. */
import type { TargetedSubmitEvent } from 'preact'
import { useEffect, useErrorBoundary, useMemo, useRef, useState } from 'preact/hooks'
import { FindForm, MomentForm } from './parts/head-forms.tsx'
import { Link, NamesProvider, ShortInstant } from './parts/identity.tsx'
import { fragmentOf, readAddress, takeKey, type ViewAddress } from './state/address.ts'
import { instantText } from './state/instants.ts'
import { useLive } from './state/live.ts'
import { ReaderContext, useReader, type ViewReader } from './state/reading.ts'
import { NOTHING_OBSERVED, type Observed, openSession, type Session } from './state/session.ts'
import { texts } from './texts.ts'
import { ChangesView } from './views/changes.tsx'
import { CompareView } from './views/compare.tsx'
import { CorrectionsView } from './views/corrections.tsx'
import { HistoryView } from './views/history.tsx'
import { OverviewView } from './views/overview.tsx'
import { PayoutView } from './views/payout.tsx'
import { PayoutsView } from './views/payouts.tsx'
import { PayrollRecordView } from './views/payroll-record.tsx'

type Opened = { readonly session: Session; readonly observed: Observed }

export const App = ({ base, givenKey }: { readonly base: string; readonly givenKey: string | undefined }) => {
  const address = useAddress()
  const [observed, setObserved] = useState(NOTHING_OBSERVED)
  const opened = useRef(0)
  const open = (key: string): Session => {
    const turn = ++opened.current
    // A late answer to an unknown key says nothing about the next one.
    return openSession(base, key, seen => turn === opened.current && setObserved(seen))
  }
  const [session, setSession] = useState(() => (givenKey === undefined ? undefined : open(givenKey)))
  const [error] = useErrorBoundary()
  if (error !== undefined) return <p class="refused">{texts.refused.defect}</p>
  if (session === undefined || observed.isUnknownKey) {
    const onKey = (key: string): void => {
      setObserved(NOTHING_OBSERVED)
      setSession(open(key))
    }
    return <KeyForm isUnknown={observed.isUnknownKey} onKey={onKey} />
  }
  return <Open session={session} observed={observed} address={address} />
}

/** The address of the page, as it changes. */
const useAddress = (): ViewAddress => {
  const [address, setAddress] = useState(() => readAddress(location.hash))
  useEffect(() => {
    const follow = (): void => {
      // A link with a key was opened in this page. A new page takes it, so that nothing of the former key is left.
      if (takeKey(location.hash).key !== undefined) location.reload()
      else setAddress(readAddress(location.hash))
    }
    addEventListener('hashchange', follow)
    return () => removeEventListener('hashchange', follow)
  }, [])
  return address
}

type KeyFormProps = { readonly isUnknown: boolean; readonly onKey: (key: string) => void }

const KeyForm = ({ isUnknown, onKey }: KeyFormProps) => {
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const key = String(new FormData(event.currentTarget).get('key') ?? '').trim()
    event.currentTarget.reset()
    if (key !== '') onKey(key)
  }
  return (
    <main class="key">
      <h1>{texts.title}</h1>
      <p>{texts.key.intro}</p>
      {isUnknown && (
        <p class="refused" role="alert">
          {texts.refused.unauthorized}
        </p>
      )}
      <form onSubmit={submit}>
        <label for="key">{texts.key.label}</label>
        {/* Not a password field: a browser would offer to store it. */}
        <input
          id="key"
          name="key"
          class="secret"
          required
          pattern="\s*[!-~]+\s*"
          autocomplete="off"
          spellcheck={false}
        />
        <button type="submit">{texts.key.open}</button>
      </form>
      <p class="quiet">{texts.key.hint}</p>
    </main>
  )
}

const Open = ({ session, observed, address }: Opened & { readonly address: ViewAddress }) => {
  const { asOf, view, id } = address
  const client = useMemo(() => (asOf === undefined ? session.client : session.client.asOf(asOf)), [session, asOf])
  const { live, latest, latestUpTo, version, readAgain, round } = useLive(session, asOf === undefined)
  const reader = useMemo((): ViewReader => {
    const { client: now, draw } = session
    return { client, now, address, version, readAgain, round, latest, latestUpTo, live, draw }
  }, [client, session, address, version, readAgain, round, latest, latestUpTo, live])
  // Each answer says something new about the service. Only `State` shows it: the view is not drawn again for it.
  const main = useMemo(
    () => (
      <main>
        <NamesProvider>
          <View key={`${view} ${id ?? ''}`} address={address} />
        </NamesProvider>
      </main>
    ),
    [address],
  )
  useEffect(() => {
    document.title = `${texts.views[view]} · ${texts.title}`
    document.querySelector('h1')?.focus({ preventScroll: true })
    scrollTo(0, 0)
  }, [view, id])
  return (
    <ReaderContext.Provider value={reader}>
      <button type="button" class="skip" onClick={skip}>
        {texts.skip}
      </button>
      <Header />
      <div class="top">
        <State observed={observed} />
        <FindForm />
      </div>
      {main}
    </ReaderContext.Provider>
  )
}

/** The fragment is the address of the view, so a button moves the focus, not a link. */
const skip = (): void => document.querySelector('h1')?.focus()

const View = ({ address: { view, id = '' } }: { readonly address: ViewAddress }) => {
  switch (view) {
    case 'overview':
      return <OverviewView />
    case 'payouts':
      return <PayoutsView />
    case 'payout':
      return <PayoutView id={id} />
    case 'history':
      return <HistoryView id={id} />
    case 'compare':
      return <CompareView id={id} />
    case 'payroll':
      return <PayrollRecordView id={id} />
    case 'changes':
      return <ChangesView />
    case 'corrections':
      return <CorrectionsView />
    case 'unknown':
      return <UnknownView />
  }
}

const UnknownView = () => (
  <>
    <h1 tabIndex={-1}>{texts.views.unknown}</h1>
    <p>
      {texts.unknownPage} <Link to={{ view: 'overview' }}>{texts.views.overview}</Link>.
    </p>
  </>
)

/** Views that the head does not name, and the view that leads to each. */
const parentOf: Partial<Record<ViewAddress['view'], ViewAddress['view']>> = { corrections: 'changes' }

const Header = () => {
  const { address } = useReader()
  const shown = address.id === undefined ? (parentOf[address.view] ?? address.view) : 'payouts'
  return (
    <header>
      <strong class="brand">{texts.title}</strong>
      <nav>
        {(['overview', 'payouts', 'changes'] as const).map(view => (
          <Link key={view} to={{ view }} isHere={view === shown}>
            {texts.views[view]}
          </Link>
        ))}
      </nav>
      {/* A new page: nothing of this key or of its data is left in memory. */}
      <button type="button" class="leave" onClick={() => location.reload()}>
        <span class="when-wide">{texts.key.another}</span>
        <span class="when-narrow">{texts.key.other}</span>
      </button>
      <MomentForm key={address.asOf ?? ''} />
    </header>
  )
}

const State = ({ observed: { upTo, busy, moments } }: { readonly observed: Observed }) => {
  const { address, live } = useReader()
  const { asOf, ...now } = address
  const words = texts.state
  const isLive = live.state === 'on' && busy === undefined
  return (
    <aside class="state" aria-label={words.label}>
      {asOf !== undefined && (
        <p class="past" role="status">
          {momentWords(moments.get(asOf))(instantText(asOf))} <a href={fragmentOf(now)}>{texts.moment.now}</a>
        </p>
      )}
      {(upTo !== undefined || isLive) && asOf === undefined && (
        <p class="quiet">
          {upTo !== undefined && words.upTo} {upTo !== undefined && <ShortInstant instant={upTo} />}
          {isLive && <span class="live"> {words.live}</span>}
        </p>
      )}
      {live.state === 'again' && <p class="notice">{words.again}</p>}
      {live.state === 'refused' && <p class="quiet">{words.notLive}</p>}
      {live.state === 'too far' && <p class="quiet">{words.tooFar}</p>}
      {busy !== undefined && (
        <p class="notice" role="status">
          {busy.status === undefined ? words.unanswered : words.busy(busy.status, busy.seconds)}
        </p>
      )}
    </aside>
  )
}

/** The page is of its moment only if the service has accepted it. */
const momentWords = (isAccepted: boolean | undefined): ((moment: string) => string) => {
  if (isAccepted === undefined) return texts.moment.asked
  return isAccepted ? texts.moment.shown : texts.moment.refused
}
