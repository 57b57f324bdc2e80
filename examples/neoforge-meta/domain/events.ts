// The events of the app, and what each tells. The schema also checks the events that are published in SQL.
import { defineEvent, type EventInput } from 'sluice'
import { z } from 'zod'
import { COMPONENTS, type Change } from './versions.ts'

const data = z.object({
  component: z.enum(COMPONENTS),
  version: z.string().min(1).max(100),
  deprecated: z.string().nullable().optional(),
  changed: z.array(z.string()).optional(),
})

const EVENTS = {
  NEW_VERSION: defineEvent('NEW_VERSION', data.loose()),
  VERSION_UPDATED: defineEvent('VERSION_UPDATED', data.loose()),
  VERSION_DEPRECATED: defineEvent('VERSION_DEPRECATED', data.loose()),
} as const

export const VERSION_EVENTS = [EVENTS.NEW_VERSION, EVENTS.VERSION_UPDATED, EVENTS.VERSION_DEPRECATED] as const

/** `toEvent` makes the event of a change. */
export function toEvent({ news, version, changed }: Change): EventInput {
  const subject = `${version.component}/${version.version}`
  return EVENTS[news]({ ...version, ...(news === 'VERSION_UPDATED' && { changed: [...changed] }) }, { subject })
}
