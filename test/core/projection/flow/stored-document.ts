/** One document of a simulated Elasticsearch: reads, creation, and writes conditional on its seq_no. */
import type { Answer, Request } from '../../../../core/store/elasticsearch/client.ts'
import type { TimesDocument } from '../../../../schemas/stored/documents.ts'

type Body = TimesDocument['body']

export const storedDocument = () => {
  let body: Body | undefined
  let seqNo = 0
  const store = (next: Body): void => {
    body = next
    seqNo++
  }
  /** What happens before the answer to the next writes: another process writes, or the response is lost. */
  const next: ('lost' | { readonly before: Body })[] = []
  const writes: Body[] = []

  const answer = async ({ method, path, query, body: sent }: Request): Promise<Answer> => {
    const version = () => ({ _seq_no: seqNo, _primary_term: 1 })
    if (method === 'GET') {
      if (body === undefined) return { status: 404, body: { found: false } }
      return { status: 200, body: { ...version(), _source: { kind: 'times', body } } }
    }
    const event = next.shift()
    if (typeof event === 'object') store(event.before)
    const isCreation = path.includes('/_create/')
    const isUnconditional = !isCreation && query === undefined
    const isSeen = isCreation ? body === undefined : body !== undefined && query?.if_seq_no === seqNo
    if (!isSeen && !isUnconditional) return { status: 409, body: {} }
    store((sent as TimesDocument).body)
    writes.push((sent as TimesDocument).body)
    return event === 'lost' ? { status: 409, body: {} } : { status: 200, body: version() }
  }
  const remove = (): void => {
    body = undefined
  }
  return { answer, body: () => body, writes, next, remove }
}
