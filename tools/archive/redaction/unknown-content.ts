/**
 * Content of a record that no decision reads: members that the schema of its event does not have, attributes that this
 * project does not know, and headers. A publisher may have written anything there.
 * In: a record that concerns the person. Out: what to replace, and with what. Nothing of it changes a decision.
 */
import type { TSchema } from 'typebox'
import type { RawRecord } from '../../../core/ledger/index.ts'
import { encodeHeaders } from '../../../core/log/index.ts'
import { elementsAt, type Member, membersAt, type Range, rangeOf } from './json-ranges.ts'

export type Replacement = Range & { readonly by: string }

type Keywords = {
  readonly properties?: Readonly<Record<string, TSchema>>
  readonly items?: TSchema
  readonly anyOf?: readonly TSchema[]
}

/** Replaces each unknown member, with its name, by a member with an invented name and null. */
export const unknownMembers = (json: string, path: readonly string[], schema: TSchema): Replacement[] => {
  const range = rangeOf(json, path)
  return range === undefined ? [] : replacedIn(json, range.start, schema)
}

const replacedIn = (json: string, start: number, schema: TSchema): Replacement[] => {
  const { properties, items, anyOf = [] }: Keywords = schema
  // One of several forms has members: the other one is null.
  if (anyOf.length > 0) return anyOf.flatMap(form => replacedIn(json, start, form))
  if (items !== undefined)
    return [...elementsAt(json, start)].flatMap(element => replacedIn(json, element.start, items))
  if (properties === undefined) return []
  const members = [...membersAt(json, start)]
  const known = members.flatMap(({ name, value }) => {
    const schemaOf = Object.hasOwn(properties, name) ? properties[name] : undefined
    return schemaOf === undefined ? [] : replacedIn(json, value.start, schemaOf)
  })
  return [...known, ...withoutUnknown(json, members, name => Object.hasOwn(properties, name))]
}

const withoutUnknown = (
  json: string,
  members: readonly Member[],
  isKnown: (name: string) => boolean,
): Replacement[] => {
  const names = new Set(members.map(({ name }) => name))
  let number = 0
  return members.flatMap(({ name, start, end, value }) => {
    if (isKnown(name) || (INVENTED.test(name) && json.slice(value.start, value.end) === 'null')) return []
    do number++
    while (names.has(`redacted_${number}`))
    return [{ start, end, by: `"redacted_${number}":null` }]
  })
}
const INVENTED = /^redacted_[0-9]+$/

const attributes = ['specversion', 'id', 'type', 'source', 'time', 'datacontenttype', 'data']

/** Attributes of an envelope in structured mode that are not read. */
export const unknownAttributes = (json: string): Replacement[] => {
  const start = rangeOf(json, [])?.start ?? 0
  return withoutUnknown(json, [...membersAt(json, start)], name => attributes.includes(name))
}

const binary = ['content-type', 'ce_specversion', 'ce_id', 'ce_type', 'ce_source', 'ce_time']

/** The headers that are read, and a trace id; undefined if the record has no others. */
export const knownHeaders = ({ headers }: RawRecord, isStructured: boolean): RawRecord['headers'] | undefined => {
  const all = Array.from(headers)
  const known = all.flatMap(([name, value, rawName]): [string, Buffer | null][] => {
    if (rawName !== undefined) return []
    const text = value?.toString('latin1') ?? ''
    if (name === 'traceparent' && /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(text))
      return [[name, value]]
    if (name === 'content-type') return [[name, value && Buffer.from(mediaTypeOf(text), 'latin1')]]
    return binary.includes(name) && !isStructured ? [[name, value]] : []
  })
  const kept = encodeHeaders(known)
  return kept.bytes.equals(encodeHeaders(all).bytes) ? undefined : kept
}

/** Without parameters, except the usual one. */
const mediaTypeOf = (text: string): string =>
  /^[a-z+/ ]+(?:; ?charset="?utf-8"?)?$/i.test(text) ? text : (text.split(';', 1)[0] ?? '').trim()

/** The headers without what a publisher has chosen freely: with an invented id and source. */
export const withoutNames = (headers: RawRecord['headers']): RawRecord['headers'] =>
  encodeHeaders(
    Array.from(headers, ([name, value]) =>
      name === 'ce_id' || name === 'ce_source' ? [name, value && Buffer.from('redacted')] : [name, value],
    ),
  )
