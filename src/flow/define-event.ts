// `defineEvent` gives the data of an event type a TypeScript type, and a schema that checks it at run time.
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { messageOf, SluiceError } from '../errors.ts'
import { parseData, type EventInput } from '../model/event.ts'
import { toBodyBytes } from '../model/new-event.ts'
import { isOfDefinition, nameOf, SchemaError, type TypedEvent } from '../model/typed-event.ts'

/** `TypedEventOptions` are the fields of a published event besides its type and its data. */
export type TypedEventOptions = Omit<EventInput, 'type' | 'data' | 'body'>

/** `EventDefinition` is the result of `defineEvent`. Called with data, it returns an event for `publish`. */
export interface EventDefinition<Output = unknown, Input = Output, Type extends string = string> extends TypedEvent<
  Output,
  Type
> {
  (data: Input, options?: TypedEventOptions): EventInput
}

/** The type of the events of a definition whose name begins with a source. */
type TypeIn<Name extends string> = Name extends `${string}/${infer Type}` ? Type : Name

/** The definition that made an event. A symbol, so that no event of a user has it by chance. */
const MADE_BY = Symbol('made by')

interface MadeEvent extends EventInput {
  readonly [MADE_BY]?: TypedEvent
}

/**
 * `defineEvent` defines the events of one type, or with `source/type` those of one source. A schema of any Standard Schema library checks
 * their data; without a schema, the data has the given type unchecked.
 */
export function defineEvent<Data>(name: string): EventDefinition<Data>
export function defineEvent<const Name extends string, Schema extends StandardSchemaV1>(
  name: Name,
  schema: Schema,
): EventDefinition<StandardSchemaV1.InferOutput<Schema>, StandardSchemaV1.InferInput<Schema>, TypeIn<Name>>
export function defineEvent(name: string, schema?: StandardSchemaV1): EventDefinition {
  const { source, type } = splitName(name)
  if (schema !== undefined && !isStandardSchema(schema)) {
    throw invalidDefinition(name, 'schema must be a Standard Schema, e.g. z.object({ user: z.string() }).')
  }
  const parse = schema === undefined ? returnUnchecked : (value: unknown) => validate(schema, value)
  const create = (data: unknown, options: TypedEventOptions = {}): MadeEvent => {
    if (source !== undefined && (options.source ?? source) !== source) {
      throw new SluiceError(
        'EVENT_INVALID',
        `source must be ${JSON.stringify(source)}, which the definition names; got ${JSON.stringify(options.source)}.`,
      )
    }
    return { ...(source !== undefined && { source }), ...options, type, data, [MADE_BY]: definition }
  }
  const definition: EventDefinition = Object.assign(create, { source, type, parse })
  return definition
}

function splitName(name: string): Pick<TypedEvent, 'source' | 'type'> {
  const rule = "the name must be a type or source/type without *, e.g. 'task.edited' or 'stripe/customer.created'."
  if (typeof name !== 'string' || name.includes('*')) throw invalidDefinition(name, rule)
  const slash = name.indexOf('/')
  const [source, type] = slash === -1 ? [undefined, name] : [name.slice(0, slash), name.slice(slash + 1)]
  if (source === '' || type === '') throw invalidDefinition(name, rule)
  return { source, type }
}

function isStandardSchema(schema: unknown): schema is StandardSchemaV1 {
  const isHolder = (typeof schema === 'object' && schema !== null) || typeof schema === 'function'
  if (!isHolder || !('~standard' in schema)) return false
  const standard: unknown = schema['~standard']
  return (
    typeof standard === 'object' &&
    standard !== null &&
    'validate' in standard &&
    typeof standard.validate === 'function'
  )
}

function returnUnchecked(value: unknown): unknown {
  return value
}

function invalidDefinition(name: unknown, message: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', `defineEvent(${JSON.stringify(name)}): ${message}`)
}

/** `isTypedEvent` tells a definition from a predicate and a glob. */
export function isTypedEvent(value: unknown): value is TypedEvent {
  return (
    typeof value === 'function' && 'parse' in value && 'type' in value && 'source' in value && value.parse !== undefined
  )
}

const MAX_ISSUES = 5
const RETURNED_PROMISE =
  'its schema must be synchronous; it returned a promise. A zod schema also does so when one of its functions throws'

function validate(schema: StandardSchemaV1, value: unknown): unknown {
  const result = callSchema(schema, value)
  if ('then' in result) {
    result.then(undefined, () => {})
    throw new SchemaError(RETURNED_PROMISE, true)
  }
  if (result.issues === undefined) return result.value
  const shown = result.issues.slice(0, MAX_ISSUES).map(formatIssue)
  const more = result.issues.length - shown.length
  throw new SchemaError(more > 0 ? `${shown.join('; ')}; and ${more} more` : shown.join('; '))
}

/** A schema may contain functions of the user, which may throw. */
function callSchema(schema: StandardSchemaV1, value: unknown): ReturnType<StandardSchemaV1['~standard']['validate']> {
  try {
    return schema['~standard'].validate(value)
  } catch (error) {
    throw new SchemaError(`its schema threw: ${messageOf(error)}`)
  }
}

/** `formatIssue` returns the path and the message, e.g. "data.items[0].name: Expected a string". */
function formatIssue({ path = [], message }: StandardSchemaV1.Issue): string {
  const keys = path.map((part) => (typeof part === 'object' ? part.key : part))
  return `${keys.reduce<string>(appendKey, 'data')}: ${message}`
}

function appendKey(path: string, key: PropertyKey): string {
  if (typeof key === 'string' && /^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u.test(key)) return `${path}.${key}`
  return `${path}[${typeof key === 'string' ? JSON.stringify(key) : String(key)}]`
}

/** `assertDefined` rejects an event that the definition that made it, or one of the given ones, rejects. */
export function assertDefined(event: EventInput, definitions: ReadonlySet<TypedEvent>): void {
  // Other checks reject what is not an event.
  if (typeof event !== 'object' || event === null) return
  const { [MADE_BY]: maker, source = 'app', type }: MadeEvent = event
  if (maker !== undefined) assertValid(event, maker)
  for (const definition of definitions) {
    if (definition !== maker && isOfDefinition(definition, { source, type })) assertValid(event, definition)
  }
}

/** The bytes that would be stored are what the schema checks, because they are what a handler reads. */
function assertValid(event: EventInput, definition: TypedEvent): void {
  try {
    definition.parse(parseData(toBodyBytes(event)))
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error
    const what = `${nameOf(definition)}: ${error.message}; nothing was stored.`
    throw new SluiceError(error.isOfSchema ? 'CONFIG_INVALID' : 'EVENT_INVALID', what)
  }
}
