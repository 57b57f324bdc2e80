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
  const answers: number[] = []
  let retryAfter = ''
  // Each of them is rejected for its secret, but is counted.
  while (answers.length <= stage.world.registrations && answers.at(-1) !== 429) {
    const body = { name: 'one of many', url: newUrl(stage, 'good'), secret: 'short' }
    const { status, headers } = await call(stage, 'POST', SUBSCRIBERS, { body })
    answers.push(status)
    retryAfter = headers.get('retry-after') ?? ''
  }
  stage.check(
    `after ${answers.length - 1} registrations in a minute the next one gets ${answers.at(-1)}`,
    answers.at(-1) === 429,
  )
  stage.check(`and is asked to come back after ${retryAfter} s`, Number(retryAfter) >= 1 && Number(retryAfter) <= 61)
})
