// Checks that each message gets one answer despite cancelled answers, failures, crashes, and answers that come too late.
import type { Scenario } from '../../kit/example.ts'
import type { World } from '../world.ts'
import { Chat } from './chat.ts'

const OVERLOADED = (): Response => Response.json({ error: { message: 'The model is overloaded.' } }, { status: 503 })
const REFUSED = (): Response => Response.json({ error: { message: 'The text is not allowed.' } }, { status: 400 })

const cancelled: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const { model } = stage.world
  model.takes = chat.ms(40)
  const ada = chat.person('ada')
  await chat.write(ada, 'I want to book a table')
  await stage.until('the model works on an answer', () => chat.drafts.length === 1, 200_000)
  await chat.write(ada, 'for four', { second: 70 })
  await stage.until('the model is told to stop', () => chat.drafts[0]?.state !== 'making', model.takes * 0.9)
  chat.check(`the answer in the making was ${chat.drafts[0]?.state}`, chat.drafts[0]?.state === 'aborted')
  await chat.idle()
  chat.checkTexts('the second call has both', chat.answered, ['I want to book a table\n[+70s] for four'])
  chat.check('one answer was sent', chat.sent.length === 1)
  chat.checkWait(chat.sent[0]?.at, 60)
}

const committed: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const ada = chat.person('ada')
  stage.world.meta.takes = chat.ms(10)
  const posts = stage.world.metaLog.length
  await chat.write(ada, 'Hello')
  await stage.until('Meta gets the answer', () => stage.world.metaLog.length > posts, 200_000)
  await chat.write(ada, 'One more thing')
  await chat.idle()
  chat.checkTexts('an answer on its way is not taken back, and nothing is answered twice', chat.answered, [
    'Hello',
    'One more thing',
  ])
  chat.check('two answers were sent', chat.sent.length === 2)
}

const longestWait: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  await chat.set({ longest_wait_ms: chat.ms(150) })
  const ada = chat.person('ada')
  const began = stage.clock.monotonic()
  for (let n = 0; n < 7; n++) {
    await chat.write(ada, `m${n}`)
    await chat.pass(30)
  }
  await chat.idle()
  const all = chat.answered.join('\n').match(/m\d/g)?.join('') ?? ''
  chat.check(`nobody types for ever: ${chat.sent.length} answers to seven messages in 180 s`, chat.sent.length === 2)
  chat.check(`each message was answered once: ${all}`, all === 'm0m1m2m3m4m5m6')
  const after = (chat.drafts[0]?.asked ?? 0) - began
  const isDue = stage.isVirtual ? after === 150_000 : after >= chat.ms(150) - 20
  chat.check(`the first answer was begun after ${Math.round(after)} ms`, isDue)
}

const transient: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const ada = chat.person('ada')
  const failures = [OVERLOADED, OVERLOADED]
  stage.world.model.fail = () => failures.shift()?.()
  await chat.write(ada, 'Hello')
  await chat.pass(61)
  await stage.until('the model fails', () => chat.drafts[0]?.state === 'failed')
  await chat.write(ada, 'Are you there?')
  await chat.idle()
  chat.checkTexts('the model was asked again, with what it had', chat.answered, ['Hello', 'Are you there?'])
  chat.check('two answers were sent', chat.sent.length === 2)
}

const crash: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const [ada, ben] = [chat.person('ada'), chat.person('benjamin')]
  stage.world.model.takes = chat.ms(10)
  await chat.write(ada, 'before the crash')
  await stage.until('the model works on an answer', () => chat.drafts.length === 1, 200_000)
  await chat.write(ben, 'at the crash')
  stage.tell('app', 'is restarted')
  await stage.restart()
  await chat.write(ben, 'after it', { second: 65 })
  await chat.idle()
  const texts = new Set(chat.sent.map(({ text }) => text))
  chat.checkTexts('everybody was answered once', [...texts].toSorted(), [
    'You wrote: at the crash\n[+65s] after it',
    'You wrote: before the crash',
  ])
  chat.check('nobody was answered twice', chat.sent.length === 2)
}

const fallback: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage, { fallback_text: 'A person will call you.' })
  stage.world.model.fail = REFUSED
  await chat.write(chat.person('ada'), 'Hello')
  await stage.until('Ada gets something', () => chat.sent.length > 0, 120_000)
  await chat.idle()
  chat.checkTexts(
    'in place of an answer, Ada got',
    chat.sent.map(({ text }) => text),
    ['A person will call you.'],
  )
  const { items } = await stage.app.admin.deadLetters.list({ flow: 'answer' })
  chat.check('the message is among the dead letters', items.length >= 1)
  await chat.set({ fallback_text: '' })
  await chat.write(chat.person('benjamin'), 'Hello')
  await stage.until('the answer is dead', () => chat.drafts.length === 2, 200_000)
  await chat.idle()
  chat.check('without a fallback text, nothing is sent', chat.sent.length === 1)
}

const tooLate: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  stage.tell('meta', 'was down for a day, and sends what it has kept')
  await chat.write(chat.person('ada'), 'Are you open today?', { second: -25 * 3_600 })
  await chat.write(chat.person('benjamin'), 'Are you open tomorrow?', { second: -23 * 3_600 })
  await chat.idle()
  chat.checkTexts('the model got', chat.answered, ['Are you open tomorrow?'])
  chat.check('one answer was sent', chat.sent.length === 1)
  const { items } = await stage.app.admin.deadLetters.list({ flow: 'answer' })
  const reasons = items.map((deadLetter) => deadLetter.reason)
  chat.check(`the other one is a dead letter: ${reasons[0]}`, /24 hours/.test(reasons[0] ?? ''))
}

export const ANSWERS: Readonly<Record<string, Scenario<World>>> = {
  'A message cancels the answer in the making': cancelled,
  'After the commit, an answer is sent': committed,
  'The longest wait': longestWait,
  'A model that fails for a while': transient,
  'A restart in the middle of an answer': crash,
  'A dead letter sends the fallback text': fallback,
  'No answer after 24 hours': tooLate,
}
