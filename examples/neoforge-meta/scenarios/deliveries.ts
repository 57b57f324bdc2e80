// How batches are delivered: windows, sizes, attempts, timeouts, and the health of all of it.
import { withSession } from './sql.ts'
import { alone, call, equal, routed, subscribe } from './world.ts'

const MANY = 2_500

export const batches = alone(async (stage) => {
  const { repositories, times } = stage.world
  const subscriber = await subscribe(stage, 'good')
  stage.tell('maven', `lists ${MANY} versions`)
  const versions = repositories.releaseNeoForge(MANY)
  await subscriber.has(MANY)
  const sizes = subscriber.posts.map(({ events }) => events.length)
  // In real time, the window may end while a slow machine still routes them.
  const isFull = stage.isVirtual ? sizes.join() === '1000,1000,500' : sizes.every((size) => size <= 1_000)
  stage.check(`a batch has at most 1,000 events: ${sizes.join(', ')}`, isFull)
  stage.check('all came in order, each once', subscriber.versions.join() === versions.join())
  stage.check(
    'each batch is signed',
    subscriber.posts.every(({ isSigned }) => isSigned),
  )

  const few = repositories.releaseNeoForge(3)
  const seen = routed(stage)
  await stage.until('they are discovered', () => routed(stage) >= seen + 3)
  const began = stage.clock.monotonic()
  await subscriber.has(MANY + 3)
  const last = subscriber.posts.at(-1)
  const took = (last?.at ?? 0) - began
  const isOnTime = took >= times.batch - 1_000 && took <= (stage.isVirtual ? times.batch : times.batch + 10_000)
  stage.check(`three of one look are one batch, after ${Math.round(took)} ms`, isOnTime && last?.events.length === 3)
  stage.check('and are these three', last?.events.map((event) => event.componentVersion).join() === few.join())
})

export const attempts = alone(async (stage) => {
  const { repositories, dead, times } = stage.world
  const [healthy, flaky, broken] = await Promise.all([
    subscribe(stage, 'good'),
    subscribe(stage, 'flaky'),
    subscribe(stage, 'dead'),
  ])
  const most = times.retry.length + 1
  repositories.releaseNeoForge(2)
  await flaky.has(2)
  const whole = times.retry.reduce((sum, delay) => sum + delay, 0)
  await stage.until(`${most} attempts were made`, () => broken.posts.length === most, 2 * whole + 20_000)
  await healthy.has(2)
  const at = broken.posts.map((post) => post.at)
  const waits = at.slice(1).map((time, n) => Math.round(time - (at[n] ?? 0)))
  const isOnTime = waits.every(
    (wait, n) => wait >= (times.retry[n] ?? 0) && wait <= (times.retry[n] ?? 0) + late(stage),
  )
  stage.check(`the dead one got ${most} attempts, ${waits.map((wait) => wait / 1_000).join(', ')} s apart`, isOnTime)
  stage.check('all with the same batch id', new Set(broken.posts.map(({ batch }) => batch)).size === 1)
  stage.check('the good one got one', healthy.posts.length === 1)
  const repeated = flaky.posts.map(({ batch, attempt }) => `${batch} ${attempt}`)
  const [id = ''] = repeated[0]?.split(' ') ?? []
  equal(stage, 'the flaky one got two, with the same batch id', repeated, [`${id} 1`, `${id} 2`])

  await stage.until('it is a dead letter', async () => (await broken.look()).health.failedBatches === 1)
  const { health } = await broken.look()
  stage.check(
    `its breaker is ${health.breaker}, its health ${health.status}`,
    health.breaker === 'open' && health.status === 'down',
  )
  const [delivery] = await broken.deliveries()
  const { status, attemptCount, maxAttempts, lastError } = delivery ?? {}
  stage.check(
    `its history says ${status}: ${lastError}`,
    status === 'FAILED' && attemptCount === most && maxAttempts === most,
  )

  const { json } = await call<{ items: readonly { id: string; reason: string; key: string }[] }>(
    stage,
    'GET',
    '/v1/dead-letters?flow=versions',
  )
  const deadLetters = json.items.filter(({ key }) => key === broken.id)
  stage.check(`the dead letter can be inspected: ${deadLetters[0]?.reason}`, deadLetters.length === 1)
  stage.tell('dead', 'is repaired')
  dead.behaviour = () => new Response('')
  await call(stage, 'POST', `/v1/dead-letters/${deadLetters[0]?.id}/retry`)
  await stage.until('it is delivered', () => broken.posts.at(-1)?.status === 200)
  await stage.until('the breaker is closed', async () => (await broken.look()).health.breaker === 'closed')
  stage.check('retried by hand, it is delivered, and the breaker closes', broken.posts.length === most + 1)
})

