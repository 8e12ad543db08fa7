/** The status page of the API: whether it can answer, and up to which time its answers are complete. */
import { ageText, statusPageHtml } from '../../core/runtime/index.ts'
import type { LivePositions } from '../../core/store/index.ts'
import type { Readiness } from './ready.ts'

/** Returns the page as HTML. @param now milliseconds since 1970 */
export const statusPage = ({ notReady, positions }: Readiness, now: number): string =>
  statusPageHtml({
    title: 'Commission API',
    notReady,
    ...(positions === undefined
      ? { notes: ['The positions of the projection cannot be read now.'] }
      : projectionOf(positions, now)),
    links: [
      ['reference', 'Reference'],
      ['openapi.json', 'OpenAPI'],
      ['metrics', 'Metrics'],
      ['readyz', 'Readiness'],
    ],
  })

const projectionOf = ({ generation, partitions }: LivePositions, now: number) => ({
  notes: [
    `Answers include everything that was published up to the times below. Each organization is in one partition. (Generation ${generation.name}, rules version ${generation.rules}.)`,
  ],
  table: {
    heads: ['Partition', 'Published to offset', 'Included up to', 'Age'],
    rows: partitions.map(({ publishedTo, time }, partition) => [
      partition,
      publishedTo,
      // A partition without published records has the time 0.
      time === 0 ? 'nothing yet' : new Date(time).toISOString(),
      time === 0 ? '' : ageText(now - time),
    ]),
  },
})
