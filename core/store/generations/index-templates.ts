/**
 * Index templates: ours keeps Elasticsearch from creating indices of ours automatically, unless one of others wins.
 * Elasticsearch uses the one with the highest priority of all that match the name of an index.
 */
import { controlIndexOf, FIRST_GENERATION, templateNameOf } from '../../../schemas/stored/documents.ts'
import { commonIndices, generationIndices } from '../../../schemas/stored/mappings.ts'
import type { GenerationBody } from '../../log/index.ts'
import { StopError } from '../../runtime/index.ts'
import type { Ask, Request } from '../elasticsearch/client.ts'
import { readGenerations } from './generations.ts'
import { readGeneration } from './recorded.ts'

/** The template of a prefix. A longer prefix has priority: it wins over a shorter one with the same beginning. */
export const templateOf = (prefix: string) => ({
  index_patterns: [`${prefix}-*`],
  allow_auto_create: false,
  priority: 500 + prefix.length,
})

type Steps = { readonly request: Ask; readonly prefix: string }
/** It cannot be checked without it, and the user may not read it. */
export type UnreadOfAutoCreate = 'index templates' | 'action.auto_create_index'

/** @param isAsked only asks whether Elasticsearch would accept it. @throws StopError `index_unsuitable` */
export const putTemplate = async ({ request, prefix }: Steps, isAsked = false): Promise<void> => {
  const name = templateNameOf(prefix)
  const { status } = await request({
    ...(isAsked
      ? { method: 'POST', path: `/_index_template/_simulate/${name}` }
      : { method: 'PUT', path: `/_index_template/${name}` }),
    body: templateOf(prefix),
  })
  if (status === 200) return
  const others = await templatesThatApply(controlIndexOf(prefix), request)
  throw new StopError('index_unsuitable', `Elasticsearch answers ${status} to the index template${others}`)
}

/**
 * For a start, which puts our template.
 * @param ofNew the layout of a new generation
 * @returns what could not be read
 * @throws StopError `index_unsuitable` if a template of others wins, and lets Elasticsearch create an index of ours
 */
export const assertNoAutoCreate = async (
  steps: Steps,
  ofNew: Pick<GenerationBody, 'layout'>,
): Promise<UnreadOfAutoCreate | undefined> => {
  const found = await findUnguarded(() => indexNames(steps, ofNew), true, steps)
  if (found instanceof StopError) throw found
  return found
}

/** Returns why Elasticsearch could create an index of ours automatically until a projector puts our template back. */
export const inspectTemplate = async (
  steps: Steps,
  ofNew: Pick<GenerationBody, 'layout'>,
): Promise<string | undefined> => {
  const found = await findUnguarded(() => indexNames(steps, ofNew), false, steps)
  return found instanceof StopError ? found.message : undefined
}

/**
 * Asks whether Elasticsearch could create one of these indices automatically: the next bulk request would make an index
 * anew that somebody deleted. If it could, puts our template back.
 * @param right of the user who asks. Commands have only `monitor`, for which Elasticsearch collects all its metadata
 * @returns the refusal `index_unsuitable` if this user may not put it back, or if a template of others wins
 */
export const keepTemplate = async (
  indices: readonly string[],
  steps: Steps,
  right: Right = 'manage_index_templates',
): Promise<StopError | 'put back' | undefined> => {
  const names = async () => indices
  const found = await findUnguarded(names, false, steps, right)
  if (found === undefined || found === 'index templates') return undefined
  try {
    await putTemplate(steps)
  } catch (error) {
    if (!(error instanceof StopError)) throw error
    return found instanceof StopError ? found : undefined
  }
  const left = await findUnguarded(names, true, steps, right)
  if (left instanceof StopError) return left
  return left === found ? undefined : 'put back'
}

/**
 * @param isPut whether our template counts as there, whatever is read: not every node has it at once
 * @returns undefined also if a setting is unread and our template is there: to put it again changes nothing
 */
