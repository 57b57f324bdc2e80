// The scenarios of the design, each with what must have come of it.
import type { EventName } from 'sluice'
import { globalFigures } from '../figures.ts'
import type { StoredPage, User } from '../stand-in/page.ts'
import { closest, mostInASecond } from '../stand-in/rate.ts'
import { inversions, jain, meanResponses, overlaps } from './judge.ts'
import type { Check } from '../../kit/stage.ts'
import { nameOf, type NextUpStage as Stage } from './stage.ts'

export interface Scenario {
  readonly title: string
  readonly play: (stage: Stage) => Promise<readonly Check[]>
}

const person = (name: string): User => ({ id: `user-${name}`, name })
const [ada, ben, cleo, dan] = [person('ada'), person('ben'), person('cleo'), person('dan')]

/** Tasks that stand as they should, so that a run has only to write what an edit changes. */
async function rankedTasks(stage: Stage, user: User, n: number): Promise<StoredPage> {
  const pages = Array.from({ length: n }, (_, at) =>
    stage.notion.add({ name: `${user.name}'s task ${at + 1}`, assignees: [user], importance: n - at, estimate: 1 }),
  )
  const first = firstOf(pages)
  await stage.press(first)
  await stage.still()
  stage.tell(user.name, `has ${n} tasks, all ranked`)
  return first
}

function firstOf(pages: readonly StoredPage[]): StoredPage {
  for (const page of pages) return page
  throw new Error('There is no page.')
}

function served(stage: Stage, from: number): readonly string[] {
  return stage.turns.slice(from).map(({ user }) => nameOf(user))
}

/** Counts the events with these names from now on. */
function counting(stage: Stage, ...names: readonly EventName[]): () => number {
  let told = 0
  for (const name of names) stage.app.on(name, () => told++)
  return () => told
}

