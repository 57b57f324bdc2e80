// What subscribers can do: the API of the design, filters, the beginning, and the hard case.
import { createHmac } from 'node:crypto'
import { withSession } from './sql.ts'
import { SECRET } from '../stand-in/subscriber.ts'
import { alone, call, equal, newUrl, routed, SUBSCRIBERS, Subscriber, subscribe } from './world.ts'

export const api = alone(async (stage) => {
  const { repositories } = stage.world
  const url = newUrl(stage, 'good')
  // Without `from`, the history of earlier scenarios would come first.
  const registration = {
    name: 'My Service',
    url,
    secret: SECRET,
    eventFilter: ['NEW_VERSION', 'VERSION_UPDATED'],
    from: 'now',
  }
  const created = await call<{ id: string }>(stage, 'POST', SUBSCRIBERS, { body: registration })
  stage.check('POST registers a subscriber', created.status === 200 && typeof created.json.id === 'string')
  const subscriber = new Subscriber(stage, 'good', created.json.id, url)
  const list = await call<{ items: readonly { id: string; name: string }[] }>(stage, 'GET', SUBSCRIBERS)
  const isListed = list.json.items.some(({ id, name }) => id === subscriber.id && name === 'My Service')
  stage.check('GET lists it, without its secret', isListed && !list.text.includes(SECRET))
  const [version = ''] = repositories.releaseNeoForge()
  await subscriber.has(1)

  const [post] = subscriber.posts
  const signature = createHmac('sha256', SECRET)
    .update(post?.text ?? '')
    .digest('hex')
  equal(stage, 'its request has the headers of the design', headersOf(post?.headers), {
    'content-type': 'application/json',
    'user-agent': 'NeoForge-Meta-API/1.0',
    'x-webhook-signature': signature,
  })
  const [event] = subscriber.events
  equal(stage, 'and its payload', Object.keys(JSON.parse(post?.text ?? '') as object), ['events'])
  equal(stage, 'whose events have its fields', Object.keys(event ?? {}).toSorted(), FIELDS)
  const { eventType, component, componentVersion, createdAt = '' } = event ?? {}
  equal(stage, 'with these values', [eventType, component, componentVersion], ['NEW_VERSION', 'NEOFORGE', version])
  stage.check('and a time', new Date(createdAt).toISOString() === createdAt)

  const [delivery] = await subscriber.deliveries(50)
  const { status, events, firstEvent, lastEvent, attemptCount, maxAttempts } = delivery ?? {}
  equal(
    stage,
    'GET …/deliveries shows the batch, with its first and last event',
    { status, events, firstEvent, lastEvent, attemptCount, maxAttempts },
    { status: 'SUCCESS', events: 1, firstEvent: event?.id, lastEvent: event?.id, attemptCount: 1, maxAttempts: 5 },
  )
  const { lastSuccessfulDeliveryAt } = await subscriber.look()
  stage.check('the subscriber shows its last success', lastSuccessfulDeliveryAt !== undefined)

  const moved = await subscriber.change({ name: 'Renamed', active: false, eventFilter: ['NEW_VERSION'] })
  stage.check('PATCH changes the given fields', moved.status === 200 && !moved.json.active)
  const [meanwhile = ''] = repositories.releaseNeoForge()
  await stage.sleep(2 * stage.world.times.batch + stage.world.times.discovery)
  stage.check('while it is not active, it gets nothing', subscriber.events.length === 1)
  await subscriber.change({ active: true })
  await subscriber.has(2)
  equal(stage, 'and nothing is lost', subscriber.versions, [version, meanwhile])
  equal(stage, 'with a limit, the history is shorter', (await subscriber.deliveries(1)).length, 1)

  const { status: removed } = await subscriber.remove()
  const { status: gone } = await call(stage, 'GET', `${SUBSCRIBERS}/${subscriber.id}`)
  stage.check(`DELETE removes it: then it gets ${gone}`, removed === 200 && gone === 404)
})