/** A busy machine is late in real time. */
function late({ isVirtual }: { readonly isVirtual: boolean }): number {
  return isVirtual ? 0 : 15_000
}

export const timeout = alone(async (stage) => {
  const { repositories, good, times } = stage.world
  const subscriber = await subscribe(stage, 'good')
  good.behaviour = async ({ attempt }) => {
    if (attempt === 1) await stage.sleep(times.timeout * 2)
    return new Response('')
  }
  repositories.releaseNeoForge()
  await subscriber.has(1)
  const began = subscriber.posts[0]?.at ?? 0
  const failure = async (): Promise<string> => (await subscriber.deliveries())[0]?.lastError ?? ''
  await stage.until('the attempt has failed', async () => (await failure()) !== '', times.timeout * 3)
  const took = stage.clock.monotonic() - began
  // A busy machine looks late.
  const isOnTime = took >= times.timeout && (!stage.isVirtual || took < times.timeout + 1_000)
  stage.check(
    `a subscriber that does not answer is given up after ${times.timeout / 1_000} s: ${await failure()}`,
    isOnTime,
  )
  await stage.until(
    'the second attempt got through',
    () => subscriber.posts.some(({ status, attempt }) => status === 200 && attempt === 2),
    300_000,
  )
  stage.check('and the batch is delivered in the next attempt', subscriber.posts.length === 2)
})

export const health = alone(async (stage) => {
  const { repositories, times } = stage.world
  const look = async (): Promise<string> => {
    const response = await stage.send('/health')
    return `${response.status} ${await response.text()}`
  }
  const up = '200 {"status":"UP","details":{"stuckBatches":0,"failedBatches":0}}'
  const subscriber = await subscribe(stage, 'good')
  equal(stage, 'GET /health needs no key', await look(), up)
  // Five minutes are too long to look on.
  if (!stage.isVirtual) return
  await stage.app.admin.flows.pause('versions', { reason: 'a scenario', by: 'the operator' })
  repositories.releaseNeoForge()
  await stage.sleep(times.discovery + times.batch + 300_000 + 2_000)
  equal(
    stage,
    'a batch that nobody delivers for five minutes',
    await look(),
    '503 {"status":"DOWN","details":{"stuckBatches":1,"failedBatches":0}}',
  )
  await stage.app.admin.flows.resume('versions')
  await subscriber.has(1)
  equal(stage, 'once it is delivered', await look(), up)
})

export const rate = alone(async (stage) => {
  const { repositories, times } = stage.world
  const per = 2 * times.batch
  const subscriber = await subscribe(stage, 'good', { rate: { rate: 1, per: `${per}ms` } })
  for (const n of [1, 2, 3]) {
    repositories.releaseNeoForge()
    await subscriber.has(n, 3 * per + 10_000)
  }
  const at = subscriber.posts.map((post) => post.at)
  const gaps = at.slice(1).map((time, n) => Math.round(time - (at[n] ?? 0)))
  const isSlow = gaps.length === 2 && gaps.every((gap) => gap >= per)
  stage.check(
    `three POSTs, at most one in ${per / 1_000} s, came ${gaps.map((gap) => gap / 1_000).join(' and ')} s apart`,
    isSlow,
  )
})

export const secrets = alone(async (stage) => {
  const [name, secret] = [
    `a-name-that-everybody-may-read-${stage.world.made}`,
    `a-secret-that-nobody-may-read-${stage.world.made}`,
  ]
  await subscribe(stage, 'good', { name, secret, headers: { 'x-team': secret } })
  const tablesWith = (text: string): Promise<readonly string[]> =>
    withSession(stage, async (session) => {
      const { rows } = await session.query(
        "select format('%I.%I', table_schema, table_name) as name from information_schema.tables where table_type = 'BASE TABLE' and table_schema !~ '^pg_|information_schema'",
      )
      const forms = [text, Buffer.from(text).toString('hex'), Buffer.from(text).toString('base64').slice(0, 36)]
      const found: string[] = []
      for (const { name: table } of rows) {
        const isThere = forms.map((form) => `kept::text like '%${form}%'`).join(' or ')
        const hits = await session.query(`select 1 from ${String(table)} as kept where ${isThere} limit 1`)
        if (hits.rows.length > 0) found.push(String(table))
      }
      return found
    })
  stage.check('the name of a subscriber is in the database', (await tablesWith(name)).length > 0)
  equal(stage, 'its secret and its headers are in no table', await tablesWith(secret), [])
})
