// The settings of a tenant, changed while the app runs.
import type { Scenario } from '../../kit/example.ts'
import type { World } from '../world.ts'
import { Chat } from './chat.ts'

const changed: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const ada = chat.person('ada')
  await chat.write(ada, 'Hello')
  await chat.idle()
  chat.checkWait(chat.sent[0]?.at, 60)
  stage.tell('tenant', 'shortens the wait to 10 s')
  const response = await chat.set({ wait_time_before_replying_ms: chat.ms(10) })
  const { longest_wait_ms } = (await response.json()) as { longest_wait_ms: number }
  chat.check('the other settings stay', longest_wait_ms === chat.ms(600))
  await chat.write(ada, 'Hello again')
  await chat.idle()
  chat.checkWait(chat.sent[1]?.at, 10)

  const refusal = async (change: unknown): Promise<string> =>
    chat.set(change as object).then(
      () => 'accepted',
      (error: Error) => error.message,
    )
  for (const wait of [99, 120_001, '60 s']) {
    const says = await refusal({ wait_time_before_replying_ms: wait })
    chat.check(says, says.includes('wait_time_before_replying_ms must be a whole number from 100 to 120000'))
  }
  stage.tell('tenant', 'changes five settings of a new line at the same time, one by one')
  const line = `${chat.line}9`
  const own = {
    prompt: 'Hi',
    fallback_text: 'Bye',
    flow_id: 'sales',
    delay_variance_percent: 7,
    longest_wait_ms: 130_000,
  }
  await Promise.all(Object.entries(own).map(([name, value]) => chat.set({ [name]: value }, line)))
  const kept = (await (await chat.set({}, line)).json()) as Readonly<Record<string, unknown>>
  const lost = Object.entries(own).flatMap(([name, value]) => (kept[name] === value ? [] : [name]))
  chat.check(`no change is lost: ${lost.join(', ') || 'none'}`, lost.length === 0)

  const unknown = await refusal({ wait: 1_000 })
  chat.check(unknown, unknown.includes('There is no setting wait.'))
  const { status } = await stage.send(`/settings/${chat.line}`, { method: 'PATCH', body: '{}' })
  chat.check(`without a key, it gets ${status}`, status === 401)
}

/** Two lines, one flow: one tenant resets the wait with each message, the other does not. */
const reset: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const other = await Chat.open(stage, { message_reset_enabled: false })
  const [ada, ben] = [chat.person('ada'), other.person('benjamin')]
  stage.world.model.takes = chat.ms(20)
  const began = stage.clock.monotonic()
  for (const [n, pause] of [40, 30, 60].entries()) {
    await chat.write(ada, `a${n}`)
    await other.write(ben, `b${n}`)
    await chat.pass(pause)
    other.skip(pause)
  }
  await chat.idle()
  const of = (name: string): readonly string[] => chat.answered.filter((text) => text.startsWith(name))
  chat.checkTexts('with reset, one answer to all', of('a'), ['a0\n[+40s] a1\n[+70s] a2'])
  chat.checkTexts('without, the wait counts from the first, and nothing cancels the answer', of('b'), [
    'b0\n[+40s] b1',
    'b2',
  ])
  const asked = chat.drafts.filter(({ text }) => text.startsWith('b')).map((draft) => Math.round(draft.asked - began))
  const isDue = stage.isVirtual ? asked.join() === '60000,130000' : (asked[0] ?? 0) >= chat.ms(60) - 20
  chat.check(`without reset, answers were begun after ${asked.join(' and ')} ms`, isDue)
  chat.check(
    'no answer of the second line was aborted',
    chat.drafts.every(({ state }) => state === 'made'),
  )
}

const naturalDelays: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage, { natural_delays_enabled: true, delay_variance_percent: 20 })
  const { world } = stage
  world.model.reply = () => 'x'.repeat(100)
  const [ada, ben] = [chat.person('ada'), chat.person('benjamin')]
  await chat.write(ada, 'Hello')
  await chat.idle()
  const [draft] = chat.drafts
  const typed = (chat.sent[0]?.at ?? 0) - (draft?.asked ?? 0) - world.model.takes
  const isNatural = typed >= 2_400 - 20 && typed <= (stage.isVirtual ? 3_600 : 13_600)
  chat.check(`a reply of 100 characters was typed for ${Math.round(typed)} ms: 3 s, 20 % more or less`, isNatural)

  await chat.write(ben, 'Hello')
  await stage.until('the reply is being typed', () => chat.drafts[1]?.state === 'made', 200_000)
  await chat.write(ben, 'wait', { second: 70 })
  await chat.idle()
  chat.checkTexts('a message meanwhile cancels it', chat.answered, ['Hello', 'Hello', 'Hello\n[+70s] wait'])
  chat.check('Ben got one answer', chat.sent.filter(({ to }) => to === ben.phone).length === 1)
}

