// What a provider has accepted may still fail, and what it has accepted may seem to have failed.
import type { Scenario } from '../../kit/example.ts'
import type { Sent } from '../stand-in/outbox.ts'
import type { World } from '../world.ts'
import { Chat } from './chat.ts'

/** Meta's codes, and Twilio's: its own trouble, a text that it refuses, and a person whom no free text reaches. */
const META = { trouble: 131_000, refused: 131_051, unreachable: 131_026 } as const
const TWILIO = { trouble: 63_012, refused: 63_013, unreachable: 63_016 } as const
const FALLBACK = 'A person will call you.'
/** Longer than any report is waited for, in real time as well. */
const REPORTED = 8_000

/** Reports that the newest message to each of them failed, with the code for each, and waits for what follows. */
async function fail(chat: Chat, codes: ReadonlyMap<string, number>): Promise<void> {
  for (const [to, code] of codes) {
    const newest = chat.sent.findLast((sent) => sent.to === to)
    if (newest !== undefined) await chat.report(newest, newest.id.startsWith('SM') ? 'undelivered' : 'failed', code)
  }
  await chat.stage.sleep(REPORTED)
  await chat.idle()
}

const gotBy = (chat: Chat, to: string): readonly string[] => chat.sent.flatMap((one) => (one.to === to ? one.text : []))

async function everyRemedy(chat: Chat, people: readonly string[], codes: typeof META | typeof TWILIO): Promise<void> {
  const [ada = '', ben = '', cleo = '', dora = ''] = people
  const answer = 'You wrote: Hello'
  await fail(
    chat,
    new Map<string, number>([
      [ada, codes.trouble],
      [ben, codes.refused],
      [cleo, codes.unreachable],
    ]),
  )
  chat.checkTexts('after trouble of the provider, the same answer is sent again', gotBy(chat, ada), [answer, answer])
  chat.checkTexts('in place of a text that is refused, the fallback is sent', gotBy(chat, ben), [answer, FALLBACK])
  chat.checkTexts('to a person whom nothing reaches, nothing is sent', gotBy(chat, cleo), [answer])
  chat.checkTexts('what was not reported as failed is not repeated', gotBy(chat, dora), [answer])

  await fail(
    chat,
    new Map<string, number>([
      [ada, codes.trouble],
      [ben, codes.refused],
    ]),
  )
  chat.checkTexts('if that fails too, the fallback is sent', gotBy(chat, ada), [answer, answer, FALLBACK])
  chat.checkTexts('a fallback that is refused has no fallback', gotBy(chat, ben), [answer, FALLBACK])
  chat.check('the model was asked once for each', chat.drafts.length === people.length)
  const { items } = await chat.stage.app.admin.deadLetters.list({ flow: 'undelivered' })
  const reasons = items.map(({ reason }) => reason ?? '')
  chat.check(
    `an operator sees why: ${reasons.join(' | ')}`,
    Object.values(codes).every((code) => reasons.some((reason) => reason.includes(String(code)))),
  )
}

const meta: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage, { fallback_text: FALLBACK })
  const people = ['ada', 'benjamin', 'cleo-x', 'd'].map((name) => chat.person(name))
  for (const person of people) await chat.write(person, 'Hello')
  await chat.idle()
  const first = chat.sent.find(({ to }) => to === people[0]?.phone)
  await everyRemedy(
    chat,
    people.map(({ phone = '' }) => phone),
    META,
  )
  const before = chat.sent.length
  if (first !== undefined) await chat.report(first, 'failed', META.trouble)
  const [last] = chat.sent.filter(({ to }) => to === people[3]?.phone)
  if (last !== undefined) await chat.report(last, 'delivered')
  await stage.sleep(REPORTED)
  if (last !== undefined) await chat.report(last, 'failed', META.trouble)
  await chat.report({ ...(last as Sent), id: 'wamid.of-somebody-else' }, 'failed', META.trouble)
  await stage.sleep(REPORTED)
  await chat.idle()
  chat.check(
    'a failure reported twice, after the delivery, or of another app has no consequence',
    chat.sent.length === before,
  )
}

const twilio: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const change = { natural_delays_enabled: false, typing_indicator_enabled: false, fallback_text: FALLBACK }
  await chat.set({ wait_time_before_replying_ms: chat.ms(60), ...change }, `+${chat.line}`)
  const people = ['1', '2', '3', '4'].map((n) => `+55119999${n}`)
  for (const [n, phone] of people.entries())
    await chat.twilio({ From: `whatsapp:${phone}`, Body: 'Hello', MessageSid: `SM${chat.line}${n}` })
  await chat.idle()
  await everyRemedy(chat, people, TWILIO)
}

/** A report may be faster than the record of what it is about. */
const early: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  stage.world.meta.hangs = () => 500
  await chat.write(chat.person('ada'), 'Hello')
  await stage.until('Meta has the answer', () => chat.sent.length === 1, 200_000)
  const [first] = chat.sent
  if (first !== undefined) await chat.report(first, 'failed', META.trouble)
  await stage.sleep(REPORTED)
  await chat.idle()
  chat.checkTexts(
    'a failure that is reported before the response is not lost',
    chat.sent.map(({ text }) => text),
    ['You wrote: Hello', 'You wrote: Hello'],
  )
}

/** Longer than the app waits for a response. */
const HANGS = 25_000

const timeout: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const { meta: provider, model } = stage.world
  model.reply = (text) => `Reply ${model.drafts.length} to ${text}`
  provider.hangs = () => (chat.sent.length === 1 ? HANGS : 0)
  await chat.write(chat.person('ada'), 'Hello')
  await chat.idle()
  const [one, two] = chat.sent
  chat.check('an answer whose acceptance was not heard of is sent again', chat.sent.length === 2)
  chat.check(`it is the same text: ${one?.text}`, one?.text === two?.text && one?.run === two?.run)
  chat.check('the model was asked once', chat.drafts.length === 1)
}

const crash: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const { meta: provider, model } = stage.world
  model.reply = (text) => `Reply ${model.drafts.length} to ${text}`
  provider.hangs = () => (chat.sent.length === 1 ? 3_000 : 0)
  await chat.write(chat.person('ada'), 'Hello')
  await stage.until('Meta has the answer', () => chat.sent.length === 1, 200_000)
  stage.tell('app', 'is restarted')
  await stage.restart()
  await chat.idle()
  // A play stops the app in good order, and the answer is recorded. In virtual time, the process is gone at once.
  chat.check(
    `after a crash before the record, ${chat.sent.length} were sent`,
    chat.sent.length === (stage.isVirtual ? 2 : 1),
  )
  const texts = new Set(chat.sent.map(({ text }) => text))
  chat.check(`all have the same text: ${[...texts].join(' | ')}`, texts.size === 1 && chat.drafts.length === 1)
}

export const LATE_FAILURES: Readonly<Record<string, Scenario<World>>> = {
  'Meta reports later that an answer failed': meta,
  'Twilio reports later that an answer failed': twilio,
  'A failure reported before the response': early,
  'A provider that accepts an answer, and does not say so in time': timeout,
  'A crash after the provider accepted the answer': crash,
}
