// Measures shares with many tenants (L5g): the cost of a claim depends on its slots, not on the number of other tenants.
import { setTimeout as sleep } from 'node:timers/promises'
import { Sluice } from '../../src/index.ts'

const BATCH = 1_000

export interface ManyTenants {
  readonly store: string
  readonly tenants: number
}

export interface ManyFigure {
  readonly runs: number
  /** CPU time in ms, on which other processes have little influence. */
  readonly cpu: number
  /** From the end of `publish` to the run, in ms. */
  readonly slowest: number
}

/** Events of one tenant, while each of many others has an open window. */
export async function besideOpenWindows(load: ManyTenants & { readonly events: number }): Promise<ManyFigure> {
  const app = new Sluice({ store: load.store, log: false })
  let sent = 0
  const took: number[] = []
  app.flow('shared', {
    on: 'work',
    key: (event) => event.tenant,
    share: 'tenant',
    window: (event) => (event.tenant === 'now' ? {} : { quiet: '1h' }),
    run: () => void took.push(performance.now() - sent),
  })
  await publishOfEach(app, load.tenants)
  await app.start()
  await sleep(200)
  const before = process.cpuUsage()
  for (let n = 1; n <= load.events; n++) {
    sent = performance.now()
    await app.publish({ type: 'work', tenant: 'now' })
    while (took.length < n) await sleep(5)
  }
  const figure = { runs: took.length, cpu: cpuSince(before), slowest: Math.round(Math.max(...took)) }
  await app.stop()
  return figure
}

/** One ready lane per tenant, until all have run. */
export async function eachOnce({ store, tenants }: ManyTenants): Promise<ManyFigure> {
  const app = new Sluice({ store, log: false })
  const ran = new Set<string>()
  app.flow('shared', {
    on: 'work',
    key: (event) => event.tenant,
    share: 'tenant',
    run: async ({ tenant }) => {
      ran.add(tenant ?? '')
      await sleep(1)
    },
  })
  await publishOfEach(app, tenants)
  const began = performance.now()
  const before = process.cpuUsage()
  await app.start()
  while (ran.size < tenants) await sleep(5)
  const figure = { runs: ran.size, cpu: cpuSince(before), slowest: Math.round(performance.now() - began) }
  await app.stop()
  return figure
}

function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return Math.round((user + system) / 1_000)
}

async function publishOfEach(app: Sluice, tenants: number): Promise<void> {
  for (let from = 0; from < tenants; from += BATCH) {
    const length = Math.min(BATCH, tenants - from)
    await app.publish(Array.from({ length }, (_, n) => ({ type: 'work', tenant: `t${from + n}` })))
  }
}