const FIELDS = ['component', 'componentVersion', 'createdAt', 'data', 'eventType', 'id']

function headersOf(headers: Headers | undefined): Readonly<Record<string, string | null | undefined>> {
  const names = ['content-type', 'user-agent', 'x-webhook-signature']
  return Object.fromEntries(names.map((name) => [name, headers?.get(name)]))
}

export const trigger = alone(async (stage) => {
  const { repositories, times } = stage.world
  const subscriber = await subscribe(stage, 'good')
  const before = routed(stage)
  const began = stage.clock.monotonic()
  repositories.releaseNeoForge()
  await stage.until('it is discovered', () => routed(stage) > before)
  const { status } = await call(stage, 'POST', '/v1/webhooks/trigger')
  await subscriber.has(1)
  const after = Math.round((subscriber.posts[0]?.at ?? 0) - began)
  // In real time the window is so short that it may just have ended.
  const isEarly = !stage.isVirtual || after < times.batch
  stage.check(
    `POST /v1/webhooks/trigger gets ${status} and ends the window after ${after} ms`,
    status === 202 && isEarly,
  )
})

export const filters = alone(async (stage) => {
  const { repositories } = stage.world
  const all = await subscribe(stage, 'good')
  const onlyNew = await subscribe(stage, 'good', { eventFilter: ['NEW_VERSION'] })
  const onlyMinecraft = await subscribe(stage, 'good', { where: { 'data.component': 'MINECRAFT' } })
  const neither = await subscribe(stage, 'good', {
    eventFilter: ['VERSION_UPDATED'],
    where: { 'data.component': { in: ['NEOFORGE'] } },
  })
  const [neoforge = ''] = repositories.releaseNeoForge()
  await all.has(1)
  const minecraft = repositories.releaseMinecraft()
  await all.has(2)
  repositories.releaseMinecraft(minecraft, 'second')
  await all.has(3)
  await onlyMinecraft.has(2)
  const [first, second, third] = [`NEW_VERSION ${neoforge}`, `NEW_VERSION ${minecraft}`, `VERSION_UPDATED ${minecraft}`]
  equal(stage, 'without filters a subscriber gets all news', all.news, [first, second, third])
  equal(stage, 'a filter by type', onlyNew.news, [first, second])
  equal(stage, 'a filter by component', onlyMinecraft.news, [second, third])
  equal(stage, 'both must match', neither.news, [])
})

export const hardCase = alone(async (stage) => {
  const { repositories, times } = stage.world
  const subscriber = await subscribe(stage, 'good')
  const [slow = '', fast = '', undone = ''] = repositories.releaseNeoForge(6)
  await subscriber.has(6)
  await withSession(stage, async (first) => {
    stage.tell('psql 1', `begins a transaction, deprecates ${slow}, and does not commit yet`)
    await first.query('begin')
    await first.deprecate(slow, 'began first')
    await withSession(stage, async (second) => {
      stage.tell('psql 2', `deprecates ${fast} and commits`)
      await second.deprecate(fast, 'committed first')
      await second.query('begin')
      await second.deprecate(undone, 'rolled back')
      await second.query('rollback')
    })
    await subscriber.has(7)
    equal(stage, 'what was committed is delivered', subscriber.versions.slice(6), [fast])
    // The design would look back for five minutes. This transaction is open for longer.
    await stage.sleep(stage.isVirtual ? 330_000 : 3 * times.batch)
    stage.check('what is not committed is not', subscriber.events.length === 7)
    await first.query('commit')
    stage.tell('psql 1', 'commits')
  })
  await subscriber.has(8)
  const [early, late] = subscriber.events.slice(6)
  equal(
    stage,
    'what began first and was committed last arrives as well',
    [early?.componentVersion, late?.componentVersion],
    [fast, slow],
  )
  stage.check('although it is older', (late?.createdAt ?? '') <= (early?.createdAt ?? ''))
  await stage.sleep(2 * times.batch)
  stage.check('each came in one batch only', subscriber.comesOnce && subscriber.events.length === 8)
})
