// Reads the OpenAPI document as a client does that knows nothing else: builds a client from it, and validates responses with plain
// JSON Schema, without zod. So a mistake in the document makes a test fail.
import { buildOpenApi } from '../../src/api/openapi.ts'
import type { Answer, CallOptions, Rig } from './rig.ts'

export interface Schema {
  readonly $ref?: string
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'null'
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly propertyNames?: Schema
  readonly items?: Schema
  readonly minItems?: number
  readonly maxItems?: number
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
}

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly required: boolean
  readonly schema: Schema
}

interface Content {
  readonly content: Readonly<Record<string, { readonly schema: Schema }>>
}

interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content & { readonly $ref?: string }>>
}

interface Document {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly responses: Readonly<Record<string, Content>>
  }
}

export interface Operated extends Operation {
  readonly method: string
  readonly path: string
}

/** The response as it was sent. */
export const DOCUMENT = JSON.parse(JSON.stringify(buildOpenApi())) as Document

/** Values that one call of the client returns together. */
export const OPERATIONS: readonly Operated[] = Object.entries(DOCUMENT.paths)
  .filter(([path]) => path !== '/v1/stream')
  .flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  )

export interface Told {
  /** Parameters of the path and of the query. */
  readonly parameters?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** Calls an operation as the document describes it, and validates the response. */
export async function call(r: Rig, operation: Operated, told: Told, options: CallOptions = {}): Promise<Answer> {
  const { parameters = [], requestBody, method } = operation
  const query = new URLSearchParams()
  let { path } = operation
  for (const { name, in: where } of parameters) {
    const value = told.parameters?.[name]
    if (value === undefined) continue
    if (where === 'query') query.set(name, value)
    else path = path.replace(`{${name}}`, encodeURIComponent(value))
  }
  const body = requestBody === undefined ? {} : { body: told.body ?? {} }
  const answer = await r.call(method, query.size === 0 ? path : `${path}?${query.toString()}`, { ...body, ...options })
  const fault = faultOf(operation, answer)
  if (fault !== undefined) throw new Error(`${method} ${path} answers what the document does not tell of: ${fault}`)
  return answer
}

/** Returns how a response violates the document, or undefined. */
export function faultOf({ responses }: Operated, { status, headers, body }: Answer): string | undefined {
  const said = responses[String(status)] ?? responses['default']
  if (said === undefined) return `status ${status}`
  const { content } = said.$ref === undefined ? said : (at(said.$ref) as Content)
  const schema = content[headers['content-type'] ?? '']?.schema
  if (schema === undefined) return `content type ${headers['content-type']}`
  return schemaFault(schema, body, 'body')
}

/** Returns where a value violates the schema, or undefined. */
function schemaFault(schema: Schema, value: unknown, where: string): string | undefined {
  if (schema.$ref !== undefined) return schemaFault(at(schema.$ref) as Schema, value, where)
  const options = schema.anyOf ?? schema.oneOf
  if (options !== undefined) {
    const faults = options.map((one) => schemaFault(one, value, where))
    if (!faults.includes(undefined)) return `${where}: none of ${faults.join('; ')}`
  }
  if ('const' in schema && value !== schema.const) return `${where} is not ${JSON.stringify(schema.const)}`
  if (schema.enum !== undefined && !schema.enum.includes(value)) return `${where} is ${JSON.stringify(value)}`
  if (schema.type === undefined) return undefined
  if (!isOf(schema.type, value)) return `${where} is no ${schema.type}: ${JSON.stringify(value)}`
  if (typeof value === 'string') return textFault(schema, value, where)
  if (typeof value === 'number') {
    const isInside = value >= (schema.minimum ?? -Infinity) && value <= (schema.maximum ?? Infinity)
    return isInside ? undefined : `${where} is ${value}`
  }
  if (Array.isArray(value)) {
    return value.map((item, n) => schemaFault(schema.items ?? {}, item, `${where}.${n}`)).find((fault) => fault)
  }
  return typeof value === 'object' && value !== null ? objectFault(schema, { ...value }, where) : undefined
}

function objectFault(schema: Schema, value: Record<string, unknown>, where: string): string | undefined {
  const { properties = {}, required = [], additionalProperties = true } = schema
  const missing = required.find((name) => !Object.hasOwn(value, name))
  if (missing !== undefined) return `${where} has no ${missing}`
  for (const [name, of] of Object.entries(value)) {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (known === undefined && additionalProperties === false) return `${where} has ${name}`
    const other = typeof additionalProperties === 'object' ? additionalProperties : {}
    const fault = schemaFault(known ?? other, of, `${where}.${name}`)
    if (fault !== undefined) return fault
  }
  return undefined
}

function textFault(
  { pattern, minLength = 0, maxLength = Infinity }: Schema,
  value: string,
  where: string,
): string | undefined {
  if (value.length < minLength || value.length > maxLength) return `${where} has ${value.length} characters`
  return pattern === undefined || new RegExp(pattern).test(value) ? undefined : `${where} is ${JSON.stringify(value)}`
}

function isOf(type: NonNullable<Schema['type']>, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'array') return Array.isArray(value)
  if (type === 'null') return value === null
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return typeof value === type
}

/** `#/components/responses/Problem` */
function at(ref: string): unknown {
  return ref
    .slice(2)
    .split('/')
    .reduce<unknown>((part, name) => (part as Record<string, unknown>)[name], DOCUMENT)
}