const findUnguarded = async (
  indices: () => Promise<readonly string[]>,
  isPut: boolean,
  { request, prefix }: Steps,
  right: Right = 'manage_index_templates',
): Promise<StopError | UnreadOfAutoCreate | undefined> => {
  const read = right === 'monitor' ? await readTemplatesOfState(request) : await readTemplates(request)
  if (read === undefined) return 'index templates'
  const ours = { name: templateNameOf(prefix), index_template: templateOf(prefix) }
  const all = isPut ? [...read.filter(({ name }) => name !== ours.name), ours] : read
  const guard = all
    .filter(({ index_template }) => isGuard(index_template, prefix))
    .reduce((highest, { index_template }) => Math.max(highest, priorityOf(index_template)), -1)
  const above = all
    .filter(({ index_template }) => priorityOf(index_template) > guard)
    .toSorted((a, b) => priorityOf(b.index_template) - priorityOf(a.index_template))
  const isGuarded = guard >= 0
  if (isGuarded && above.length === 0) return undefined
  const unguarded = (await indices()).flatMap(index => {
    const wins = above.find(({ index_template }) => appliesTo(index_template, index))
    const isSafe = wins === undefined ? isGuarded : wins.index_template.allow_auto_create === false
    return isSafe ? [] : [{ index, wins }]
  })
  if (unguarded.length === 0) return undefined
  // A template that allows it overrides the setting of the cluster, which decides if the template does not say.
  const allowed = unguarded.find(({ wins }) => wins?.index_template.allow_auto_create)
  const setting = allowed ? undefined : await readAutoCreateIndex(request)
  if (setting === 'unread')
    return isPut || guard < ours.index_template.priority ? 'action.auto_create_index' : undefined
  const found = allowed ?? unguarded.find(({ index }) => createsAutomatically(String(setting), index))
  if (found === undefined) return undefined
  const { index, wins } = found
  const could = 'Elasticsearch could create it automatically'
  if (!isGuarded || wins === undefined) {
    const what = `${index}: ${could}, because somebody deleted or changed the index template ${ours.name}`
    return new StopError('index_unsuitable', `${what}; a projector with the right manage_index_templates puts it back`)
  }
  const of = `index template ${wins.name}, with priority ${priorityOf(wins.index_template)}`
  return new StopError('index_unsuitable', `${index}: ${of}, wins over ${ours.name}, with ${guard}: ${could}`)
}

/** Whether it forbids that any index of the prefix is created automatically: ours, also of another version. */
const isGuard = ({ index_patterns = [], allow_auto_create }: IndexTemplate, prefix: string): boolean =>
  allow_auto_create === false && templateOf(prefix).index_patterns.every(one => [index_patterns].flat().includes(one))

/** Returns the indices that projectors write: those of each active generation, or of the first one. */
const indexNames = async (steps: Steps, ofNew: Pick<GenerationBody, 'layout'>): Promise<readonly string[]> => {
  const indices = [commonIndices(steps.prefix)]
  for (const generation of (await ifThere(readGenerations(steps)))?.active ?? [FIRST_GENERATION]) {
    const identity = (await ifThere(readGeneration(generation, steps))) ?? { generation, ...ofNew }
    indices.push(generationIndices(steps.prefix, identity, { shards: 1 }))
  }
  return indices.flatMap(Object.keys)
}

/** Before the first start there is no control index. Later, its loss is told by the checks of a start. */
const ifThere = <Found>(found: Promise<Found | undefined>): Promise<Found | undefined> =>
  found.catch((error: unknown) => {
    if (error instanceof StopError && error.code === 'index_missing') return undefined
    throw error
  })

type ClusterSettings = Readonly<Record<string, { readonly action?: { readonly auto_create_index?: unknown } }>>

