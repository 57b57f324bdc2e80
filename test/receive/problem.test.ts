// R5: every rejection is a problem as in RFC 9457, with a stable code that has a status and a line in the docs.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Sluice } from '../../src/index.ts'
import { toProblemResponse, STATUS, type ProblemCode } from '../../src/receive/problem.ts'
import type { Source } from '../../src/receive/source.ts'
import { AT_GITHUB, eventsIn, githubHook, opened, problemOf, withGithub } from './scene.ts'

const CODES = Object.keys(STATUS) as readonly ProblemCode[]
const PAGE = new URL('../../docs/problems.md', import.meta.url)

const after = (ms: number): string | undefined =>
  toProblemResponse({ code: 'BUSY', what: '', fix: '', retryAfter: ms }).headers?.['retry-after']

describe('a problem', () => {
  it.each(CODES)('%s has the shape of RFC 9457, and shows no fix to strangers', (code) => {
    const { status, headers, body } = toProblemResponse({ code, what: 'What is wrong.', fix: 'Turn the secret knob.' })
    expect(status).toBe(STATUS[code])
    expect(status >= 400 && status < 600).toBe(true)
    expect(headers).toEqual({ 'content-type': 'application/problem+json' })
    expect(JSON.parse(body ?? '')).toEqual({
      type: `urn:sluice:problem:${code}`,
      title: expect.stringMatching(/^[A-Z][a-z ]+$/) as string,
      status,
      detail: 'What is wrong.',
      code,
    })
  })

  it('has a Retry-After in whole seconds, at least one', () => {
    expect([after(1), after(1_000), after(1_001), after(59_999)]).toEqual(['1', '1', '2', '60'])
  })

  it('is in docs/problems.md with its status, and no others are', () => {
    const rows = readFileSync(PAGE, 'utf8').matchAll(/^\| `(\w+)` +\| (\d+) +\| .+\|$/gm)
    expect(Object.fromEntries([...rows].map(([, code, status]) => [code, Number(status)]))).toEqual(STATUS)
  })
})

const answers = async (app: Sluice): Promise<unknown> => {
  const response = await app.fetch(githubHook('{}', { delivery: 'late' }))
  return [response.status, (await problemOf(response)).code, response.headers.get('retry-after')]
}

describe('an app', () => {
  const cases: readonly (readonly [ProblemCode, Request])[] = [
    ['SIGNATURE_WRONG', githubHook('{}', { secret: 'wrong' })],
    ['SIGNATURE_MISSING', new Request(AT_GITHUB, { method: 'POST', body: '{}' })],
    ['SOURCE_UNKNOWN', githubHook('{}', { url: 'http://hooks.test/in/nobody' })],
    ['SOURCE_UNKNOWN', githubHook('{}', { url: 'http://hooks.test/in/github/' })],
    ['METHOD_NOT_ALLOWED', new Request(AT_GITHUB)],
    ['METHOD_NOT_ALLOWED', new Request(AT_GITHUB, { method: 'DELETE' })],
    ['BODY_NOT_UNDERSTOOD', githubHook('{')],
    ['ENCODING_NOT_ALLOWED', githubHook('{}', { headers: { 'content-encoding': 'gzip' } })],
    ['BODY_TOO_LARGE', githubHook('{}', { headers: { 'content-length': '99999999' } })],
  ]

  it.each(cases)('responds with %s', async (code, request) => {
    const { app } = await opened(withGithub)
    const response = await app.fetch(request)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(await problemOf(response)).toMatchObject({ code, status: STATUS[code] })
    expect(response.status).toBe(STATUS[code])
    expect(await app.admin.sources.refused(code === 'SOURCE_UNKNOWN' ? '' : 'github')).toMatchObject([{ code }])
  })

  it('responds with EVENT_INVALID if a source names an event invalidly', async () => {
    const source: Source = {
      scheme: 'long',
      secrets: [],
      verify: 'none',
      events: ({ body }) => [{ type: 'x'.repeat(2_000), dedupeId: undefined, body }],
    }
    const { app, store } = await opened((one) => one.source('long', source))
    const response = await app.fetch(new Request('http://hooks.test/in/long', { method: 'POST', body: 'x' }))
    expect([response.status, (await problemOf(response)).code]).toEqual([400, 'EVENT_INVALID'])
    expect(await eventsIn(store)).toEqual([])
  })

  it('names the method and path of a source that is called in another way', async () => {
    const { app } = await opened(withGithub)
    expect((await app.fetch(new Request(AT_GITHUB, { method: 'PUT', body: '' }))).headers.get('allow')).toBe('POST')
  })

  it('responds with 503 once it stops, whether or not it was ever used', async () => {
    const [used, unused] = [await opened(withGithub), await opened(withGithub, { store: 'sqlite::memory:' })]
    expect((await used.app.fetch(githubHook('{}'))).status).toBe(202)
    expect((await used.app.fetch(new Request('http://hooks.test/readyz'))).status).toBe(200)
    await Promise.all([used.app.stop(), unused.app.stop()])
    expect(await answers(used.app)).toEqual([503, 'APP_STOPPED', '1'])
    expect(await answers(unused.app)).toEqual([503, 'APP_STOPPED', '1'])
    expect((await used.app.fetch(new Request('http://hooks.test/readyz'))).status).toBe(503)
    expect((await used.app.fetch(new Request('http://hooks.test/healthz'))).status).toBe(200)
  })
})
