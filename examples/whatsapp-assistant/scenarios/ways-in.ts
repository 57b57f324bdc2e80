// The two ways in: Meta and Twilio.
import type { Scenario } from '../../kit/example.ts'
import { META } from '../stand-in/meta.ts'
import type { Stage } from '../../kit/stage.ts'
import type { World } from '../world.ts'
import { Chat } from './chat.ts'

const meta: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const query = `hub.mode=subscribe&hub.challenge=4711&hub.verify_token=${META.verifyToken}`
  const handshake = await stage.send(`/in/whatsapp?${query}`)
  const challenge = await handshake.text()
  chat.check('the handshake returns the challenge', handshake.status === 200 && challenge === '4711')
  const forged = stage.world.meta.webhook(chat.line, [chat.message(chat.person('eve'), 'Hi')])
  const { status } = await stage.send('/in/whatsapp', { ...forged, body: '{}' })
  chat.check(`a forged webhook gets ${status}`, status === 401)

  const [ada, ben] = [chat.person('ada'), chat.person('benjamin')]
  const { phone: _, ...cleo } = chat.person('cleo')
  const image = { type: 'image', image: { id: '815', mime_type: 'image/jpeg', caption: 'My receipt' } }
  const location = { type: 'location', location: { latitude: -23.55, longitude: -46.63, name: 'Padaria' } }
  stage.tell('meta', 'sends one webhook with messages of three people')
  await chat.post([
    chat.message(ada, 'from Ada'),
    chat.message(cleo, 'from Cleo, who hides her number'),
    chat.message(ben, '', { content: image }),
    chat.message(ben, '', { content: location }),
    chat.message(ada, 'again', { second: 3 }),
    chat.message(ada, '', { content: { type: 'reaction', reaction: { emoji: '👍' } } }),
  ])
  await chat.idle()
  chat.checkTexts('each person got one answer', chat.sent.map(({ to }) => to).toSorted(), [
    ...[ada.phone, ben.phone].map(String).toSorted(),
    cleo.userId,
  ])
  chat.checkTexts('the model got', chat.answered.toSorted(), [
    'My receipt <image 815 image/jpeg>\n[+0s] <location -23.55,-46.63 Padaria>',
    'from Ada\n[+3s] again',
    'from Cleo, who hides her number',
  ])

  const [answer] = chat.sent
  for (const state of ['sent', 'delivered', 'read']) {
    if (answer !== undefined) await chat.report(answer, state)
  }
  await stage.idle({ flows: ['statuses'] })
  chat.checkTexts('statuses are counted and answered by nobody', countedStatuses(stage, 'whatsapp'), [
    'whatsapp status.delivered',
    'whatsapp status.read',
    'whatsapp status.sent',
  ])
  chat.check('three answers were sent', chat.sent.length === 3)
}

const twilio: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  await chat.set({ wait_time_before_replying_ms: chat.ms(60), natural_delays_enabled: false }, `+${chat.line}`)
  const From = 'whatsapp:+5511999998888'
  const response = await chat.twilio({ From, Body: 'Oi', MessageSid: 'SM1' })
  const twiml = await response.text()
  chat.check(
    `Twilio got ${twiml} at once`,
    response.headers.get('content-type') === 'text/xml' && twiml === '<Response></Response>',
  )
  await chat.pass(5)
  const media = { NumMedia: '1', MediaUrl0: 'https://api.twilio.com/m/1', MediaContentType0: 'image/png' }
  await chat.twilio({ From, Body: 'Look', MessageSid: 'SM2', ...media })
  stage.tell('twilio', 'sends the last message again')
  await chat.twilio({ From, Body: 'Look', MessageSid: 'SM2', ...media })
  const forged = await stage.send('/in/twilio', stage.world.twilio.webhook('https://elsewhere.example', { From }))
  chat.check(`a forged webhook gets ${forged.status}`, forged.status === 401)
  const place = { Latitude: '-23.55', Longitude: '-46.63', Label: 'Padaria', Address: 'Rua Augusta 1' }
  await chat.twilio({ From, MessageSid: 'SM3', ...place })
  await chat.idle()
  const seconds = stage.isVirtual ? 5 : 0
  chat.checkTexts('the model got', chat.answered, [
    [
      'Oi',
      `[+${seconds}s] Look <media https://api.twilio.com/m/1 image/png>`,
      `[+${seconds}s] <location -23.55,-46.63 Padaria, Rua Augusta 1>`,
    ].join('\n'),
  ])
  chat.checkTexts(
    'one answer went out through Twilio, from the line that was written to',
    chat.sent.map(({ line, to }) => `${line} ${to}`),
    [`+${chat.line} +5511999998888`],
  )
  const [answer] = chat.sent
  for (const state of ['queued', 'sent', 'delivered', 'read'])
    if (answer !== undefined) await chat.report(answer, state)
  await stage.idle({ flows: ['statuses'] })
  chat.checkTexts('statuses are counted and answered by nobody', countedStatuses(stage, 'twilio'), [
    'twilio message.delivered',
    'twilio message.queued',
    'twilio message.read',
    'twilio message.sent',
  ])
  chat.check('one answer was sent', chat.sent.length === 1)
}

function countedStatuses(stage: Stage<World>, source: string): readonly string[] {
  return stage
    .emitted('run.done')
    .filter(({ flow }) => flow === 'statuses')
    .flatMap(({ counts }) => Object.keys(counts ?? {}))
    .filter((name) => name.startsWith(source))
    .toSorted()
}

export const WAYS_IN: Readonly<Record<string, Scenario<World>>> = {
  'In through Meta: batches, the handshake, hidden numbers, media, statuses': meta,
  'In through Twilio: signed forms, TwiML at once, media': twilio,
}
