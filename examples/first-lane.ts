// Three edits of one page, debounced into one run. Time is the test's own, so that ten seconds take none.
import { identity, laneId, newEventId, openStore, textOf, window, type NewEvent } from 'sluice'
import { VirtualClock } from 'sluice/testing'

const clock = new VirtualClock()
const store = await openStore('memory:', { clock })
const quiet = window({ quiet: '10s', max: '60s' })

function edit(text: string): NewEvent {
  const id = newEventId(clock.now())
  return {
    id,
    source: 'wiki',
    type: 'page.edited',
    time: clock.now(),
    tenant: '',
    subject: '',
    attributes: '',
    body: new TextEncoder().encode(text),
    request: new Uint8Array(),
    identity: identity('wiki', '', id),
    dedupeFor: 7 * 86_400_000,
    places: [
      {
        ...quiet.numbers(0),
        lane: laneId('rank', 'ada'),
        flow: 'rank',
        key: 'ada',
        group: '',
        cancel: false,
      },
    ],
    marks: [],
  }
}

for (const text of ['first', 'second', 'third']) {
  await store.append({ routes: 1, events: [edit(text)] })
  clock.advance(4_000)
}
clock.advance(6_000)

const claim = {
  flow: 'rank',
  slots: 1,
  failing: 1,
  suspects: 1,
  perGroup: undefined,
  block: false,
  maxEvents: 1_000,
  maxBytes: 4_194_304,
  lease: 30_000,
  take: 'all',
} as const
const { claimed } = await store.turn({
  process: 'example',
  request: 1,
  routes: 1,
  settle: [],
  claim: [claim],
  budget: 4_194_304,
})
for (const { key, events } of claimed) {
  console.log(key, events.map((event) => textOf(event.body ?? new Uint8Array())).join(', '))
}
await store.close()
