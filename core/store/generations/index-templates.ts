/**
 * Index templates: ours keeps Elasticsearch from creating indices of ours automatically, unless one of others wins.
 * Elasticsearch uses the one with the highest priority of all that match the name of an index.
 */
import { FIRST_GENERATION, templateNameOf } from '../../../schemas/stored/documents.ts'
import { commonIndices, generationIndices } from '../../../schemas/stored/mappings.ts'
import { StopError } from '../../runtime/index.ts'
import type { Ask } from '../elasticsearch/client.ts'

/** The template of a prefix. A longer prefix has priority: it wins over a shorter one with the same beginning. */
export const templateOf = (prefix: string) => ({
  index_patterns: [`${prefix}-*`],
  allow_auto_create: false,
  priority: 500 + prefix.length,
})

/**
 * @returns false if it cannot be checked, because the user may not read templates
 * @throws StopError `index_unsuitable` if a template of others wins, and lets Elasticsearch create an index of ours
 */
export const assertNoAutoCreate = async (prefix: string, request: Ask): Promise<boolean> => {
  const all = await readTemplates(request)
  if (all === undefined) return false
  const ours = templateNameOf(prefix)
  const { priority } = templateOf(prefix)
  const above = all
    .filter(({ name, index_template }) => name !== ours && priorityOf(index_template) > priority)
    .toSorted((a, b) => priorityOf(b.index_template) - priorityOf(a.index_template))
  const names = [commonIndices(prefix), generationIndices(prefix, { generation: FIRST_GENERATION }, { shards: 1 })]
  for (const index of names.flatMap(Object.keys)) {
    const wins = above.find(({ index_template }) => appliesTo(index_template, index))
    if (wins === undefined || wins.index_template.allow_auto_create === false) continue
    const of = `index template ${wins.name}, with priority ${priorityOf(wins.index_template)}`
    throw new StopError(
      'index_unsuitable',
      `${index}: ${of}, wins over ${ours}, with ${priority}: Elasticsearch could create it automatically`,
    )
  }
  return true
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
  const query = { filter_path: fields.map(field => `index_templates.${field}`).join() }
  try {
    const { status, body } = await request<{ readonly index_templates?: readonly Named[] }>({
      method: 'GET',
      path: '/_index_template',
      query,
    })
    return status === 200 ? (body.index_templates ?? []) : undefined
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
