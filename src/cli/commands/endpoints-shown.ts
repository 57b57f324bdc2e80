// How an endpoint looks: in the list, and by itself.
import { time, type Column, type Field } from '../output.ts'

export interface Endpoint {
  readonly id: string
  readonly name: string
  readonly url: string
  readonly tenant: string
  readonly description: string
  readonly eventFilter: readonly string[]
  readonly signing: Readonly<Record<string, string>>
  readonly form: string
  /** Their names. */
  readonly headers: readonly string[]
  readonly rate: { readonly rate: number; readonly per: string } | null
  readonly active: boolean
  readonly proof: string
  readonly createdAt: number
  readonly lastSuccessfulDeliveryAt?: number
  readonly health: { readonly status: string; readonly why: string; readonly successRate?: number }
}

export const ENDPOINTS: readonly Column<Endpoint>[] = [
  { title: 'id', cell: ({ id }) => id },
  { title: 'url', cell: ({ url }) => url },
  { title: 'wants', cell: ({ eventFilter }) => eventFilter.join(' ') },
  { title: 'tenant', cell: ({ tenant }) => tenant },
  { title: 'is', cell: stateOf },
  { title: 'health', cell: ({ health }) => health.status },
  { title: 'delivered', cell: ({ health }) => percent(health.successRate) },
  { title: 'last', cell: ({ lastSuccessfulDeliveryAt: at }) => (at === undefined ? '' : time(at)) },
  { title: 'name', cell: ({ name }) => name },
]

function stateOf({ active, proof }: Endpoint): string {
  return proof === 'pending' ? 'unproven' : active ? 'active' : 'paused'
}

export function fieldsOf(it: Endpoint): readonly Field[] {
  const { signing, rate, health } = it
  return [
    ['id', it.id],
    ['url', it.url],
    ['name', said(it.name)],
    ['description', said(it.description)],
    ['tenant', said(it.tenant)],
    ['wants', it.eventFilter.join(' ')],
    ['is', stateOf(it)],
    ['signing', Object.values(signing).filter(Boolean).join(':')],
    ['form', it.form],
    ['headers', said(it.headers.join(' '))],
    ['rate', rate === null ? undefined : `${rate.rate} in ${rate.per}`],
    ['added', time(it.createdAt)],
    ['health', `${health.status} ${health.why}`.trimEnd()],
    ['delivered', said(percent(health.successRate))],
    ['last', time(it.lastSuccessfulDeliveryAt)],
  ]
}

function said(text: string): string | undefined {
  return text === '' ? undefined : text
}

function percent(rate: number | undefined): string {
  return rate === undefined ? '' : `${Math.floor(rate * 100)} %`
}
