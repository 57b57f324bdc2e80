// Source × fault: for every source, the result of each fault in a valid request, and that no changed request passes as
// genuine. Each file of cases/ exports `cases`; a new source needs a file there.
import { readdirSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DEFAULTS } from '../../src/index.ts'
import * as sources from '../../src/sources/index.ts'
import { faultsOf, NOW, receive, type SourceCase } from './faults.ts'
import { mutations } from './mutations.ts'

const MUTATIONS = 2_000
const folder = new URL('cases/', import.meta.url)
const files = readdirSync(folder).filter((name) => name.endsWith('.ts'))
const cases: readonly SourceCase[] = (
  await Promise.all(
    files.map(async (name) => (await import(new URL(name, folder).href)) as { cases: readonly SourceCase[] }),
  )
).flatMap((file) => file.cases)

test('every source has a case and a page', () => {
  const names = Object.keys(sources).map((name) =>
    name.replaceAll(/[A-Z]/g, (deadLetter) => `-${deadLetter.toLowerCase()}`),
  )
  expect(names.length).toBeGreaterThan(15)
  expect(names.filter((name) => !files.includes(`${name}.ts`))).toEqual([])
  const pages = readdirSync(new URL('../../docs/sources/', import.meta.url))
  expect(names.filter((name) => !pages.includes(`${name}.md`))).toEqual([])
})

describe.each(cases)('$name', (one) => {
  test.each(faultsOf(one))('%s: %s', (_, expected, got) => {
    expect(got).toEqual(expected)
  })

  test('identities are kept longer than a signed request is valid, and for long if no timestamp is signed', () => {
    const { dedupeFor = DEFAULTS.dedupe, tolerance } = one.build(one.secret)
    const isTimed = one.expected.old !== 'accepted'
    expect([dedupeFor, tolerance]).toEqual(isTimed ? ['7d', 300_000] : ['30d', undefined])
  })

  test('never throws, and accepts no forgery', () => {
    const source = one.build(one.secret)
    const genuine = one.request(one.secret, NOW)
    const isForged = one.isForged ?? ((request) => !Buffer.from(request.body).equals(genuine.body))
    fc.assert(
      fc.property(mutations(genuine), (request) => {
        const { outcome } = receive(source, request, one.secret)
        expect(outcome === 'accepted' && isForged(request, genuine)).toBe(false)
      }),
      { numRuns: MUTATIONS },
    )
  })
})
