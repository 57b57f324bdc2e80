// `runAudited` runs an operator's action between two entries in the audit log: the request, then the outcome.
import type { Audit } from '../admin/audit.ts'
import { toApiFailure } from './responses.ts'

export interface AuditedAction {
  readonly who: string
  /** e.g. `pause the flow f` */
  readonly what: string
  readonly do: () => Promise<unknown>
}

/** `runAudited` writes the request first, so that the action is on record even if the process dies during it. */
export async function runAudited(audit: Audit, { who, what, do: act }: AuditedAction): Promise<unknown> {
  await audit.write(who, `asked: ${what}`)
  // The action has happened and its request is on record, so a failure to write the outcome must not fail the call.
  const end = (outcome: string): Promise<void> => audit.write(who, `${outcome}: ${what}`).catch(() => {})
  try {
    const answer = await act()
    await end(describeOutcome(answer))
    return answer
  } catch (error) {
    await end(describeFailure(error))
    throw error
  }
}

/** The fields of a response that the audit log may contain. Other fields may be secret. */
const REPORTED_FIELDS: ReadonlySet<string> = new Set(['result', 'count', 'events', 'letters', 'runs', 'id'])

function describeOutcome(answer: unknown): string {
  const told = Object.entries(answer as object).filter(([name]) => REPORTED_FIELDS.has(name))
  const text = told.map(([name, value]) => (name === 'result' ? String(value) : `${name} ${String(value)}`)).join(', ')
  const isDone = told.every(([name, value]) => name !== 'result' || value === 'ok')
  return `${isDone ? 'done' : 'not done'}${text === '' ? '' : ` (${text})`}`
}

function describeFailure(error: unknown): string {
  const { code, status } = toApiFailure(error)
  return status < 500 ? `not done (${code})` : `failed (${code}), perhaps half done`
}
