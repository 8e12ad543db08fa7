/** The option `--as-of`, as `as_of` of the API. */
import { InvalidArgumentError, Option } from 'commander'
import { type Moment, momentOf } from '../../../core/reading/index.ts'

/** An instant or the id of a change, as `as_of` of the API. */
const parseAsOf = (text: string): Moment => {
  const asOf = momentOf(text)
  if (asOf) return asOf
  throw new InvalidArgumentError('Expected an instant (2026-02-01T08:30:00Z) or the id of a change.')
}

export const asOfOption = (): Option =>
  new Option('--as-of <moment>', 'a past instant, or the id of a change (default: the last change)').argParser(
    parseAsOf,
  )
