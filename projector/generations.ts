/**
 * Which generations there are: the one the API reads, those that projectors keep up, one that is being made, one to go back to. A
 * single document, replaced only as it was last seen: whoever decides, decides on what is.
 */
import { controlIndexOf, LIVE_ID, type LiveDocument } from '../schemas/documents.ts'
import { StopError } from './failures.ts'
import type { PrepareSteps } from './prepare.ts'

export type Generations = {
  readonly live: string
  /** Kept up by projectors, the live one among them. */
  readonly kept: readonly string[]
  readonly building: string | null
  readonly previous: string | null
  /** Those that were found equal to another, by name. */
  readonly verified: Readonly<Record<string, string>>
  /** Of those that followed another and were made live: the positions from which on they decide by themselves, by name. */
  readonly alone: Readonly<Record<string, readonly number[]>>
}

/** Undefined before the first start. */
export const readGenerations = async (steps: Steps): Promise<Generations | undefined> =>
  (await find(steps))?.generations

/** @throws StopError `index_missing` where nothing was projected yet; what `change` throws, and then nothing is changed */
export const changeGenerations = async (
  steps: Steps,
  change: (now: Generations) => Generations,
): Promise<Generations> => {
  for (;;) {
    const found = await find(steps)
    if (found === undefined) throw new StopError('index_missing', `${LIVE_ID} in ${controlIndexOf(steps.prefix)}`)
    const changed = change(found.generations)
    const { live: generation, kept, ...others } = changed
    const { status } = await steps.request({
      method: 'PUT',
      path: pathOf(steps),
      query: { if_seq_no: found.seqNo, if_primary_term: found.primaryTerm },
      body: { kind: 'live', body: { generation, kept: [...kept], ...others } } satisfies LiveDocument,
    })
    if (status === 200) return changed
    // Somebody else was first, or our own try before got through although its answer was lost: it is decided anew.
    if (status !== 409)
      throw new StopError('index_missing', `${controlIndexOf(steps.prefix)}, while changing`, { status })
  }
}

/**
 * Says from where on a generation that followed another decides by itself, now that it is live: from the positions of the other one, read
 * after the swap. No reader has seen more of it, and nothing it parks later counts. Who says so first, says so for ever.
 */
export const settle = async (generation: string, followed: Positions, steps: Steps): Promise<void> => {
  const isToBe = ({ live, alone }: Generations): boolean => live === generation && alone[generation] === undefined
  const seen = await readGenerations(steps)
  if (seen === undefined || !isToBe(seen)) return
  const from = await followed()
  await changeGenerations(steps, now => (isToBe(now) ? { ...now, alone: { ...now.alone, [generation]: from } } : now))
}

/** The published position of every partition, in order. */
export type Positions = () => Promise<readonly number[]>

type Steps = Pick<PrepareSteps, 'request' | 'prefix'>

const pathOf = ({ prefix }: Steps): string => `/${controlIndexOf(prefix)}/_doc/${LIVE_ID}`

const find = async (steps: Steps) => {
  const { status, body } = await steps.request({ method: 'GET', path: pathOf(steps) })
  if (status === 404 && (body as { found?: boolean }).found === false) return undefined
  if (status !== 200) throw new StopError('index_missing', `${controlIndexOf(steps.prefix)}, while reading`, { status })
  const { _source, _seq_no, _primary_term } = body as Found
  return { generations: generationsIn(_source), seqNo: _seq_no, primaryTerm: _primary_term }
}

/** What the document says. */
export const generationsIn = ({ body }: LiveDocument): Generations => {
  const { generation, kept = [generation], building = null, previous = null, verified = {}, alone = {} } = body
  return { live: generation, kept, building, previous, verified, alone }
}

type Found = { readonly _source: LiveDocument; readonly _seq_no: number; readonly _primary_term: number }
