/** Checks an AsyncAPI document against the official JSON Schema of AsyncAPI 3. */
import specs from '@asyncapi/specs'
import { Ajv } from 'ajv'

/** Returns the first errors; none for a valid document. */
export const asyncapiErrors = (document: unknown): unknown[] => {
  const schema = (specs as unknown as { schemas: Record<string, object> }).schemas['3.0.0'] ?? {}
  // The schema has its own copy of its draft.
  const ajv = new Ajv({ meta: false, validateSchema: false, strict: false, validateFormats: false })
  const validate = ajv.compile(schema)
  validate(JSON.parse(JSON.stringify(document)))
  return validate.errors?.slice(0, 3) ?? []
}
