/**
 * The schemas compiled by ajv. What is checked beyond JSON Schema is what the formats of `values.ts` say.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { TSchema } from 'typebox'
import { type AnyEvent, type EventType, eventSchemas, type Stream } from './events.ts'
import { formats } from './values.ts'

// What is parsed from JSON has no members but its own, and no schema here names one that every object has.
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, formats })

export const compile = (schema: TSchema): ValidateFunction => ajv.compile(schema)

const validators: Record<Stream, ReadonlyMap<string, ValidateFunction>> = {
  events: new Map(Object.entries(eventSchemas.events).map(([type, schema]) => [type, compile(schema)])),
  'api-keys': new Map(Object.entries(eventSchemas['api-keys']).map(([type, schema]) => [type, compile(schema)])),
}

export const isEventType = (stream: Stream, type: string): type is EventType => validators[stream].has(type)

/** Whether the data keeps the schema of its event type; what spans several fields is the projector's to check. */
export const matchesSchema = (stream: Stream, event: { type: string; data: unknown }): event is AnyEvent =>
  validators[stream].get(event.type)?.(event.data) === true
