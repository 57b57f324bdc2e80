// An act and its entries in the audit log: that it was asked for, and then what became of it.
import type { Audit } from '../operate/audit.ts'
import { known } from './answers.ts'

export interface Act {
  readonly who: string
  /** As in `pause the flow f`. */
  readonly what: string
  readonly do: () => Promise<unknown>
}

/** Asked comes first: what was done must not be missing, even if the process dies over it. */
export async function audited(audit: Audit, { who, what, do: act }: Act): Promise<unknown> {
  await audit.write(who, `asked: ${what}`)
  // What was done is done, and that it was asked for is on record.
  const end = (outcome: string): Promise<void> => audit.write(who, `${outcome}: ${what}`).catch(() => {})
  try {
    const answer = await act()
    await end(outcomeOf(answer))
    return answer
  } catch (error) {
    await end(faultOf(error))
    throw error
  }
}

/** What the audit log says of an answer: these, and nothing that may be a secret. */
const TOLD: ReadonlySet<string> = new Set(['result', 'count', 'events', 'letters', 'runs', 'id'])

function outcomeOf(answer: unknown): string {
  const told = Object.entries(answer as object).filter(([name]) => TOLD.has(name))
  const text = told.map(([name, value]) => (name === 'result' ? String(value) : `${name} ${String(value)}`)).join(', ')
  const isDone = told.every(([name, value]) => name !== 'result' || value === 'ok')
  return `${isDone ? 'done' : 'not done'}${text === '' ? '' : ` (${text})`}`
}

function faultOf(error: unknown): string {
  const { code, status } = known(error)
  return status < 500 ? `not done (${code})` : `failed (${code}), perhaps half done`
}
