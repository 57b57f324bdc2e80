// What a provider has accepted may still fail, and what it has accepted may seem to have failed.
import type { Scenario } from '../../kit/example.ts'
import type { World } from '../world.ts'
import { Chat } from './chat.ts'

/** Meta's codes, and Twilio's: its own trouble, a text that it refuses, and a person whom no free text reaches. */
const META = { trouble: 131_000, refused: 131_051, unreachable: 131_026 } as const
const TWILIO = { trouble: 63_012, refused: 63_013, unreachable: 63_016 } as const
const FALLBACK = 'A person will call you.'
/** Longer than any report is waited for, in real time as well. */
const REPORTED = 6_500

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
  const first = chat.sent.find(({ to }) => to === ada)
  const delivered = chat.sent.find(({ to }) => to === dora)
  if (first === undefined || delivered === undefined) throw new Error('Nobody was answered.')
  // Statuses come in any order.
  await chat.report(delivered, 'failed', codes.trouble)
  await chat.report(delivered, 'delivered')
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
  chat.checkTexts('what was delivered in the end is not sent again', gotBy(chat, dora), [answer])
  chat.checkTexts('to a person whom nothing reaches, nothing is sent', gotBy(chat, cleo), [answer])

  // These are reported again, or are of another app.
  await chat.report(first, 'failed', codes.trouble)
  await chat.report({ ...first, id: `${first.id}.of-another-app` }, 'failed', codes.trouble)
  await fail(
    chat,
    new Map<string, number>([
      [ada, codes.trouble],
      [ben, codes.refused],
    ]),
  )
  chat.checkTexts('if that fails too, the fallback is sent', gotBy(chat, ada), [answer, answer, FALLBACK])
  chat.checkTexts('a fallback that is refused has no fallback', gotBy(chat, ben), [answer, FALLBACK])
  const { items } = await chat.stage.app.admin.deadLetters.list({ flow: 'undelivered' })
  const reasons = items.map(({ reason }) => /error (\d+)/.exec(reason ?? '')?.[1] ?? 'unknown')
  const own = reasons.filter((code) => Object.values(codes).some((one) => String(one) === code)).toSorted()
  const dead = [codes.trouble, codes.unreachable, codes.refused, codes.refused].map(String).toSorted()
  chat.checkTexts('an operator sees the four failures that were not repeated', own, dead)
  chat.check(
    'nothing else is dead',
    reasons.every((code) => code !== 'unknown'),
  )
}

const meta: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage, { fallback_text: FALLBACK })
  const people = ['ada', 'benjamin', 'cleo-x', 'd'].map((name) => chat.person(name))
  for (const person of people) await chat.write(person, 'Hello')
  await chat.idle()
  await everyRemedy(
    chat,
    people.map(({ phone = '' }) => phone),
    META,
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
  hang(chat, () => 500)
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
  const text = 'Are you there?'
  makeRepliesDiffer(stage.world, text)
  hang(chat, () => (chat.sent.length === 1 ? HANGS : 0))
  await chat.write(chat.person('ada'), text)
  await chat.idle()
  const [one, two] = chat.sent
  chat.check('an answer whose acceptance was not heard of is sent again', chat.sent.length === 2)
  chat.check(`it is the same text: ${one?.text}`, one?.text === two?.text && one?.run === two?.run)
  chat.check('the model was asked once', chat.drafts.filter((draft) => draft.text === text).length === 1)
}

/** They have nothing to do with each other, and a play would take long. */
const reported: Scenario<World> = async (stage) => {
  await Promise.all([meta(stage), twilio(stage), early(stage), timeout(stage)])
}

const crash: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  makeRepliesDiffer(stage.world, 'Hello')
  hang(chat, () => (chat.sent.length === 1 ? 3_000 : 0))
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

/** Meta takes so long to say that it has accepted a message from this line. */
function hang({ line, stage }: Chat, takes: () => number): void {
  const { meta: provider } = stage.world
  const others = provider.hangs
  provider.hangs = (sent) => (sent.line === line ? takes() : others(sent))
}

/** The model answers this text differently each time. */
function makeRepliesDiffer({ model }: World, wanted: string): void {
  const others = model.reply
  model.reply = (text) => (text === wanted ? `Reply ${model.drafts.length} to ${text}` : others(text))
}

export const LATE_FAILURES: Readonly<Record<string, Scenario<World>>> = {
  'Failures that are reported late or early, and a response that does not come in time': reported,
  'A crash after the provider accepted the answer': crash,
}
