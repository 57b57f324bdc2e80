// The past of a subscriber: from the beginning, from now, from a time, and again on request.
import { alone, call, equal, subscribe, SUBSCRIBERS, type Subscriber } from './world.ts'

export const beginning = alone(async (stage) => {
  const { repositories, times } = stage.world
  const all = await subscribe(stage, 'good')
  const first = repositories.releaseNeoForge(3)
  await all.has(3)
  // A time is that of the arrival, so it lies clearly between two releases.
  await stage.sleep(1_000)
  const time = new Date(stage.clock.now()).toISOString()
  await stage.sleep(1_000)
  const second = repositories.releaseNeoForge(2)
  await all.has(5)

  stage.tell('api', 'registers three subscribers, and two more versions are released')
  const fromBeginning = await subscribe(stage, 'good', { from: 'beginning' })
  const fromTime = await subscribe(stage, 'good', { from: time })
  const fromNow = await subscribe(stage, 'good', { from: 'now' })
  const third = repositories.releaseNeoForge(2)
  await all.has(7)
  const isWhole = (): boolean => third.every((version) => fromBeginning.versions.includes(version))
  await stage.until('the past has come', isWhole, 200_000)
  await fromTime.has(4, 200_000)
  await fromNow.has(2)
  await stage.sleep(2 * times.batch)
  // In the play, earlier scenarios have made news as well.
  const shown = fromBeginning.versions.slice(-7)
  equal(stage, 'from the beginning, which is the default: the past, then the live news', shown, [
    ...first,
    ...second,
    ...third,
  ])
  equal(stage, 'from a time', fromTime.versions, [...second, ...third])
  equal(stage, 'from now', fromNow.versions, third)
  for (const one of [fromBeginning, fromTime, fromNow, all])
    stage.check(`each of ${one.events.length} events came in one batch only`, one.comesOnce)
})

export const defaultStart = alone(async (stage) => {
  const { repositories } = stage.world
  const all = await subscribe(stage, 'good')
  const versions = repositories.releaseNeoForge(2)
  await all.has(2)
  // As in the design: a registration that says nothing about its start.
  const later = await subscribe(stage, 'good', { from: undefined })
  await stage.until('the past has come', () => versions.every((version) => later.versions.includes(version)), 200_000)
  equal(stage, 'a new subscriber starts at the beginning', later.versions.slice(-2), versions)
})

export const replay = alone(async (stage) => {
  const { repositories } = stage.world
  const subscriber = await subscribe(stage, 'good')
  const other = await subscribe(stage, 'good')
  const began = new Date(stage.clock.now()).toISOString()
  await stage.sleep(1_000)
  const versions = repositories.releaseNeoForge(3)
  await subscriber.has(3)
  await other.has(3)
  const { token } = (await call<{ token: string }>(stage, 'POST', `${SUBSCRIBERS}/${subscriber.id}/token`)).json
  stage.tell('good', 'has lost its data, and asks for it again with its own token')
  const ask = { body: { from: began }, key: token }
  const { status } = await call(stage, 'POST', `${SUBSCRIBERS}/${subscriber.id}/replay`, ask)
  await stage.until('the events came again', () => again(subscriber).length === 3, 200_000)
  stage.check(`POST …/replay gets ${status}, and the events come again`, status === 200)
  equal(stage, 'in order, marked by the header webhook-replay', again(subscriber), versions)
  const [first, second] = [subscriber.posts[0]?.batch, subscriber.posts.at(-1)?.batch]
  stage.check('under another webhook-id', first !== second)
  equal(stage, 'to nobody else', again(other), [])
  const refused = await call(stage, 'POST', `${SUBSCRIBERS}/${other.id}/replay`, ask)
  stage.check(`the token is for one subscriber only: another one gets ${refused.status}`, refused.status === 403)
})

function again({ posts }: Subscriber): readonly string[] {
  const replayed = posts.filter(({ headers }) => headers.has('webhook-replay'))
  return replayed.flatMap(({ events }) => events.map(({ componentVersion }) => componentVersion))
}
