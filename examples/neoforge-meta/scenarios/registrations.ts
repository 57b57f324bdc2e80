// What a registration must have: a proof, a safe address, and moderation.
import { SECRET } from '../stand-in/subscriber.ts'
import { alone, call, equal, newUrl, SUBSCRIBERS, Subscriber, type Look } from './world.ts'

type Created = Look & { readonly id: string; readonly proofError?: string }

export const challenge = alone(async (stage) => {
  const { good, repositories } = stage.world
  good.provesItself = false
  const url = newUrl(stage, 'good')
  const { json } = await call<Created>(stage, 'POST', SUBSCRIBERS, { body: { name: 'new', url, secret: SECRET } })
  stage.check(`who does not echo the challenge is ${json.proof}: ${json.proofError}`, json.proof === 'pending')
  const subscriber = new Subscriber(stage, 'good', json.id, url)
  repositories.releaseNeoForge()
  await stage.sleep(stage.world.times.discovery + stage.world.times.batch + 2_000)
  stage.check('and gets nothing', subscriber.posts.length === 0)
  good.provesItself = true
  const proven = await call<Created>(stage, 'POST', `${SUBSCRIBERS}/${json.id}/prove`)
  stage.check('until it is asked again and does', proven.json.proof === 'proven')
  const [version = ''] = repositories.releaseNeoForge()
  await stage.until('the news has come', () => subscriber.versions.includes(version))
  const moved = await call<Created>(stage, 'PATCH', `${SUBSCRIBERS}/${json.id}`, { body: { url: stage.url('maven') } })
  stage.check(`a new address that proves nothing gets ${moved.status}`, moved.status === 400)
})

export const httpsOnly = alone(async (stage) => {
  const fault = async (url: string): Promise<string> => {
    const { status, json } = await call(stage, 'POST', SUBSCRIBERS, { body: { name: 'unsafe', url, secret: SECRET } })
    return `${status} ${String(json['detail'])}`
  }
  for (const url of ['http://example.com/hook', 'https://10.0.0.1/hook', 'https://169.254.169.254/latest']) {
    const says = await fault(url)
    stage.check(`${url} gets ${says}`, says.startsWith('400 endpoint: url is not allowed'))
  }
  equal(stage, 'none of them is registered', (await stage.app.endpoints.list()).length, 0)
})

export const registrationLimit = alone(async (stage) => {
  // The first key is that of the operator.
  await call(stage, 'GET', SUBSCRIBERS)
  const { secret: key } = await stage.app.admin.keys.create({ name: 'the website', role: 'register', tenant: '' })
  const register = (secret: string): ReturnType<typeof call> => {
    return call(stage, 'POST', SUBSCRIBERS, { body: { name: 'one of many', url: newUrl(stage, 'good'), secret }, key })
  }
  stage.check('a key with the role register registers a subscriber', (await register(SECRET)).status === 200)
  const list = await call(stage, 'GET', SUBSCRIBERS, { key })
  stage.check(`and can do nothing else: the list of subscribers gets ${list.status}`, list.status === 403)
  const answers: number[] = []
  let retryAfter = 0
  // Each of them is rejected for its secret, but is counted.
  while (answers.length <= stage.world.registrations && answers.at(-1) !== 429) {
    const { status, headers } = await register('short')
    answers.push(status)
    retryAfter = Number(headers.get('retry-after'))
  }
  stage.check(`after ${answers.length} registrations in a minute, the next one gets 429`, answers.at(-1) === 429)
  stage.check(`and is asked to come back after ${retryAfter} s`, retryAfter >= 1 && retryAfter <= 61)
})