export const SCENARIOS: readonly Scenario[] = [
  {
    title: 'A burst of one user is one run',
    async play(stage) {
      const page = await rankedTasks(stage, ada, 3)
      const from = stage.turns.length
      for (const importance of [0, 9, 0, 9, 0]) {
        await stage.edit(page, { importance }, ada)
        await stage.sleep(300)
      }
      await stage.still()
      const runs = served(stage, from).length
      return [
        {
          says: `5 edits, ${runs} run`,
          held: runs === 1,
        },
        { says: 'her tasks stand as the last edit asks for', held: stage.unranked().length === 0 },
      ]
    },
  },
  {
    title: 'U1, U2, U1: first ready, first served',
    async play(stage) {
      const adas = await rankedTasks(stage, ada, 2)
      const bens = await rankedTasks(stage, ben, 2)
      const from = stage.turns.length
      await stage.press(adas)
      stage.tell('ada', 'presses the button')
      await stage.sleep(600)
      await stage.press(bens)
      stage.tell('ben', 'presses the button')
      await stage.sleep(600)
      await stage.press(adas)
      stage.tell('ada', 'presses the button again')
      await stage.still()
      const order = served(stage, from).join(', ')
      return [{ says: `served: ${order}`, held: order === 'ben, ada' }]
    },
  },
  {
    title: 'An edit during a run: once more, at the tail',
    async play(stage) {
      const pages = Array.from({ length: 12 }, (_, n) =>
        stage.notion.add({ name: `cleo's task ${n}`, assignees: [cleo], importance: n }),
      )
      const bens = await rankedTasks(stage, ben, 2)
      const from = stage.turns.length
      await stage.press(firstOf(pages))
      stage.tell('cleo', 'has 12 tasks that were never ranked, and presses the button')
      await stage.sleep(500)
      await stage.press(bens)
      stage.tell('ben', 'presses the button')
      await stage.sleep(2_500)
      await stage.press(firstOf(pages))
      stage.tell('cleo', 'presses it again, while she is being ranked')
      await stage.still()
      const order = served(stage, from).join(', ')
      return [{ says: `served: ${order}`, held: order === 'cleo, ben, cleo' }]
    },
  },
  {
    title: 'Events about nobody, and about what we wrote ourselves',
    async play(stage) {
      const page = await rankedTasks(stage, ada, 3)
      const shared = stage.notion.add({ name: 'a task of two', assignees: [ada, dan], importance: 1 })
      const before = await globalFigures(stage.app)
      const from = stage.turns.length
      stage.world.tellsIntegration = true
      stage.tell('notion', 'tells the integration of every change, by webhooks that have only ids')
      await stage.press(stage.notion.add({ name: 'a task of nobody' }))
      stage.tell('nobody', 'is assigned to a task')
      stage.notion.edit(shared.id, { importance: 50 }, dan)
      stage.tell('dan', 'edits a task that he shares with ada')
      stage.notion.edit(page.id, { importance: 60 }, ada)
      stage.tell('ada', 'edits one of hers')
      await stage.still()
      stage.world.tellsIntegration = false
      const after = await globalFigures(stage.app)
      const grown = (name: string): number => (after.get(name) ?? 0) - (before.get(name) ?? 0)
      const [nobodys, own] = [grown('skipped: nobody assigned'), grown('skipped: our own writes, and pages elsewhere')]
      const users = served(stage, from).toSorted().join(', ')
      return [
        { says: `${nobodys} skipped for want of an assignee`, held: nobodys === 1 },
        { says: `${own} webhooks of our own writes skipped: they wake nobody`, held: own > 0 },
        { says: `served: ${users}`, held: users === 'ada, dan' },
      ]
    },
  },
  {
    title: 'Faults: what passes is tried again, what stays is a dead letter and holds up nobody',
    async play(stage) {
      const adas = await rankedTasks(stage, ada, 2)
      const bens = await rankedTasks(stage, ben, 2)
      const [retried, dead] = [counting(stage, 'run.retry'), counting(stage, 'run.dead')]
      stage.notion.refuse(500, { times: 2 })
      stage.tell('notion', 'will fail twice')
      await stage.press(adas)
      await stage.still()
      const afterFaults = [retried(), dead()] as const
      stage.notion.refuse(400)
      stage.tell('notion', 'will not like the next query at all')
      await stage.press(adas)
      await stage.press(bens)
      await stage.still()
      const { items } = await stage.app.admin.deadLetters.list({ flow: 'rank-user' })
      stage.tell('sluice', `dead letter: ${items[0]?.reason ?? 'none'}`)
      await stage.app.admin.deadLetters.retry({ flow: 'rank-user' })
      stage.tell('operator', 'retries it')
      await stage.still()
      return [
        {
          says: `${afterFaults[0]} retries, ${afterFaults[1]} dead letters`,
          held: afterFaults[0] === 2 && afterFaults[1] === 0,
        },
        { says: `then ${dead()} dead letter, and the next user was served`, held: dead() === 1 },
        { says: 'after the retry by hand both are ranked', held: stage.unranked().length === 0 },
      ]
    },
  },
  {
    title: 'Everybody at once: ten users edit in bursts for ten seconds',
    async play(stage) {
      const users = Array.from({ length: 10 }, (_, n) => person(`u${n}`))
      const pages = users.map((user) =>
        [0, 1].map((n) => stage.notion.add({ name: `${user.name}.${n}`, assignees: [user], importance: n })),
      )
      const from = stage.turns.length
      await Promise.all(
        pages.map(async ([page], n) => {
          for (let burst = 0; burst < 3; burst++) {
            await stage.sleep(300 * n)
            const [user] = [users[n]]
            if (page !== undefined && user !== undefined)
              await stage.edit(page, { importance: burst * 2 + (n % 2) }, user)
          }
        }),
      )
      await stage.still(90_000)
      const turns = stage.turns.slice(from)
      const fair = jain(meanResponses(turns))
      return [
        {
          says: `${turns.length} turns, ${inversions(turns)} out of order, ${overlaps(turns)} at once; Jain ${fair.toFixed(2)}`,
          held: inversions(turns) === 0 && overlaps(turns) === 0,
        },
        { says: 'all of them are ranked', held: stage.unranked().length === 0 },
      ]
    },
  },
  {
    title: 'Notion says 429: everybody waits as long as it asks, then goes on',
    async play(stage) {
      const adas = await rankedTasks(stage, ada, 2)
      const bens = await rankedTasks(stage, ben, 2)
      const paused = counting(stage, 'limit.paused')
      stage.notion.refuse(429, { retryAfter: 3 })
      stage.notion.refuse(529, { retryAfter: 2, path: '/v1/pages' })
      stage.tell('notion', 'will refuse the next call for 3 s, and the next write for 2 s')
      await stage.edit(adas, { importance: 0 }, ada)
      await stage.edit(bens, { importance: 0 }, ben)
      await stage.still()
      return [
        {
          says: `${paused()} pauses, ${stage.notion.rate.disobeyed} calls before their end`,
          held: paused() >= 2 && stage.notion.rate.disobeyed === 0,
        },
        { says: 'both are ranked', held: stage.unranked().length === 0 },
      ]
    },
  },
  {
    title: 'A restart: what waited before it runs after it',
    async play(stage) {
      const adas = await rankedTasks(stage, ada, 2)
      await stage.edit(adas, { importance: 0 }, ada)
      let wrong = 0
      stage.tell('operator', 'stops the app, with an edit in its window')
      await stage.restart(() => (wrong = stage.unranked().length))
      stage.tell('operator', 'has started it again')
      await stage.still()
      return [
        {
          says: `${wrong} users not ranked before, ${stage.unranked().length} after`,
          held: wrong === 1 && stage.unranked().length === 0,
        },
      ]
    },
  },
]

const RATE = 3
const SECOND = 1_000

/** Counts over the whole time, for all scenarios. */
export function overall(stage: Stage): readonly Check[] {
  const times = stage.notion.calls.map(({ at }) => at)
  const apart = Math.round(closest(times, RATE))
  const most = mostInASecond(times)
  return [
    {
      says: `${times.length} calls, ${most} in any second at most: ${RATE + 1} take at least ${apart} ms`,
      // The stand-in lives in the same process: while that stood still, it saw nothing come.
      held: apart + stage.world.lag.most >= SECOND,
    },
    { says: `${overlaps(stage.turns)} users ranked twice at once`, held: overlaps(stage.turns) === 0 },
  ]
}
