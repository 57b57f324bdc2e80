// The assistant as the kit plays, serves and tests it, on stand-ins for Meta, Twilio and the model.
import type { Example } from '../kit/example.ts'
import { build } from './assistant.ts'
import { phone } from './phone.ts'
import { ANSWERS } from './scenarios/answers.ts'
import { LATE_FAILURES } from './scenarios/late-failures.ts'
import { SEED } from './scenarios/seed.ts'
import { SETTINGS } from './scenarios/settings.ts'
import { WAYS_IN } from './scenarios/ways-in.ts'
import { wrongClock } from './wrong-clock.ts'
import { calm, ENV, makeWorld, type World } from './world.ts'

export const assistant: Example<World> = {
  main: import.meta.resolve('./main.ts'),
  build: (at) => {
    if (at.env['CLOCKS_OFF'] !== 'yes') return build(at)
    const clock = wrongClock(at.clock, process.pid)
    return build({ ...at, clock, options: { ...at.options, clock } })
  },
  world: makeWorld,
  reset: calm,
  store: 'postgres',
  workers: 2,
  page: phone,
  env: ENV,
  options: { lease: '6s', heartbeat: '2s', shutdownTimeout: '5s' },
  scenarios: { ...SEED, ...WAYS_IN, ...ANSWERS, ...LATE_FAILURES, ...SETTINGS },
  narrate: (app, tell) => {
    app.on('run.done', ({ flow, key, events }) => {
      if (flow === 'answer') tell(key, `was answered, ${events} messages`)
    })
    app.on('run.cancelled', ({ key }) => tell(key, 'wrote again: the answer in the making is given up'))
  },
}
