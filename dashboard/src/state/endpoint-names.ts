// The names of the endpoints: the key of a delivery's lane is the id of an endpoint, so pages show its name instead.
import { computed, effect, signal } from '@preact/signals'
import { get } from '../lib/api.ts'
import { visible } from '../lib/format.ts'
import type { Endpoint, Page } from '../lib/types.ts'
import { repeat } from './resource.ts'
import { status } from './status.ts'

const EVERY = 30_000
const names = signal<ReadonlyMap<string, string>>(new Map())
const deliveries = computed(
  () => new Set(status.value?.flows.filter(({ delivery }) => delivery).map(({ flow }) => flow)),
)
const hasDeliveries = computed(() => deliveries.value.size > 0)

export function isDelivery(flow: string): boolean {
  return deliveries.value.has(flow)
}

/** `laneName` is what people call a lane: its key, or the name of its endpoint. */
export function laneName({ flow, key }: { readonly flow: string; readonly key: string }): string {
  if (!deliveries.value.has(flow)) return visible(key)
  // An endpoint with parallel lanes has a number behind its id.
  const id = /^ep_[\w-]{12}/.exec(key)?.[0] ?? key
  const name = names.value.get(id)
  return name === undefined || name === ''
    ? visible(key)
    : `${visible(name)}${visible(key.slice(id.length) || ' ').trimEnd()}`
}

async function read(): Promise<void> {
  try {
    const { items } = await get<Page<Endpoint>>('v1/webhooks/subscribers')
    names.value = new Map(items.map(({ id, name }) => [id, name]))
  } catch {
    // The ids are shown then.
  }
}

export function startEndpointNames(): void {
  effect(() => {
    if (!hasDeliveries.value) return undefined
    void read()
    return repeat(() => void read(), EVERY)
  })
}
