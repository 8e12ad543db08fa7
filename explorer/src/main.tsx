/** Starts the page: takes a key out of the address before anything else, and opens the view of the address. */
import { render } from 'preact'
import { App } from './app.tsx'
import { copyAmounts } from './parts/amount.tsx'
import { isKeyText, takeKey } from './state/address.ts'

const { key, rest } = takeKey(location.hash)
// Replaced, not added: the history of the browser must not have it either.
if (key !== undefined) history.replaceState(null, '', rest)

addEventListener('copy', copyAmounts)
const api = document.querySelector<HTMLMetaElement>('meta[name="commission-api"]')?.content ?? '/api/v1'
const root = document.getElementById('app')
if (root !== null)
  render(
    <App base={new URL(api, location.href).href} givenKey={key !== undefined && isKeyText(key) ? key : undefined} />,
    root,
  )
