// The plain functions of the domain, and the settings.
import { describe, expect, it } from 'vitest'
import { toEvent, VERSION_EVENTS } from '../domain/events.ts'
import { webhookHealth } from '../domain/health.ts'
import { compareVersions, parseManifest, parseMavenMetadata, WITHDRAWN, type KnownVersion } from '../domain/versions.ts'
import { settingsFrom } from '../settings.ts'

const metadata = (...versions: readonly string[]): string =>
  `<metadata><versioning><versions>${versions.map((one) => `<version>${one}</version>`).join('\n')}</versions></versioning></metadata>`
const known = (...versions: readonly string[]): readonly KnownVersion[] =>
  parseMavenMetadata(metadata(...versions)).map((version) => ({ ...version, deprecated: null }))

const news = (before: readonly KnownVersion[], ...now: readonly string[]): readonly string[] =>
  compareVersions(before, parseMavenMetadata(metadata(...now))).map(
    (change) => `${change.news} ${change.version.version}`,
  )
const of = (stuckBatches: number, failedBatches: number) => ({ health: { stuckBatches, failedBatches } })

describe('the Maven metadata', () => {
  it('names the version of Minecraft where the number shows it', () => {
    const found = parseMavenMetadata(
      metadata('20.4.237', '21.0.167', '21.1.77-beta', '0.25w14craftmine.3-beta', '26.1.0.5'),
    )
    expect(found.map(({ version, type, minecraft }) => [version, type, minecraft])).toEqual([
      ['20.4.237', 'release', '1.20.4'],
      ['21.0.167', 'release', '1.21'],
      ['21.1.77-beta', 'beta', '1.21.1'],
      ['0.25w14craftmine.3-beta', 'beta', undefined],
      ['26.1.0.5', 'release', undefined],
    ])
  })

  it('must have a list of versions', () => {
    expect(() => parseMavenMetadata('<html>Maintenance</html>')).toThrow('must have a list of versions; got none.')
  })
})

describe("Minecraft's manifest", () => {
  const entry = {
    id: '1.21',
    type: 'release',
    url: 'https://x',
    time: 't',
    releaseTime: 'r',
    sha1: 'a',
    complianceLevel: 1,
  }

  it('lists the newest version first, and becomes a list that begins with the oldest', () => {
    const found = parseManifest(JSON.stringify({ latest: {}, versions: [{ ...entry, id: '1.21.1' }, entry] }))
    expect(found.map(({ version }) => version)).toEqual(['1.21', '1.21.1'])
    expect(found[0]).toEqual({
      component: 'MINECRAFT',
      version: '1.21',
      type: 'release',
      url: 'https://x',
      releasedAt: 'r',
      sha1: 'a',
    })
  })

  it.each(['{}', '[]', '{"versions": [{"id": "1.21"}]}', 'no JSON'])('%s is rejected', (json) => {
    expect(() => parseManifest(json)).toThrow()
  })
})

describe('the news between two looks', () => {
  it('is none if nothing has changed', () => {
    expect(news(known('21.0.1', '21.0.2'), '21.0.1', '21.0.2')).toEqual([])
  })

  it('is the versions that are listed for the first time, in the order of the list', () => {
    expect(news(known('21.0.1'), '21.0.3', '21.0.1', '21.0.2')).toEqual(['NEW_VERSION 21.0.3', 'NEW_VERSION 21.0.2'])
  })

  it('is a withdrawn version, once, and its return', () => {
    const before = known('21.0.1', '21.0.2', '21.0.3')
    const [change] = compareVersions(before, parseMavenMetadata(metadata('21.0.1', '21.0.3')))
    expect(change).toMatchObject({ news: 'VERSION_DEPRECATED', version: { version: '21.0.2', deprecated: WITHDRAWN } })
    const after = before.map((one) => (one.version === '21.0.2' ? { ...one, deprecated: WITHDRAWN } : one))
    expect(news(after, '21.0.1', '21.0.3')).toEqual([])
    expect(news(after, '21.0.1', '21.0.2', '21.0.3')).toEqual(['VERSION_UPDATED 21.0.2'])
  })

  it('leaves a version deprecated that a maintainer has deprecated', () => {
    const before = known('21.0.1', '21.0.2', '21.0.3').map((one) =>
      one.version === '21.0.2' ? { ...one, deprecated: 'crashes at start' } : one,
    )
    expect(news(before, '21.0.1', '21.0.2', '21.0.3')).toEqual([])
    expect(news(before, '21.0.1', '21.0.3')).toEqual([])
  })

  it('is none of a list that lacks more than half of the known versions', () => {
    const before = known('21.0.1', '21.0.2', '21.0.3')
    expect(() => news(before)).toThrow('Only 0 of 3 known versions are listed.')
    expect(() => news(before, '21.0.1')).toThrow('Only 1 of 3 known versions are listed.')
    expect(news(before, '21.0.1', '21.0.2')).toEqual(['VERSION_DEPRECATED 21.0.3'])
  })

  it('becomes an event that its schema accepts', () => {
    const [change] = compareVersions([], parseMavenMetadata(metadata('21.0.1')))
    const event = toEvent(change!)
    expect(event).toMatchObject({ type: 'NEW_VERSION', subject: 'NEOFORGE/21.0.1', data: { component: 'NEOFORGE' } })
    expect(VERSION_EVENTS[0].parse(event.data)).toEqual(event.data)
    expect(() => VERSION_EVENTS[0].parse({ component: 'FORGE', version: '1' })).toThrow('component')
  })
})

describe('the health of the webhooks', () => {
  it.each([
    ['UP', [of(0, 60), of(0, 40)]],
    ['DEGRADED', [of(0, 60), of(0, 41)]],
    ['DOWN', [of(1, 0), of(0, 0)]],
    ['DOWN', [of(1, 200)]],
    ['UP', []],
  ] as const)('is %s', (status, subscribers) => {
    expect(webhookHealth(subscribers).status).toBe(status)
  })

  it('counts over all subscribers', () => {
    expect(webhookHealth([of(1, 2), of(3, 4)]).details).toEqual({ stuckBatches: 4, failedBatches: 6 })
  })
})

describe('the settings', () => {
  it('are those of the design', () => {
    expect(settingsFrom({})).toEqual({
      encryptionKey: undefined,
      discovery: '5m',
      batchInterval: '30s',
      maxEvents: 1_000,
      retry: ['1m', '2m', '4m', '8m'],
      requestTimeout: '30s',
      eventRetention: '7d',
      batchRetention: '30d',
      registrations: 10,
      proof: 'none',
      isDevelopment: false,
    })
  })

  it('have 16 minutes before a sixth attempt', () => {
    expect(settingsFrom({ MAX_ATTEMPTS: '6' }).retry).toEqual(['1m', '2m', '4m', '8m', '16m'])
    expect(settingsFrom({ MAX_ATTEMPTS: '1' }).retry).toEqual([])
  })

  it.each([
    [{ MAX_ATTEMPTS: '0' }, 'MAX_ATTEMPTS must be a whole number from 1 to 12; got 0.'],
    [{ MAX_EVENTS_PER_BATCH: 'all' }, 'MAX_EVENTS_PER_BATCH must be a whole number from 1 to 10000; got all.'],
    [{ BATCH_INTERVAL: '30' }, 'BATCH_INTERVAL must be a duration such as 30s; got 30.'],
    [{ WEBHOOK_PROOF: 'yes' }, 'WEBHOOK_PROOF must be none or challenge; got yes.'],
  ])('reject %j', (env, message) => {
    expect(() => settingsFrom(env)).toThrow(message)
  })
})
