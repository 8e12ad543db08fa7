/**
 * Index templates: ours keeps Elasticsearch from creating indices of ours automatically, unless one of others wins.
 * Elasticsearch uses the one with the highest priority of all that match the name of an index.
 */
import { FIRST_GENERATION, templateNameOf } from '../../../schemas/stored/documents.ts'
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

/**
 * @param ofNew the layout of a new generation
 * @returns what could not be read
 * @throws StopError `index_unsuitable` if a template of others wins, and lets Elasticsearch create an index of ours
 */
export const assertNoAutoCreate = async (
  steps: Steps,
  ofNew: Pick<GenerationBody, 'layout'>,
): Promise<UnreadOfAutoCreate | undefined> => {
  const { request, prefix } = steps
  const all = await readTemplates(request)
  if (all === undefined) return 'index templates'
  const ours = templateNameOf(prefix)
  const { priority } = templateOf(prefix)
  const above = all
    .filter(({ name, index_template }) => name !== ours && priorityOf(index_template) > priority)
    .toSorted((a, b) => priorityOf(b.index_template) - priorityOf(a.index_template))
  if (above.length === 0) return undefined
  const names = await indexNames(steps, ofNew)
  const unguarded = names.flatMap(index => {
    const wins = above.find(({ index_template }) => appliesTo(index_template, index))
    return wins === undefined || wins.index_template.allow_auto_create === false ? [] : [{ index, wins }]
  })
  if (unguarded.length === 0) return undefined
  // A template that allows it overrides the setting of the cluster, which decides if the template does not say.
  const allowed = unguarded.find(({ wins }) => wins.index_template.allow_auto_create)
  const setting = allowed ? undefined : await readAutoCreateIndex(request)
  if (setting === 'unread') return 'action.auto_create_index'
  const found = allowed ?? unguarded.find(({ index }) => createsAutomatically(String(setting), index))
  if (found === undefined) return undefined
  const of = `index template ${found.wins.name}, with priority ${priorityOf(found.wins.index_template)}`
  throw new StopError(
    'index_unsuitable',
    `${found.index}: ${of}, wins over ${ours}, with ${priority}: Elasticsearch could create it automatically`,
  )
}

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

/** Returns undefined if Elasticsearch does not tell them. */
const readTemplates = async (request: Ask): Promise<readonly Named[] | undefined> => {
  const fields = [
    'name',
    ...['index_patterns', 'priority', 'allow_auto_create'].map(field => `index_template.${field}`),
  ]
  const paths = fields.map(field => `index_templates.${field}`)
  const answer = await readAnswer<{ readonly index_templates?: readonly Named[] }>('/_index_template', paths, request)
  return answer && (answer.index_templates ?? [])
}

/** Returns undefined if Elasticsearch does not answer with it. */
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
