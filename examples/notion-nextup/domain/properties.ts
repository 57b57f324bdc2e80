// The properties of the task database, by the names that people gave them in Notion, and how their values are read.

/** Rename a column in Notion, and this is the place to say so. */
export const PROPERTIES = {
  name: 'Name',
  assignee: 'Assignee',
  status: 'Status',
  importance: 'Importance',
  estimate: 'Estimated Days',
  started: 'Task Started Date',
  due: 'Due',
  rank: 'Queue Rank',
  projected: 'Projected Completion',
} as const

/** Tasks of this status are done, and have no rank. */
export const DONE = 'Done'

export interface Person {
  readonly id: string
  /** Notion leaves it out where the integration may not see who people are. */
  readonly name?: string | null
}

/** As much of a page as is read here: webhooks and the API send the same shape. */
export interface Page {
  readonly id: string
  readonly created_time?: string
  readonly in_trash?: boolean
  readonly parent?: Readonly<Record<string, unknown>>
  readonly properties?: Readonly<Record<string, PropertyValue | undefined>>
}

interface PropertyValue {
  readonly people?: readonly Person[]
  readonly status?: { readonly name?: string } | null
  readonly number?: number | null
  readonly date?: { readonly start: string } | null
  readonly title?: readonly { readonly plain_text?: string }[]
}

type Name = keyof typeof PROPERTIES

function valueOf(page: Page, name: Name): PropertyValue {
  return page.properties?.[PROPERTIES[name]] ?? {}
}

/** Everybody it is assigned to, each once. */
export function assigneesOf(page: Page): readonly Person[] {
  const people = valueOf(page, 'assignee').people ?? []
  return people.filter(({ id }, at) => people.findIndex((other) => other.id === id) === at)
}

export function numberOf(page: Page, name: Name): number | undefined {
  return valueOf(page, name).number ?? undefined
}

/** The day alone: a date with a time is a day all the same. */
export function dayOf(page: Page, name: Name): string | undefined {
  return valueOf(page, name).date?.start.slice(0, 10)
}

export function statusOf(page: Page): string {
  return valueOf(page, 'status').status?.name ?? ''
}

/** Ids come with dashes and without. */
export function sameId(one: string, other: string): boolean {
  return plain(one) === plain(other)
}

function plain(id: string): string {
  return id.replaceAll('-', '').toLowerCase()
}
