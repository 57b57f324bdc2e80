// The six tests of the design, under their names, and its time line.
import type { Scenario } from '../../kit/example.ts'
import type { World } from '../world.ts'
import { Chat } from './chat.ts'

/** Message A at 0 s, B at 10 s: one answer to both at 70 s. */
const timeline: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const ada = chat.person('ada')
  const began = stage.clock.monotonic()
  await chat.write(ada, 'Message A')
  await chat.pass(10)
  await chat.write(ada, 'Message B')
  await chat.pass(59)
  chat.check('59 s after message B, nobody was answered', chat.drafts.length === 0)
  await chat.idle()
  chat.checkTexts('the model got', chat.answered, ['Message A\n[+10s] Message B'])
  chat.check('one answer was sent', chat.sent.length === 1)
  chat.checkWait(chat.sent[0]?.at, 60)
  const asked = (chat.drafts[0]?.asked ?? 0) - began
  const isDue = stage.isVirtual ? asked === 70_000 : asked >= chat.ms(70) - 20
  chat.check(`the model was asked after ${Math.round(asked)} ms; 70 s are ${chat.ms(70)} ms`, isDue)
}

const basicDebouncingResetsTimer: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const ada = chat.person('ada')
  for (const text of ['one', 'two', 'three']) {
    await chat.write(ada, text)
    await chat.pass(40)
  }
  chat.check('three messages 40 s apart: nobody was answered in between', chat.drafts.length === 0)
  await chat.idle()
  chat.checkTexts('the model got', chat.answered, ['one\n[+40s] two\n[+80s] three'])
  chat.checkWait(chat.sent[0]?.at, 60)
}

const singleMessageProcessing: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  await chat.write(chat.person('ben'), 'What are your opening hours?')
  await chat.idle()
  chat.checkTexts('the model got the text as it was written', chat.answered, ['What are your opening hours?'])
  chat.check('the model was told that it is not aggregated', chat.drafts[0]?.isAggregated === false)
  chat.checkTexts(
    'Ben got',
    chat.sent.map(({ text }) => text),
    ['You wrote: What are your opening hours?'],
  )
  chat.checkWait(chat.sent[0]?.at, 60)
}

const webhookRetryIdempotency: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const ada = chat.person('ada')
  const first = chat.message(ada, 'Hello')
  await chat.post([first])
  await chat.pass(5)
  const { written } = chat
  stage.tell('meta', 'sends the same message again')
  await chat.post([first])
  chat.written = written
  await chat.pass(2)
  await chat.write(ada, 'Hello')
  await chat.idle()
  chat.checkTexts('a retry is no message; the same words written again are one', chat.answered, ['Hello\n[+7s] Hello'])
  await chat.post([first])
  await chat.pass(61)
  await chat.idle()
  chat.check('a retry after the answer is answered by nobody', chat.sent.length === 1)
}

const rapidSuccessionScenario: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const [ada, ben] = [chat.person('ada'), chat.person('benjamin')]
  for (let n = 0; n < 10; n++) {
    await chat.write(ada, `a${n}`)
    if (n % 2 === 0) await chat.write(ben, `b${n}`)
    await chat.pass(1)
  }
  await chat.idle()
  const of = (name: string): string =>
    chat.answered
      .find((text) => text.startsWith(name))
      ?.replaceAll(/\[\+\d+s\] /g, '')
      .replaceAll('\n', ' ') ?? ''
  chat.checkTexts(
    'one answer for each, all texts in order',
    [of('a'), of('b')],
    ['a0 a1 a2 a3 a4 a5 a6 a7 a8 a9', 'b0 b2 b4 b6 b8'],
  )
  chat.check('two answers were sent', chat.sent.length === 2)
}

const messageTimestampsInAggregation: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const [ada, ben] = [chat.person('ada'), chat.person('benjamin')]
  for (const text of ['Hello', 'I mean', 'Hi there']) {
    await chat.write(ada, text)
    await chat.pass(5)
  }
  // The clock of a phone or of a provider may be behind. The order is that of arrival, and a label never decreases.
  await chat.post([
    chat.message(ben, 'x', { second: 100 }),
    chat.message(ben, 'y', { second: 112 }),
    chat.message(ben, 'z', { second: 103 }),
  ])
  await chat.idle()
  chat.checkTexts('the model got', chat.answered, ['Hello\n[+5s] I mean\n[+10s] Hi there', 'x\n[+12s] y\n[+12s] z'])
  chat.check(
    'the model was told that both are aggregated',
    chat.drafts.every(({ isAggregated }) => isAggregated),
  )
}

const cleanupAfterProcessing: Scenario<World> = async (stage) => {
  const chat = await Chat.open(stage)
  const ada = chat.person('ada')
  await chat.write(ada, 'First')
  await chat.pass(1)
  await chat.write(ada, 'second')
  await chat.idle()
  const { items } = await stage.app.admin.lanes.list({ flow: 'answer' })
  chat.check('nothing of the chat waits any more', items.length === 0)
  await chat.write(ada, 'Another day')
  await chat.idle()
  chat.checkTexts('the next message begins anew', chat.answered, ['First\n[+1s] second', 'Another day'])
  chat.check('the model was told that the last one is not aggregated', chat.drafts.at(-1)?.isAggregated === false)
}

export const SEED: Readonly<Record<string, Scenario<World>>> = {
  'The time line of the design': timeline,
  test_basic_debouncing_resets_timer: basicDebouncingResetsTimer,
  test_single_message_processing: singleMessageProcessing,
  test_webhook_retry_idempotency: webhookRetryIdempotency,
  test_rapid_succession_scenario: rapidSuccessionScenario,
  test_message_timestamps_in_aggregation: messageTimestampsInAggregation,
  test_cleanup_after_processing: cleanupAfterProcessing,
}
