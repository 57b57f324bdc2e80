// Whom a webhook is about. Both kinds of Notion's webhooks come here: the action brings the page, the integration only ids.
import type { EventInput, FlowEvent } from 'sluice'
import { assigneesOf, sameId, type Page, type Person } from './properties.ts'

export interface Audience {
  readonly dataSource: string
  /** The user that our integration writes as. */
  readonly bot: string
  /** Demo mode: only this person, by id or name. */
  readonly only: string | undefined
}

export const TASK_CHANGED = 'task.changed'

/** Of the action: every assignee of the page. Nobody: no key, and the event is skipped. */
export function usersOfAction(event: FlowEvent, audience: Audience): readonly string[] {
  const body = event.data as { readonly data?: Page } & Page
  const page = body.data ?? body
  return isElsewhere(page.parent, audience) ? [] : idsOf(assigneesOf(page), audience)
}

/** Of what `read-page` has published: the one it is for. */
export function userOfChange(event: FlowEvent, audience: Audience): readonly string[] {
  return idsOf([(event.data as { readonly assignee: Person }).assignee], audience)
}

interface IntegrationEvent {
  readonly authors?: readonly { readonly id: string }[]
  readonly data?: { readonly parent?: Readonly<Record<string, unknown>> }
}

/** The page of an integration's webhook, unless it is not one of our tasks, or only this app wrote to it. */
export function pageToRead(event: FlowEvent, audience: Audience): string | undefined {
  const { authors = [], data } = event.data as IntegrationEvent
  const isOwn = authors.length > 0 && authors.every(({ id }) => sameId(id, audience.bot))
  return isOwn || isElsewhere(data?.parent, audience) ? undefined : event.subject
}

export function changesOf(page: Page, audience: Audience): readonly EventInput[] {
  if (isElsewhere(page.parent, audience)) return []
  return assigneesOf(page).map((assignee) => ({
    type: TASK_CHANGED,
    subject: assignee.id,
    data: { page: page.id, assignee: { id: assignee.id, name: assignee.name ?? null } },
  }))
}

/** Only what says so: older bodies name the database, and a database may have several data sources. */
function isElsewhere(parent: Page['parent'], { dataSource }: Audience): boolean {
  const id = parent?.['data_source_id']
  return typeof id === 'string' && !sameId(id, dataSource)
}

function idsOf(people: readonly Person[], { only }: Audience): readonly string[] {
  return people.filter(({ id, name }) => only === undefined || only === id || only === name).map(({ id }) => id)
}
