// Whom a webhook is about. Both kinds of Notion's webhooks come here: the action brings the page, the integration only ids.
import { defineEvent, type EventInput, type FlowEvent } from 'sluice'
import { z } from 'zod'
import { assigneesOf, sameId, type Page, type Person } from './properties.ts'

export interface Audience {
  readonly dataSource: string
  /** The user that our integration writes as. */
  readonly bot: string
  /** Demo mode: only this person, by id or name. */
  readonly only: string | undefined
}

interface TaskChange {
  readonly page: string
  readonly assignee: Person
}

export const taskChanged = defineEvent<TaskChange>('task.changed')
const pageUpdated = defineEvent<{ readonly data?: Page } & Page>('action/page.updated')

/** Of the action: every assignee of the page. Nobody: no key, and the event is skipped. */
export function usersOfAction(event: FlowEvent, audience: Audience): readonly string[] {
  const body = pageUpdated.parse(event.data)
  const page = body.data ?? body
  return isElsewhere(page.parent, audience) ? [] : idsOf(assigneesOf(page), audience)
}

/** Of what `read-page` has published: the one it is for. */
export function userOfChange(event: FlowEvent, audience: Audience): readonly string[] {
  return idsOf([taskChanged.parse(event.data).assignee], audience)
}

const integrationEvent = z.object({
  authors: z.array(z.object({ id: z.string() })).optional(),
  data: z.object({ parent: z.record(z.string(), z.unknown()).optional() }).optional(),
})

/** The page of an integration's webhook, unless it is not one of our tasks, or only this app wrote to it. */
export function pageToRead(event: FlowEvent, audience: Audience): string | undefined {
  const { authors = [], data } = integrationEvent.parse(event.data)
  const isOwn = authors.length > 0 && authors.every(({ id }) => sameId(id, audience.bot))
  return isOwn || isElsewhere(data?.parent, audience) ? undefined : event.subject
}

export function changesOf(page: Page, audience: Audience): readonly EventInput[] {
  if (isElsewhere(page.parent, audience)) return []
  return assigneesOf(page).map(({ id, name = null }) =>
    taskChanged({ page: page.id, assignee: { id, name } }, { subject: id }),
  )
}

/** Only what says so: older bodies name the database, and a database may have several data sources. */
function isElsewhere(parent: Page['parent'], { dataSource }: Audience): boolean {
  const id = parent?.['data_source_id']
  return typeof id === 'string' && !sameId(id, dataSource)
}

function idsOf(people: readonly Person[], { only }: Audience): readonly string[] {
  return people.filter(({ id, name }) => only === undefined || only === id || only === name).map(({ id }) => id)
}
