// Opik alerts as the kit plays, serves and tests it, on stand-ins for the receivers.
import type { Example } from '../kit/example.ts'
import { LIMITS } from './scenarios/limits.ts'
import { OUTAGE } from './scenarios/outage.ts'
import { SEED } from './scenarios/seed.ts'
import { SENDING } from './scenarios/sending.ts'
import { build } from './sluice.config.ts'
import { storm } from './storm.ts'
import { makeWorld, repair, SHORT_TIMES, type World } from './world.ts'

export const opikAlerts: Example<World> = {
  main: import.meta.resolve('./main.ts'),
  build,
  world: makeWorld,
  reset: repair,
  env: SHORT_TIMES,
  page: storm,
  options: {
    lease: '6s',
    heartbeat: '2s',
    // The stand-ins are on this machine.
    delivery: { allowLoopback: true },
  },
  scenarios: { ...SEED, ...LIMITS, ...OUTAGE, ...SENDING },
  narrate: (app, tell) => {
    app.on('run.done', ({ flow, events }) => {
      if (flow === 'collect') tell('window', `ended with ${events} events`)
    })
    app.on('run.dropped', ({ events, reason }) => tell('window', `${events} events were dropped: ${reason}`))
    app.on('run.dead', ({ error }) => tell('receiver', `gave up: ${error}`))
    app.on('alert.raised', ({ text }) => tell('operators', text))
  },
}
