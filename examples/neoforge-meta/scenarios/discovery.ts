// How news come about: by discovery, and by SQL, always in one transaction with the row of the version.
import type { Stage } from '../../kit/stage.ts'
import { withSession } from './sql.ts'
import { alone, equal, subscribe, type World } from './world.ts'

export const discovery = alone(async (stage) => {
  const { repositories } = stage.world
  const subscriber = await subscribe(stage, 'good')
  stage.tell('maven', 'lists three versions of NeoForge')
  const [first = '', second = '', third = ''] = repositories.releaseNeoForge(3)
  await subscriber.has(3)
  stage.tell('mojang', 'lists a version of Minecraft')
  const minecraft = repositories.releaseMinecraft()
  await subscriber.has(4)
  const found = [first, second, third, minecraft].map((version) => `NEW_VERSION ${version}`)
  equal(stage, 'each new version is news', subscriber.news, found)
  const [event] = subscriber.events
  equal(stage, 'its data is what is known of the version', event?.data, {
    component: 'NEOFORGE',
    version: first,
    type: 'release',
    minecraft: '1.21',
    url: `https://maven.neoforged.net/releases/net/neoforged/neoforge/${first}/neoforge-${first}-installer.jar`,
    deprecated: null,
  })

  stage.tell('mojang', 'replaces the file of the version')
  repositories.releaseMinecraft(minecraft, 'second')
  await subscriber.has(5)
  stage.tell('maven', `withdraws ${second}`)
  repositories.neoforge = repositories.neoforge.filter((version) => version !== second)
  await subscriber.has(6)
  stage.tell('maven', `lists ${second} again`)
  repositories.neoforge = [...repositories.neoforge, second]
  await subscriber.has(7)
  await threeLooks(stage)
  equal(
    stage,
    'so are a changed file, a withdrawn version, and its return; a look without news is none',
    subscriber.news.slice(4),
    [`VERSION_UPDATED ${minecraft}`, `VERSION_DEPRECATED ${second}`, `VERSION_UPDATED ${second}`],
  )
  equal(
    stage,
    'an update names what has changed',
    subscriber.events.flatMap(({ data: { changed } }) => (changed === undefined ? [] : [changed])),
    [['sha1', 'url'], ['deprecated']],
  )
})

export const brokenRepository = alone(async (stage) => {
  const { repositories } = stage.world
  const subscriber = await subscribe(stage, 'good')
  repositories.releaseNeoForge(3)
  await subscriber.has(3)
  const failed = (): number =>
    stage.emitted('run.retry').filter(({ flow }) => flow === 'every/discover-neoforge').length
  const empty = '<metadata><versioning><versions></versions></versioning></metadata>'
  for (const [what, failure] of [
    ['answers 502', () => new Response('', { status: 502 })],
    ['lists nothing', () => new Response(empty)],
  ] as const) {
    stage.tell('maven', what)
    const before = failed()
    repositories.failure = failure
    await stage.until('an attempt has failed', () => failed() > before)
  }
  repositories.failure = undefined
  const [next = ''] = repositories.releaseNeoForge()
  await subscriber.has(4)
  equal(
    stage,
    'a repository that fails deprecates nothing, and the next look finds the news',
    subscriber.versions.slice(3),
    [next],
  )
})

export const plainSql = alone(async (stage) => {
  const { repositories } = stage.world
  const subscriber = await subscribe(stage, 'good')
  const [first = '', second = ''] = repositories.releaseNeoForge(3)
  await subscriber.has(3)
  await withSession(stage, async (session) => {
    stage.tell('psql', `deprecates ${first}, twice, and takes back that of ${second}`)
    await session.deprecate(first, 'crashes at start')
    await session.deprecate(first, 'crashes at start')
    await session.query('begin')
    await session.deprecate(second, 'by mistake')
    await session.query('rollback')
    await subscriber.has(4)
    await threeLooks(stage)
    equal(stage, 'only what was committed is news, and once', subscriber.news.slice(3), [`VERSION_DEPRECATED ${first}`])
    stage.check('the news has the reason', subscriber.events[3]?.data['deprecated'] === 'crashes at start')
    const { rows } = await session.query(
      `select version from versions where deprecated = 'crashes at start' and version = '${first}'`,
    )
    stage.check('the row and its event are one transaction', rows.length === 1)
  })
})

/** Waits for three discoveries and a batch. */
async function threeLooks(stage: Stage<World>): Promise<void> {
  const { discovery: every, batch } = stage.world.times
  await stage.sleep(3 * every + batch + 1_500)
}
