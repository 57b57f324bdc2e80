// A payload of its own for one subscriber.
import { alone, call, equal, subscribe, SUBSCRIBERS } from './world.ts'

const CODE = `export default function (events) {
  const lines = events.map(({ type, data }) => type + ' ' + data.version)
  return { body: { text: lines.join(', ') } }
}`

interface Tried {
  readonly body?: string
  readonly error: string
}

export const transformation = alone(async (stage) => {
  const { repositories } = stage.world
  const subscriber = await subscribe(stage, 'good')
  const plain = await subscribe(stage, 'good')
  const path = `${SUBSCRIBERS}/${subscriber.id}/transform`
  const sample = { type: 'NEW_VERSION', data: { component: 'NEOFORGE', version: '21.0.1' } }
  const tried = await call<Tried>(stage, 'POST', `${path}/test`, { body: { code: CODE, sample } })
  stage.check(
    `POST …/transform/test shows the body: ${tried.json.body}`,
    tried.json.body === '{"text":"NEW_VERSION 21.0.1"}',
  )
  const set = await call(stage, 'POST', path, { body: { code: CODE } })
  stage.check(`POST …/transform gets ${set.status}`, set.status === 200)
  const [first = '', second = ''] = repositories.releaseNeoForge(2)
  await plain.has(2)
  await stage.until('the transformed batch has come', () => subscriber.posts.length === 1)
  const [post] = subscriber.posts
  equal(stage, 'the subscriber gets the body of its transformation', JSON.parse(post?.text ?? '{}') as unknown, {
    text: `NEW_VERSION ${first}, NEW_VERSION ${second}`,
  })
  stage.check('signed as it is', post?.isSigned === true)
  equal(stage, 'the others get the payload of the design', plain.versions, [first, second])
})
