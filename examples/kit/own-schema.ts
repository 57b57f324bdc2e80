// `ownSchema` gives an app a schema of its own beside the store, on the same PostgreSQL server.

export interface OwnSchema {
  /** The options of a pool of `pg` whose sessions use the app's own schema. */
  readonly pool: { readonly connectionString: string; readonly options: string }
  /** The name of the app's own schema. */
  readonly own: string
  /** The name of the store's schema, where `publish` is. */
  readonly store: string
}

/** Two stores of one server have two schemas, so their apps have two as well. */
export function ownSchema(address: string, app: string): OwnSchema {
  const url = new URL(address)
  const named = url.searchParams.get('schema')
  url.searchParams.delete('schema')
  const own = (named === null ? app : `${app}_${named}`).toLowerCase().replaceAll(/\W/g, '_')
  return { pool: { connectionString: url.href, options: `-c search_path=${own}` }, own, store: named ?? 'sluice' }
}
