// `RepositoriesStandIn` plays NeoForge's Maven and Minecraft's manifest: it lists versions, and can fail.
import { hash } from 'node:crypto'

interface ManifestEntry {
  readonly id: string
  readonly type: string
  readonly url: string
  readonly time: string
  readonly releaseTime: string
  readonly sha1: string
  readonly complianceLevel: number
}

export class RepositoriesStandIn {
  /** The oldest first. */
  neoforge: readonly string[] = []
  /** The oldest first. */
  minecraft: readonly ManifestEntry[] = []
  /** Answers instead of a list. */
  failure: (() => Response) | undefined
  #made = 0

  readonly maven = (request: Request): Response => {
    if (new URL(request.url).pathname !== '/releases/net/neoforged/neoforge/maven-metadata.xml') return notFound()
    if (this.failure !== undefined) return this.failure()
    const last = this.neoforge.at(-1) ?? ''
    return new Response(
      `<?xml version="1.0" encoding="UTF-8"?>
<metadata>
  <groupId>net.neoforged</groupId>
  <artifactId>neoforge</artifactId>
  <versioning>
    <latest>${last}</latest>
    <release>${last}</release>
    <versions>
${this.neoforge.map((version) => `      <version>${version}</version>`).join('\n')}
    </versions>
    <lastUpdated>20261118120000</lastUpdated>
  </versioning>
</metadata>
`,
      { headers: { 'content-type': 'application/xml' } },
    )
  }

  readonly manifest = (request: Request): Response => {
    if (new URL(request.url).pathname !== '/mc/game/version_manifest_v2.json') return notFound()
    if (this.failure !== undefined) return this.failure()
    const latest = this.minecraft.at(-1)?.id ?? ''
    return Response.json({ latest: { release: latest, snapshot: latest }, versions: this.minecraft.toReversed() })
  }

  /** Releases so many versions of NeoForge, and returns their numbers. */
  releaseNeoForge(n = 1): readonly string[] {
    const versions = Array.from({ length: n }, () => `21.0.${this.#made++}`)
    this.neoforge = [...this.neoforge, ...versions]
    return versions
  }

  /** Lists a version of Minecraft, or lists it with another file. */
  releaseMinecraft(id = `1.21.${this.#made++}`, file = 'first'): string {
    const sha1 = hash('sha1', `${id} ${file}`)
    const time = '2026-11-18T12:00:00+00:00'
    const url = `https://piston-meta.mojang.com/v1/packages/${sha1}/${id}.json`
    const entry = { id, type: 'release', url, time, releaseTime: time, sha1, complianceLevel: 1 }
    const isKnown = this.minecraft.some((one) => one.id === id)
    this.minecraft = isKnown ? this.minecraft.map((one) => (one.id === id ? entry : one)) : [...this.minecraft, entry]
    return id
  }
}

function notFound(): Response {
  return new Response('', { status: 404 })
}
