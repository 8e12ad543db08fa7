/** What an organization's records are read with: the API's own readers, so that what is exported is what is answered. */
import type { Client } from '@elastic/elasticsearch'
import { createElasticsearch, type Transport } from '../../api/elasticsearch.ts'
import { Refusal } from '../../api/failures.ts'
import { createReaders, type Readers } from '../../api/readers.ts'
import { CommandError } from '../failures.ts'
import { READ_AGAIN_MS, READ_ATTEMPTS } from '../limits.ts'

export type Reading = {
  readonly readers: Readers
  /** Asks until it is answered. @throws CommandError where it is refused, or never is */
  readonly patiently: <Result>(read: (signal: AbortSignal) => Promise<Result>) => Promise<Result>
}

/** @throws CommandError for an organization of which nothing was ever published: its id is mistyped, more likely than not */
export const refuseUnknown = async (org: string, { readers, patiently }: Reading): Promise<void> => {
  const { last } = await patiently(signal => readers.totals(org, undefined, signal))
  if (!last) throw new CommandError(`nothing was ever published for ${org}`)
}

/** A refusal of the API in the words of the command line. */
const inCommands = (message: string): string =>
  message.startsWith('`as_of` must be an instant')
    ? '--as-of: there is no such change of this organization (that of a rep or a period has .n behind its id)'
    : message.replace('`as_of`', '--as-of')

type Parts = {
  readonly client: Client
  readonly prefix: string
  readonly now: () => number
  readonly sleep: (milliseconds: number) => Promise<void>
  readonly signal: AbortSignal
}

export const openReaders = ({ client, prefix, now, sleep, signal }: Parts): Reading => {
  const elasticsearch = createElasticsearch({
    transport: client.transport.request.bind(client.transport) as Transport,
    answered: () => undefined,
    otherNodes: 0,
    observe: () => undefined,
    now,
  })
  const { readers } = createReaders(prefix, elasticsearch.search, elasticsearch.multiGet)
  const patiently: Reading['patiently'] = async read => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await read(signal)
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        if (error.code !== 'unavailable') throw new CommandError(inCommands(error.message))
        signal.throwIfAborted()
        if (attempt === READ_ATTEMPTS) throw new CommandError(`Elasticsearch cannot be read: ${error.because}`)
        await sleep(READ_AGAIN_MS)
      }
    }
  }
  return { readers, patiently }
}
