// Tests credentials that are sent in clear, and sources without any: accepted spellings, and invalid options.
import { expect, test } from 'vitest'
import { apiKey } from '../../src/sources/credentials.ts'
import { basic } from '../../src/sources/credentials.ts'
import { bearer } from '../../src/sources/credentials.ts'
import { garmin } from '../../src/sources/garmin.ts'
import { unverified } from '../../src/sources/credentials.ts'
import { notionAction } from '../../src/sources/notion-action.ts'
import { cases as apiKeyCases } from './cases/api-key.ts'
import { cases as basicCases } from './cases/basic.ts'
import { cases as bearerCases } from './cases/bearer.ts'
import { cases as noneCases } from './cases/unverified.ts'
import { NOW, receive, requestOf } from './faults.ts'

function outcomeOf(source: ReturnType<typeof basic>, headers: Readonly<Record<string, string>>): string {
  return receive(source, requestOf({ body: '{}', headers }), '').outcome
}

test('the scheme has no case, but the credentials have', () => {
  const token = bearer({ secret: ['old', 'new'] })
  expect(outcomeOf(token, { authorization: 'bearer new' })).toBe('accepted')
  expect(outcomeOf(token, { authorization: 'BEARER  old' })).toBe('accepted')
  expect(outcomeOf(token, { authorization: 'Bearer NEW' })).toBe('CREDENTIALS_WRONG')
  expect(outcomeOf(token, { authorization: 'Basic new' })).toBe('CREDENTIALS_MISSING')
  expect(outcomeOf(token, { authorization: 'Bearer ' })).toBe('CREDENTIALS_MISSING')
})

test('user name and password must both be right', () => {
  const source = basic({ username: 'hooks', secret: 'päss' })
  const of = (text: string): string =>
    outcomeOf(source, { authorization: `Basic ${Buffer.from(text).toString('base64')}` })
  expect(of('hooks:päss')).toBe('accepted')
  expect(of('hook:päss')).toBe('CREDENTIALS_WRONG')
  expect(of('hooks:pass')).toBe('CREDENTIALS_WRONG')
  expect(of('hooks')).toBe('CREDENTIALS_WRONG')
})

test('the key can be in a configured header', () => {
  const source = apiKey({ secret: 'k', header: 'X-Hook-Key' })
  expect(outcomeOf(source, { 'x-hook-key': 'k' })).toBe('accepted')
  expect(outcomeOf(source, { 'x-api-key': 'k' })).toBe('CREDENTIALS_MISSING')
})

test('invalid options are rejected', () => {
  expect(() => basic({ username: '', secret: 'x' })).toThrow(/username/)
  expect(() => basic({ username: 'a:b', secret: 'x' })).toThrow(/username/)
  expect(() => apiKey({ secret: 'x', header: 'a', query: 'b' })).toThrow(/either header or query/)
  expect(() => apiKey({ secret: 'x', query: '' })).toThrow(/either header or query/)
  for (const secret of [undefined, null, '', ' ', [], ['a', '']] as never[]) {
    expect(() => bearer({ secret })).toThrow(/CONFIG_INVALID: bearer: secret/)
  }
  for (const options of [{}, { verify: 'all' }, { verify: undefined }] as never[]) {
    expect(() => unverified(options)).toThrow(/CONFIG_INVALID: unverified: verify must be 'none'/)
  }
})

test('a secret that no header can contain unchanged is rejected', () => {
  const never = ['pä55', 'a\nb', ' a', 'a ', '\u{1f511}', 'a\u007f']
  for (const secret of never) {
    for (const build of [
      () => bearer({ secret }),
      () => apiKey({ secret }),
      () => notionAction({ header: 'x-secret', secret: ['good', secret] }),
      () => garmin({ clientId: secret }),
    ]) {
      expect(build).toThrow(/CONFIG_INVALID: \w+: (?:secret|clientId) must be ASCII/)
    }
    expect(() => apiKey({ secret, query: 'key' })).not.toThrow()
    expect(() => basic({ username: 'a', secret })).not.toThrow()
  }
  expect(() => bearer({ secret: 'two words' })).toThrow(/CONFIG_INVALID/)
  expect(outcomeOf(apiKey({ secret: 'two words' }), { 'x-api-key': 'two words' })).toBe('accepted')
  expect(outcomeOf(bearer({ secret: '!~' }), { authorization: 'Bearer !~' })).toBe('accepted')
})

test('an identity is kept for 30 days, because no timestamp is verified', () => {
  const all = [...basicCases, ...bearerCases, ...apiKeyCases, ...noneCases]
  expect(new Set(all.map((one) => one.build(one.secret).dedupeFor))).toEqual(new Set(['30d']))
  for (const one of all) {
    expect(receive(one.build(one.secret), one.request(one.secret, NOW), one.secret).events).toMatchObject([
      { type: 'ping', dedupeId: '7' },
    ])
  }
})

test('the response can be configured', () => {
  const answer = { status: 200, body: 'ok' }
  expect(unverified({ verify: 'none', answer }).answer).toBe(answer)
})
