// Which dead letters the address of the page asks for, and how a sentence says it.
import { count, visible } from '../../lib/format.ts'
import type { Phrase } from '../../lib/lane-sentence.ts'

/** The filter of the API, which reads, counts and acts on the same dead letters. */
export interface Filter {
  readonly kind: 'run' | 'unrouted'
  readonly flow?: string
  readonly key?: string
  readonly tenant?: string
  readonly reason?: string
}

export function filterOf(query: Readonly<Record<string, string>>): Filter {
  const { kind = '', flow = '', key = '', tenant = '', reason = '' } = query
  return {
    kind: kind === 'unrouted' ? 'unrouted' : 'run',
    ...(flow !== '' && { flow }),
    ...(flow !== '' && key !== '' && { key }),
    ...(tenant !== '' && { tenant }),
    ...(reason !== '' && { reason }),
  }
}

export function nounOf(kind: Filter['kind'], total: number): string {
  const noun = kind === 'run' ? 'dead letter' : 'unrouted event'
  return total === 1 ? noun : `${noun}s`
}

const bold = (text: string): Phrase => ({ text: visible(text) })

/** `phrasesOf` says which ones a filter means: "186 dead letters of invoices with ‘tax’ in the reason". */
export function phrasesOf({ kind, flow, key, tenant, reason }: Filter, total: number, isExact = true): Phrase[] {
  return [
    isExact ? '' : 'at least ',
    bold(count(total)),
    ` ${nounOf(kind, total)}`,
    ...(flow === undefined ? [] : [' of ', bold(flow)]),
    ...(key === undefined ? [] : [' with the key ', bold(key)]),
    ...(tenant === undefined ? [] : [' of the tenant ', bold(tenant)]),
    ...(reason === undefined ? [] : [' with ', bold(`‘${reason}’`), ' in the reason']),
  ]
}
