// A task as the stand-in keeps it, and as Notion writes pages: every property with its id, its type and its value.
import { PROPERTIES } from '../domain/properties.ts'

export type PropertyType = 'title' | 'people' | 'status' | 'number' | 'date'

/** The columns of the task database. Ids are as Notion's: short, and not the name. */
export const SCHEMA: Readonly<Record<string, { readonly id: string; readonly type: PropertyType }>> = {
  [PROPERTIES.name]: { id: 'title', type: 'title' },
  [PROPERTIES.assignee]: { id: 'aSg%3D', type: 'people' },
  [PROPERTIES.status]: { id: 'sTa%7C', type: 'status' },
  [PROPERTIES.importance]: { id: 'iMp%40', type: 'number' },
  [PROPERTIES.estimate]: { id: 'eSt%3A', type: 'number' },
  [PROPERTIES.started]: { id: 'bEg%3B', type: 'date' },
  [PROPERTIES.due]: { id: 'dUe%3F', type: 'date' },
  [PROPERTIES.rank]: { id: 'rAn%5B', type: 'number' },
  [PROPERTIES.projected]: { id: 'pRo%5D', type: 'date' },
}

export interface User {
  readonly id: string
  readonly name: string
}

/** What people fill in; what is left out is empty. */
export interface TaskInput {
  readonly name?: string
  readonly assignees?: readonly User[]
  readonly status?: string
  readonly importance?: number | null
  readonly estimate?: number | null
  readonly started?: string | null
  readonly due?: string | null
  readonly rank?: number | null
  readonly projected?: string | null
}

export interface StoredPage {
  readonly id: string
  readonly created: string
  edited: string
  editedBy: string
  isTrashed: boolean
  /** By the name of the property, as Notion writes values. */
  readonly values: Map<string, unknown>
}

/** Undefined stays as it is, null empties it. */
function day(text: string | null | undefined): unknown {
  return typeof text === 'string' ? { start: text, end: null } : text
}

/** As an edit in Notion's own pages would set them. */
export function valuesOf(task: TaskInput): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>()
  const put = (name: string, value: unknown): void => void (value === undefined || values.set(name, value))
  put(PROPERTIES.name, task.name === undefined ? undefined : [{ type: 'text', plain_text: task.name }])
  put(
    PROPERTIES.assignee,
    task.assignees?.map(({ id, name }) => ({ object: 'user', id, type: 'person', name })),
  )
  put(PROPERTIES.status, task.status === undefined ? undefined : { name: task.status })
  put(PROPERTIES.importance, task.importance)
  put(PROPERTIES.estimate, task.estimate)
  put(PROPERTIES.started, day(task.started))
  put(PROPERTIES.due, day(task.due))
  put(PROPERTIES.rank, task.rank)
  put(PROPERTIES.projected, day(task.projected))
  return values
}

const EMPTY: Readonly<Record<PropertyType, unknown>> = { title: [], people: [], status: null, number: null, date: null }

export function emptyOf(type: PropertyType): unknown {
  return EMPTY[type]
}

/** The page as the API and the webhooks send it. */
export function pageObject(page: StoredPage, dataSource: string): Readonly<Record<string, unknown>> {
  const properties = Object.entries(SCHEMA).map(([name, { id, type }]) => {
    return [name, { id, type, [type]: page.values.get(name) ?? emptyOf(type) }] as const
  })
  return {
    object: 'page',
    id: page.id,
    created_time: page.created,
    last_edited_time: page.edited,
    last_edited_by: { object: 'user', id: page.editedBy },
    in_trash: page.isTrashed,
    archived: page.isTrashed,
    parent: { type: 'data_source_id', data_source_id: dataSource, database_id: dataSource },
    properties: Object.fromEntries(properties),
    url: `https://www.notion.so/${page.id.replaceAll('-', '')}`,
  }
}
