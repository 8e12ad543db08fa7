/**
 * Checks one index at a start. In: its name and its definition. Out: an index whose mapping and settings are those of
 * this version; settings that do no harm are put back, or warned of. The table is `schemas/stored/index-settings.ts`.
 * Can go wrong: `index_missing`; `index_unsuitable`, with the field or setting, the expected and the given value.
 */
import { isDeepStrictEqual } from 'node:util'
import {
  brokenSettings,
  brokenSort,
  type FoundSetting,
  flatSettings,
  indexSettingRules,
} from '../../../schemas/stored/index-settings.ts'
import type { IndexDefinition } from '../../../schemas/stored/mappings.ts'
import { StopError } from '../../runtime/index.ts'
import type { Ask } from '../elasticsearch/client.ts'
import { templatesThatApply } from './index-templates.ts'

/** A setting that is not as expected, and whether it was put back. */
export type ToldSetting = FoundSetting & { readonly index: string; readonly put_back: boolean }
export type TellSetting = (found: ToldSetting) => void

/**
 * Changes nothing. @returns the settings that do not stop the projector
 * @throws StopError `index_missing`, `index_unsuitable`
 */
export const inspectIndex = async (
  name: string,
  { mappings, settings }: IndexDefinition,
  request: Ask,
): Promise<readonly FoundSetting[]> => {
  const { status, body } = await request<IndexAnswer>({
    method: 'GET',
    path: `/${name}`,
    query: { flat_settings: false },
  })
  if (status !== 200) throw new StopError('index_missing', name, { status })
  const got = body[name]
  if (got === undefined) throw new StopError('index_unsuitable', `${name}: the name of an alias, not of an index`)
  if (!isDeepStrictEqual(got.mappings, mappings)) {
    const difference = differenceOf(mappings, got.mappings, '')
    throw new StopError('index_unsuitable', `${name}: mapping ${difference}${await templatesThatApply(name, request)}`)
  }
  const flat = flatSettings(got.settings.index)
  const found = [...brokenSort(settings.sort, flat), ...brokenSettings(indexSettingRules, flat)]
  const [stop] = found.filter(({ consequence }) => consequence === 'stop')
  if (stop === undefined) return found
  throw unsuitable(name, stop, await templatesThatApply(name, request))
}

/** Inspects several indices. @throws StopError as `inspectIndex` */
export const inspectIndices = async (
  indices: Readonly<Record<string, IndexDefinition>>,
  request: Ask,
): Promise<readonly ToldSetting[]> => {
  const told: ToldSetting[] = []
  for (const [index, definition] of Object.entries(indices)) {
    const found = await inspectIndex(index, definition, request)
    told.push(...found.map(setting => ({ ...setting, index, put_back: false })))
  }
  return told
}

/** Puts back what can be put back. @throws StopError as `inspectIndex` */
export const checkIndex = async (
  name: string,
  definition: IndexDefinition,
  request: Ask,
  tell: TellSetting = () => undefined,
): Promise<void> => {
  const found = await inspectIndex(name, definition, request)
  const wrong = found.filter(({ consequence }) => consequence !== 'warn')
  // A block refuses a change of settings too, and `request` would wait for its end.
  const isBlocked = found.some(({ setting }) => setting.startsWith('blocks.read_only'))
  const putBack = wrong.length > 0 && !isBlocked && (await isPutBack(name, wrong, definition, request))
  for (const setting of found) tell({ ...setting, index: name, put_back: putBack && setting.consequence !== 'warn' })
  const [stop] = putBack ? [] : wrong.filter(({ consequence }) => consequence === 'put back or stop')
  if (stop !== undefined) throw unsuitable(name, stop)
}

const isPutBack = async (
  name: string,
  wrong: readonly FoundSetting[],
  { settings }: IndexDefinition,
  request: Ask,
): Promise<boolean> => {
  const index = Object.fromEntries(wrong.map(({ setting }) => [setting, settings[setting] ?? null]))
  try {
    const { status } = await request({ method: 'PUT', path: `/${name}/_settings`, body: { index } })
    return status === 200
  } catch (error) {
    // The right `manage` on indices is not among those of a projector: it could also delete them.
    if (error instanceof StopError && error.code === 'access_refused') return false
    throw error
  }
}

const unsuitable = (name: string, { setting, expected, got, reason }: FoundSetting, more = ''): StopError =>
  new StopError('index_unsuitable', `${name}: index.${setting}: expected ${expected}, got ${got}; ${reason}${more}`)

/** Returns the first field that differs, with the expected and the given value. Mappings have no content of records. */
const differenceOf = (expected: unknown, got: unknown, path: string): string => {
  if (isObject(expected) && isObject(got)) {
    for (const name of new Set([...Object.keys(expected), ...Object.keys(got)])) {
      if (!isDeepStrictEqual(expected[name], got[name])) {
        return differenceOf(expected[name], got[name], path === '' ? name : `${path}.${name}`)
      }
    }
  }
  return `${path}: expected ${shown(expected)}, got ${shown(got)}`
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const shown = (value: unknown): string => (value === undefined ? 'nothing' : JSON.stringify(value).slice(0, 100))

type IndexAnswer = Readonly<Record<string, { mappings: unknown; settings: { index: Record<string, unknown> } }>>