/** Returns the setting in force: `unread` if Elasticsearch does not tell it. */
const readAutoCreateIndex = async (request: Ask): Promise<string> => {
  const settings = await readAnswer<ClusterSettings>('/_cluster/settings', ['*.action.auto_create_index'], request, {
    include_defaults: true,
  })
  if (settings === undefined) return 'unread'
  const { transient, persistent, defaults } = settings
  const [inForce] = [transient, persistent, defaults].flatMap(given => given?.action?.auto_create_index ?? [])
  return String(inForce)
}

/** @param setting `true`, `false`, or patterns with `+` or `-` before them, of which the first that matches decides */
const createsAutomatically = (setting: string, index: string): boolean => {
  if (setting === 'true' || setting === 'false') return setting === 'true'
  const first = setting.split(',').find(pattern => matches(pattern.trim().replace(/^[+-]/, ''), index))
  return first !== undefined && !first.trim().startsWith('-')
}

/** Names the index templates of others that apply to the index: most likely one of them has changed it. */
export const templatesThatApply = async (name: string, request: Ask): Promise<string> => {
  const others = ((await readTemplates(request)) ?? []).filter(
    template => !template.name.endsWith('-no-auto-create') && appliesTo(template.index_template, name),
  )
  if (others.length === 0) return ''
  return `; index templates of others that apply to it: ${others.map(({ name: template }) => template).join(', ')}`
}

type IndexTemplate = {
  readonly index_patterns?: string | readonly string[]
  readonly priority?: number
  readonly allow_auto_create?: boolean
}
type Named = { readonly name: string; readonly index_template: IndexTemplate }

const templateFields = ['index_patterns', 'priority', 'allow_auto_create']

/** Returns undefined if Elasticsearch does not tell them. */
const readTemplates = async (request: Ask): Promise<readonly Named[] | undefined> => {
  const fields = ['name', ...templateFields.map(field => `index_template.${field}`)]
  const paths = fields.map(field => `index_templates.${field}`)
  const answer = await readAnswer<{ readonly index_templates?: readonly Named[] }>('/_index_template', paths, request)
  return answer && (answer.index_templates ?? [])
}

type Right = 'manage_index_templates' | 'monitor'
type Metadata = { readonly index_template?: { readonly index_template?: Readonly<Record<string, IndexTemplate>> } }

/** The same, as `monitor` permits. */
const readTemplatesOfState = async (request: Ask): Promise<readonly Named[] | undefined> => {
  const paths = templateFields.map(field => `metadata.index_template.index_template.*.${field}`)
  const answer = await readAnswer<{ readonly metadata?: Metadata }>('/_cluster/state/metadata', paths, request)
  const found = Object.entries(answer?.metadata?.index_template?.index_template ?? {})
  return answer && found.map(([name, index_template]) => ({ name, index_template }))
}

/** Returns undefined if Elasticsearch does not answer with it: a proxy need not permit these questions. */
const readAnswer = async <Body extends object>(
  path: string,
  paths: readonly string[],
  request: Ask,
  query: Request['query'] = {},
): Promise<Body | undefined> => {
  try {
    const { status, body } = await request<Body>({
      method: 'GET',
      path,
      query: { ...query, filter_path: paths.join() },
      isOptional: true,
    })
    return status === 200 ? body : undefined
  } catch (error) {
    if (error instanceof StopError) return undefined
    throw error
  }
}

const priorityOf = ({ priority = 0 }: IndexTemplate): number => priority

const appliesTo = ({ index_patterns = [] }: IndexTemplate, index: string): boolean =>
  [index_patterns].flat().some(pattern => matches(pattern, index))

const matches = (pattern: string, name: string): boolean => {
  const [first = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return pattern === name
  if (!name.startsWith(first)) return false
  let from = first.length
  for (const part of rest.slice(0, -1)) {
    const at = name.indexOf(part, from)
    if (at === -1) return false
    from = at + part.length
  }
  const last = rest.at(-1) ?? ''
  return name.length - from >= last.length && name.endsWith(last)
}
