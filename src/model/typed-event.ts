// `TypedEvent` gives the data of an event type a TypeScript type. `defineEvent` creates it; this file has the parts that the stages need.

/** `TypedEvent` is what `on` takes: a type of events, and the type of their data. */
export interface TypedEvent<Data = unknown, Type extends string = string> {
  /** The only source of these events; undefined for every source. */
  readonly source: string | undefined
  readonly type: Type
  /** Returns the output of the schema. It throws a `SchemaError` if the schema rejects the value. */
  readonly parse: (value: unknown) => Data
}

/** `SchemaError` says why a schema rejects a value: the path and the message of each issue. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError'
  /** Whether the schema, and not the value, is at fault. */
  readonly isOfSchema: boolean

  constructor(message: string, isOfSchema = false) {
    super(message)
    this.isOfSchema = isOfSchema
  }
}

/** `nameOf` returns the name of a definition, which as a glob matches the same events. */
export function nameOf({ source, type }: TypedEvent): string {
  return source === undefined ? type : `${source}/${type}`
}

interface Named {
  readonly source: string
  readonly type: string
}

/** `isOfDefinition` compares source and type exactly. */
export function isOfDefinition({ source, type }: TypedEvent, event: Named): boolean {
  return type === event.type && (source === undefined || source === event.source)
}

/** `findDefinition` returns the first definition of the event; undefined if there is none. */
export function findDefinition(definitions: readonly TypedEvent[], event: Named): TypedEvent | undefined {
  return definitions.find((one) => isOfDefinition(one, event))
}
