// Prints endpoints: as a list, and one in detail.
import { formatTime, type Column, type Field } from '../output.ts'

export interface EndpointView {
  readonly id: string
  readonly name: string
  readonly url: string
  readonly tenant: string
  readonly description: string
  readonly eventFilter: readonly string[]
  readonly signing: Readonly<Record<string, string>>
  readonly form: string
  /** Only the names of the headers. */
  readonly headers: readonly string[]
  readonly rate: { readonly rate: number; readonly per: string } | null
  readonly active: boolean
  readonly proof: string
  readonly createdAt: number
  readonly lastSuccessfulDeliveryAt?: number
  readonly health: { readonly status: string; readonly why: string; readonly successRate?: number }
}

export const ENDPOINT_COLUMNS: readonly Column<EndpointView>[] = [
  { title: 'id', cell: ({ id }) => id },
  { title: 'url', cell: ({ url }) => url },
  { title: 'wants', cell: ({ eventFilter }) => eventFilter.join(' ') },
  { title: 'tenant', cell: ({ tenant }) => tenant },
  { title: 'is', cell: describeState },
  { title: 'health', cell: ({ health }) => health.status },
  { title: 'delivered', cell: ({ health }) => formatPercent(health.successRate) },
  { title: 'last', cell: ({ lastSuccessfulDeliveryAt: at }) => (at === undefined ? '' : formatTime(at)) },
  { title: 'name', cell: ({ name }) => name },
]

function describeState({ active, proof }: EndpointView): string {
  return proof === 'pending' ? 'unproven' : active ? 'active' : 'paused'
}

export function toFields(it: EndpointView): readonly Field[] {
  const { signing, rate, health } = it
  return [
    ['id', it.id],
    ['url', it.url],
    ['name', nonEmpty(it.name)],
    ['description', nonEmpty(it.description)],
    ['tenant', nonEmpty(it.tenant)],
    ['wants', it.eventFilter.join(' ')],
    ['is', describeState(it)],
    ['signing', Object.values(signing).filter(Boolean).join(':')],
    ['form', it.form],
    ['headers', nonEmpty(it.headers.join(' '))],
    ['rate', rate === null ? undefined : `${rate.rate} in ${rate.per}`],
    ['added', formatTime(it.createdAt)],
    ['health', `${health.status} ${health.why}`.trimEnd()],
    ['delivered', nonEmpty(formatPercent(health.successRate))],
    ['last', formatTime(it.lastSuccessfulDeliveryAt)],
  ]
}

function nonEmpty(text: string): string | undefined {
  return text === '' ? undefined : text
}

function formatPercent(rate: number | undefined): string {
  return rate === undefined ? '' : `${Math.floor(rate * 100)} %`
}
