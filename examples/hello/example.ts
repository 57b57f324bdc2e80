// Hello as the kit plays it: its world is one stand-in, and two scenarios judge what arrives there.
import type { Example, Scenario } from '../kit/example.ts'
import type { Stage } from '../kit/stage.ts'
import type { StandIn } from '../kit/stand-in.ts'
import { build } from './sluice.config.ts'

interface World {
  readonly mail: StandIn
}

async function knock(stage: Stage<World>, name: string): Promise<void> {
  stage.tell(name, 'knocks')
  const headers = { authorization: 'Bearer knock-knock', 'content-type': 'application/json' }
  const body = JSON.stringify({ type: 'knock', name })
  const { status } = await stage.send('/in/door', { method: 'POST', headers, body })
  if (status !== 202) throw new Error(`The app answered ${status}.`)
}

const aBurst: Scenario<World> = async (stage) => {
  for (const name of ['ada', 'ben', 'ada', 'ada']) {
    await knock(stage, name)
    await stage.sleep(200)
  }
  await stage.idle()
  const mails = stage.world.mail.log.map((request) => (request.json() as { text: string }).text)
  stage.check(
    `mails: ${mails.join(' ')}`,
    mails.join() === 'Hello ben, you knocked 1 times.,Hello ada, you knocked 3 times.',
  )
}

const aRestart: Scenario<World> = async (stage) => {
  const { mail } = stage.world
  const answers = [500, 200]
  mail.respond = () => new Response('', { status: answers.shift() ?? 200 })
  const before = mail.log.length
  await knock(stage, 'cleo')
  await stage.restart()
  await stage.idle()
  const statuses = mail.log.slice(before).map(({ status }) => status)
  stage.check(
    `after a restart and a fault, the mail service answered ${statuses.join(', then ')}`,
    statuses.join() === '500,200',
  )
}

export const hello: Example<World> = {
  main: import.meta.resolve('./main.ts'),
  build,
  world: ({ standIn }) => ({ mail: standIn('mail', () => new Response('sent')) }),
  env: { QUIET_MS: '1000' },
  scenarios: { 'A burst is one greeting': aBurst, 'A restart loses nothing': aRestart },
  narrate: (app, tell) => void app.on('run.done', ({ key, events }) => tell(key, `was greeted for ${events} knocks`)),
  page: (stage) => ({
    folder: new URL('page/', import.meta.url),
    state: () => ({ mails: stage.world.mail.log.map(({ body }) => body) }),
    actions: { knock: (body) => knock(stage, String(body)) },
  }),
  hints: ({ address }) => [
    `curl -i ${address}/in/door -H 'authorization: Bearer knock-knock' -H 'content-type: application/json' -d '{"type":"knock","name":"you"}'`,
  ],
}
