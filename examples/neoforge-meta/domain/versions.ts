// The versions of NeoForge and Minecraft as their repositories list them, and the news between two looks at a list.
import { z } from 'zod'

export const COMPONENTS = ['NEOFORGE', 'MINECRAFT'] as const
export type Component = (typeof COMPONENTS)[number]

export interface Version {
  readonly component: Component
  readonly version: string
  /** `release` or `beta` of NeoForge; of Minecraft also `snapshot`, `old_beta` and `old_alpha`. */
  readonly type: string
  readonly url: string
  /** The version of Minecraft that a version of NeoForge is for, where its number shows it. */
  readonly minecraft?: string
  readonly releasedAt?: string
  readonly sha1?: string
}

export interface KnownVersion extends Version {
  /** Why it is deprecated; null if it is not. */
  readonly deprecated: string | null
}

export type News = 'NEW_VERSION' | 'VERSION_UPDATED' | 'VERSION_DEPRECATED'

export interface Change {
  readonly news: News
  readonly version: KnownVersion
  /** The fields that have changed. */
  readonly changed: readonly string[]
}

/** The reason of a version that its repository no longer lists. */
export const WITHDRAWN = 'withdrawn'

const MAVEN = 'https://maven.neoforged.net/releases/net/neoforged/neoforge'

/** `parseMavenMetadata` reads the `maven-metadata.xml` of NeoForge. Returns the oldest version first, as Maven lists them. */
export function parseMavenMetadata(xml: string): readonly Version[] {
  const list = /<versions>([\s\S]*?)<\/versions>/.exec(xml)?.[1]
  if (list === undefined) throw new Error('The Maven metadata must have a list of versions; got none.')
  return [...list.matchAll(/<version>\s*([\w.+-]{1,100})\s*<\/version>/g)].map(([, version = '']) => {
    const minecraft = minecraftOf(version)
    return {
      component: 'NEOFORGE',
      version,
      type: /-(alpha|beta)/.exec(version)?.[1] ?? 'release',
      url: `${MAVEN}/${version}/neoforge-${version}-installer.jar`,
      ...(minecraft !== undefined && { minecraft }),
    }
  })
}

/** NeoForge 20.4.237 is for Minecraft 1.20.4, and 21.0.167 for 1.21. Later numbers follow other rules. */
function minecraftOf(version: string): string | undefined {
  const [, minor, patch] = /^(2[01])\.(\d+)\.\d+/.exec(version) ?? []
  if (minor === undefined) return undefined
  return patch === '0' ? `1.${minor}` : `1.${minor}.${patch}`
}

const MANIFEST = z.object({
  versions: z.array(
    z.object({
      id: z.string().min(1).max(100),
      type: z.string(),
      url: z.string(),
      releaseTime: z.string(),
      sha1: z.string(),
    }),
  ),
})

/** `parseManifest` reads Minecraft's `version_manifest_v2.json`, which lists the newest version first. */
export function parseManifest(json: string): readonly Version[] {
  const { versions } = MANIFEST.parse(JSON.parse(json))
  return versions.toReversed().map(({ id: version, type, url, releaseTime: releasedAt, sha1 }) => {
    return { component: 'MINECRAFT', version, type, url, releasedAt, sha1 }
  })
}

/**
 * `compareVersions` returns the news of a list, in its order. It throws if fewer than half of the known versions are listed:
 * a repository that is half there must not deprecate the other half.
 */
export function compareVersions(known: readonly KnownVersion[], listed: readonly Version[]): readonly Change[] {
  const byName = new Map(known.map((one) => [one.version, one]))
  const names = new Set(listed.map(({ version }) => version))
  const current = known.filter(({ deprecated }) => deprecated !== WITHDRAWN)
  const gone = current.filter(({ version }) => !names.has(version))
  if (gone.length > current.length / 2)
    throw new Error(`Only ${current.length - gone.length} of ${current.length} known versions are listed.`)
  const found = listed.flatMap((version): readonly Change[] => {
    const before = byName.get(version.version)
    if (before === undefined) return [{ news: 'NEW_VERSION', version: { ...version, deprecated: null }, changed: [] }]
    // What a maintainer has deprecated stays so, although it is listed.
    const deprecated = before.deprecated === WITHDRAWN ? null : before.deprecated
    const now: KnownVersion = { ...version, deprecated }
    const changed = fieldsThatDiffer(before, now)
    return changed.length === 0 ? [] : [{ news: 'VERSION_UPDATED', version: now, changed }]
  })
  const withdrawn = gone.filter(({ deprecated }) => deprecated === null)
  const lost = withdrawn.map((version): Change => {
    return { news: 'VERSION_DEPRECATED', version: { ...version, deprecated: WITHDRAWN }, changed: ['deprecated'] }
  })
  return [...found, ...lost]
}

function fieldsThatDiffer(before: KnownVersion, now: KnownVersion): readonly string[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(now)])
  return [...fields].filter((field) => Reflect.get(before, field) !== Reflect.get(now, field)).toSorted()
}