/** Two lines of one Twilio account are one conversation flow. */
const flowId: Scenario<World> = async (stage) => {
  const [shop, service] = [await Chat.open(stage), await Chat.open(stage)]
  const plain = { typing_indicator_enabled: false, natural_delays_enabled: false }
  const settings = { ...plain, wait_time_before_replying_ms: shop.ms(60) }
  await shop.set({ ...settings, flow_id: `care${shop.line}` }, `+${shop.line}`)
  await service.set({ ...settings, flow_id: `care${shop.line}` }, `+${service.line}`)
  const From = `whatsapp:+5511${shop.line}`
  await shop.twilio({ From, Body: 'I wrote to the shop', MessageSid: `SM${shop.line}` })
  await shop.pass(5)
  await service.twilio({ From, Body: 'and to the service', MessageSid: `SM${service.line}` })
  await shop.idle()
  const seconds = stage.isVirtual ? 5 : 0
  shop.checkTexts('lines with the same flow_id share a conversation', shop.answered, [
    `I wrote to the shop\n[+${seconds}s] and to the service`,
  ])
  shop.check('the answer came from the line of the last message', shop.sent.length === 0 && service.sent.length === 1)

  const chat = await Chat.open(stage)
  const ada = chat.person('ada')
  await chat.write(ada, 'to the old flow')
  await chat.pass(1)
  await chat.set({ flow_id: 'new' })
  await chat.write(ada, 'to the new flow')
  await chat.idle()
  chat.checkTexts('a new flow_id begins a new conversation', chat.answered.toSorted(), [
    'to the new flow',
    'to the old flow',
  ])
}

const TYPING_WAIT = 21_000

const typing: Scenario<World> = async (stage) => {
  const { typing: shown } = stage.world.outbox
  const before = shown.length
  const quiet = await Chat.open(stage)
  // The indicator is for 20 s in real time as well.
  const chat = await Chat.open(stage, {
    typing_indicator_enabled: true,
    wait_time_before_replying_ms: TYPING_WAIT,
    longest_wait_ms: TYPING_WAIT,
  })
  const ada = chat.person('ada')
  const message = chat.message(ada, 'Hello')
  await quiet.write(quiet.person('benjamin'), 'No indicator here')
  await chat.set(
    {
      natural_delays_enabled: false,
      wait_time_before_replying_ms: TYPING_WAIT,
      longest_wait_ms: TYPING_WAIT,
    },
    `+${chat.line}`,
  )
  await chat.post([message])
  const began = chat.written
  const sid = `SM${chat.line}`
  await chat.twilio({ From: 'whatsapp:+551177', Body: 'Oi', MessageSid: sid })
  const alsoBegan = chat.written
  await chat.idle()
  if (stage.isVirtual) await stage.idle({ flows: ['typing'] })
  for (const [who, wanted, from] of [
    ['Meta', message.id, began],
    ['Twilio', sid, alsoBegan],
  ] as const) {
    const times = shown.slice(before).flatMap(({ at, id }) => (id === wanted ? [Math.round(at - from)] : []))
    const isRight = stage.isVirtual ? times.join() === '0,20000' : times.length === 2
    chat.check(`${who} showed the indicator after ${times.join(', ')} ms, and no more after the answer`, isRight)
  }
  chat.check('no indicator was shown for anything else', shown.length === before + 4)
  chat.check('two answers were sent', chat.sent.length === 2)
}

export const SETTINGS: Readonly<Record<string, Scenario<World>>> = {
  'Settings change at run time': changed,
  'message_reset_enabled, on and off in one flow': reset,
  'flow_id: two lines of one account, and a change': flowId,
  natural_delays_enabled: naturalDelays,
  typing_indicator_enabled: typing,
}
