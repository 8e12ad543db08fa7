/** Checks answers of the port of receipts against the OpenAPI document of receipts. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { receiptsOpenapi } from '../../projector/admin/describe-receipts.ts'

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, validateFormats: false })

/** Returns what the document does not say about an answer; an empty list if it describes all of it. */
export const describedReceipt = (path: string, status: number, body: unknown): string[] => {
  const operation = receiptsOpenapi.paths[/\/\d+\/\d+/.test(path) ? RECORD : RUN].get
  const response = (operation.responses as Record<string, { content: Record<string, { schema: { $ref: string } }> }>)[
    status
  ]
  const name = response?.content['application/json']?.schema.$ref.split('/').at(-1) as keyof typeof schemas | undefined
  if (name === undefined) return [`status ${status} is not described`]
  const given = JSON.parse(JSON.stringify(body))
  const { properties } = schemas[name] as unknown as { properties: object }
  const validate = ajv.compile(schemas[name])
  const invalid = validate(given) ? [] : [ajv.errorsText(validate.errors)]
  return [...invalid, ...Object.keys(given).filter(field => !(field in properties))]
}

const { schemas } = receiptsOpenapi.components
const RECORD = '/receipts/{topic}/{partition}/{offset}'
const RUN = '/receipts/{topic}/{partition}'
